package pane

import (
	"bufio"
	"encoding/json"
	"io"
	"net"

	"github.com/agent-knock-knock/akk/internal/fault"
)

// job is what the starter tells the wrapper in the pane. It holds the person's
// environment, so it travels over a private socket and is never written down.
type job struct {
	Agent    string    `json:"agent"`
	Mode     string    `json:"mode"`
	Path     string    `json:"path"` // of the agent's executable
	Dir      string    `json:"dir"`
	Name     string    `json:"name"` // of the tmux session
	Env      []string  `json:"env"`
	Codex    codexArgs `json:"codex"`
	Thread   bool      `json:"thread"`              // Codex: make a thread on the server and show it
	ThreadID string    `json:"thread_id,omitempty"` // Claude: the session's id
	Args     []string  `json:"args,omitempty"`      // Claude
	Hooks    bool      `json:"hooks,omitempty"`     // Claude
}

// news is what the wrapper tells the starter, one JSON line each.
type news struct {
	Up       bool     `json:"up,omitempty"` // the terminal program runs; the last news
	Failed   string   `json:"failed,omitempty"`
	Mode     string   `json:"mode,omitempty"`
	ThreadID string   `json:"thread_id,omitempty"`
	Commands []string `json:"commands,omitempty"`
	Note     string   `json:"note,omitempty"`
}

const (
	maxJob  = 4 << 20   // bytes: an environment and some arguments
	maxNews = 256 << 10 // bytes of one line
)

// link is one end of the connection between starter and wrapper.
type link struct {
	conn net.Conn
	in   *bufio.Reader
}

func newLink(c net.Conn) *link { return &link{conn: c, in: bufio.NewReader(c)} }

func (l *link) close() { l.conn.Close() }

// send writes one line. The other end may be gone: the starter may be interrupted while
// the agent goes on.
func (l *link) send(v any) error {
	b, err := json.Marshal(v)
	if err == nil {
		_, err = l.conn.Write(append(b, '\n'))
	}
	if err != nil {
		return fault.Wrap(err, fault.Unavailable, "pane.link", "the other end is gone")
	}
	return nil
}

// receive reads one line of at most limit bytes.
func (l *link) receive(v any, limit int64) error {
	var line []byte
	for {
		part, err := l.in.ReadSlice('\n')
		line = append(line, part...)
		if int64(len(line)) > limit {
			return fault.New(fault.Unavailable, "pane.link", "the other end says too much")
		}
		if err == nil {
			break
		}
		if err != bufio.ErrBufferFull {
			return fault.Wrap(err, fault.Unavailable, "pane.link", "the other end is gone")
		}
	}
	if err := json.Unmarshal(line, v); err != nil {
		return fault.Wrap(err, fault.Internal, "pane.link", "the other end cannot be understood")
	}
	return nil
}

// drained returns when the other end has closed the connection.
func (l *link) drained() { _, _ = io.Copy(io.Discard, l.in) }
