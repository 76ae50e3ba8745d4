package faketmux

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// The environment of a test binary that runs as a recorder.
const (
	recordFile  = "AKK_RECORDER_FILE"
	recordBP    = "AKK_RECORDER_BRACKETED"
	recordDelay = "AKK_RECORDER_DELAY"
	recordText  = "AKK_RECORDER_TEXT"
)

const (
	ready = "READY"
	// mark is a byte that no text may hold; [Recorder.Finish] sends it to see that
	// everything before it has been recorded.
	mark = 0x04
)

// MaybeRecorder turns the process into a recorder if its environment says so, and then
// does not return. Call it first in TestMain of a package that uses [Server.Recorder].
func MaybeRecorder() {
	path := os.Getenv(recordFile)
	if path == "" {
		return
	}
	if err := record(path); err != nil {
		fmt.Fprintln(os.Stderr, "recorder:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// record reads the terminal in raw mode and appends every byte to the file.
func record(path string) error {
	log, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if d, err := time.ParseDuration(os.Getenv(recordDelay)); err == nil {
		<-time.After(d) // an agent that is slow to start: the terminal is not raw yet
	}
	if err := rawMode(int(os.Stdin.Fd())); err != nil {
		return err
	}
	if os.Getenv(recordBP) != "" {
		fmt.Print("\x1b[?2004h")
	}
	fmt.Print(os.Getenv(recordText), ready, "\r\n")
	_, err = io.Copy(log, os.Stdin)
	return err
}

func rawMode(fd int) error {
	t, err := unix.IoctlGetTermios(fd, getTermios)
	if err != nil {
		return err
	}
	t.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
	t.Oflag &^= unix.OPOST
	t.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	t.Cflag = t.Cflag&^(unix.CSIZE|unix.PARENB) | unix.CS8
	t.Cc[unix.VMIN], t.Cc[unix.VTIME] = 1, 0
	return unix.IoctlSetTermios(fd, setTermios, t)
}

// RecorderSpec says how a recorder behaves.
type RecorderSpec struct {
	Spec                    // Argv is ignored
	Bracketed bool          // it asks for bracketed paste
	Delay     time.Duration // from its start to raw mode and READY
	Print     string        // printed before READY, such as an OSC title
	NoWait    bool          // Recorder returns before READY
}

// Recorder is a pane whose program notes every byte of its input.
type Recorder struct {
	*Pane
	file     string
	finished int // bytes up to the mark of the last Finish
}

// Recorder starts a recorder and waits until it reads.
func (s *Server) Recorder(spec RecorderSpec) *Recorder {
	s.tb.Helper()
	r := &Recorder{file: filepath.Join(s.tb.TempDir(), "input")}
	r.Pane = s.Run(r.spec(spec))
	if !spec.NoWait {
		r.WaitReady()
	}
	return r
}

func (r *Recorder) spec(spec RecorderSpec) Spec {
	spec.Argv = []string{os.Args[0]}
	spec.Env = append(spec.Env, recordFile+"="+r.file, recordDelay+"="+spec.Delay.String(), recordText+"="+spec.Print)
	if spec.Bracketed {
		spec.Env = append(spec.Env, recordBP+"=1")
	}
	return spec.Spec
}

// WaitReady waits until the recorder reads.
func (r *Recorder) WaitReady() { r.Server.tb.Helper(); r.WaitText(ready) }

// Bytes is what was recorded so far.
func (r *Recorder) Bytes() []byte {
	r.Server.tb.Helper()
	b, err := os.ReadFile(r.file)
	if err != nil && !os.IsNotExist(err) {
		r.Server.tb.Fatal(err)
	}
	return b
}

// WaitBytes waits until cond holds for what was recorded.
func (r *Recorder) WaitBytes(cond func([]byte) bool) []byte {
	r.Server.tb.Helper()
	var b []byte
	Wait(r.Server.tb, "the recorded input", func() bool { b = r.Bytes(); return cond(b) },
		func() string { return strconv.Quote(string(b[:min(len(b), 400)])) })
	return b
}

// Finish leaves any tmux mode, sends a mark past the product and returns all that was
// recorded before it and after the mark of an earlier Finish. A terminal keeps order, so
// nothing sent earlier can be missing.
func (r *Recorder) Finish() Recording {
	r.Server.tb.Helper()
	if r.finished == 0 {
		r.WaitReady()
	}
	r.Server.Tmux("copy-mode", "-q", "-t", r.ID, ";", "select-pane", "-e", "-t", r.ID, ";", "send-keys", "-t", r.ID, "-H", "04")
	b := r.WaitBytes(func(b []byte) bool { return bytes.IndexByte(b[r.finished:], mark) >= 0 })
	before, _, _ := bytes.Cut(b[r.finished:], []byte{mark})
	r.finished += len(before) + 1
	return ParseRecording(before)
}

// Recording is a recorded input, taken apart.
type Recording struct {
	Raw     []byte
	Pastes  [][]byte // insides of framed pastes
	Outside []byte   // everything else
}

// ParseRecording takes the frames of pastes out of a recorded input. A frame without an
// end counts as outside.
func ParseRecording(raw []byte) Recording {
	begin, end := []byte("\x1b[200~"), []byte("\x1b[201~")
	r := Recording{Raw: raw}
	for rest := raw; ; {
		head, tail, ok := bytes.Cut(rest, begin)
		paste, after, closed := bytes.Cut(tail, end)
		if !ok || !closed {
			r.Outside = append(r.Outside, rest...)
			return r
		}
		r.Outside = append(r.Outside, head...)
		r.Pastes = append(r.Pastes, paste)
		rest = after
	}
}

// Submits is the number of times that a program would have taken Enter.
func (r Recording) Submits() int { return bytes.Count(r.Outside, []byte("\r")) }
