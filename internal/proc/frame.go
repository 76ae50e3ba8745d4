package proc

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
)

// maxFrame bounds one message between starter and runner. Arguments and environment go
// through it, the program's input and output do not.
const maxFrame = 8 << 20

// stdioFiles is how many descriptors a run request carries.
const stdioFiles = 3

const frameHeader = 4

// request goes from the starter to the runner. One program runs at a time, and both
// sides keep the order, so requests need no number. Names and
// values are bytes, because JSON text would change what is not UTF-8.
type request struct {
	Op   string   `json:"op"` // run, kill, term
	Path []byte   `json:"path,omitempty"`
	Args [][]byte `json:"args,omitempty"` // whole argv, Args[0] included
	Env  [][]byte `json:"env,omitempty"`
	Dir  []byte   `json:"dir,omitempty"`
	Own  bool     `json:"own,omitempty"` // a session of its own
	TTY  bool     `json:"tty,omitempty"` // stdin is its controlling terminal
}

// reply goes from the runner to the starter: started or failed, then done.
type reply struct {
	Op     string        `json:"op"` // started, failed, done
	PID    int           `json:"pid,omitempty"`
	Errno  syscall.Errno `json:"errno,omitempty"`
	Msg    string        `json:"msg,omitempty"`
	Exit   int           `json:"exit"`
	Signal int           `json:"signal,omitempty"`
	Left   int           `json:"left,omitempty"` // descendants that could not be ended
}

// writeFrame sends v, and fds with its first byte.
func writeFrame(c *net.UnixConn, v any, fds ...int) error {
	payload, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if len(payload) > maxFrame {
		return syscall.E2BIG
	}
	var header [frameHeader]byte
	binary.BigEndian.PutUint32(header[:], uint32(len(payload)))
	var oob []byte
	if len(fds) > 0 {
		oob = syscall.UnixRights(fds...)
	}
	n, _, err := c.WriteMsgUnix(header[:], oob, nil)
	if err != nil {
		return err
	}
	_, err = c.Write(append(header[n:], payload...))
	return err
}

// readFrame receives into v and returns the descriptors that came along, close-on-exec.
func readFrame(c *net.UnixConn, v any) (fds []int, err error) {
	defer func() {
		if err != nil {
			closeAll(fds)
			fds = nil
		}
	}()
	var header [frameHeader]byte
	oob := make([]byte, syscall.CmsgSpace(4*stdioFiles))
	for got := 0; got < len(header); {
		n, oobn, _, _, err := c.ReadMsgUnix(header[got:], oob)
		if err != nil {
			return fds, err
		}
		if n == 0 && oobn == 0 {
			return fds, io.EOF
		}
		got += n
		more, err := parseRights(oob[:oobn])
		fds = append(fds, more...)
		if err != nil {
			return fds, err
		}
	}
	size := binary.BigEndian.Uint32(header[:])
	if size > maxFrame {
		return fds, fmt.Errorf("frame of %d bytes", size)
	}
	payload := make([]byte, size)
	if _, err := io.ReadFull(c, payload); err != nil {
		return fds, err
	}
	return fds, json.Unmarshal(payload, v)
}

func parseRights(oob []byte) ([]int, error) {
	msgs, err := syscall.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, err
	}
	var fds []int
	for _, m := range msgs {
		got, err := syscall.ParseUnixRights(&m)
		if err != nil {
			return fds, err
		}
		fds = append(fds, got...)
	}
	for _, fd := range fds {
		syscall.CloseOnExec(fd)
	}
	return fds, nil
}

func bytesOf(list []string) [][]byte {
	out := make([][]byte, len(list))
	for i, s := range list {
		out[i] = []byte(s)
	}
	return out
}

func stringsOf(list [][]byte) []string {
	out := make([]string, len(list))
	for i, b := range list {
		out[i] = string(b)
	}
	return out
}

func closeAll(fds []int) {
	for _, fd := range fds {
		_ = syscall.Close(fd)
	}
}

// errnoOf returns the errno inside err, 0 when there is none.
func errnoOf(err error) syscall.Errno {
	var no syscall.Errno
	errors.As(err, &no)
	return no
}
