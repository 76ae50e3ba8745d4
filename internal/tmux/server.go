package tmux

import (
	"context"
	"errors"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
)

// Server is one tmux server, named by its socket.
type Server struct {
	Socket string // absolute path, symbolic links resolved

	programs []string      // instead of the usual programs; for tests
	bound    time.Duration // instead of the usual bounds; for tests
}

// At returns the server behind a socket path that [Discover] reported earlier.
func At(socket string) Server { return Server{Socket: socket} }

// Panes lists all panes of the server, each once, in tmux's order. A row that makes no
// sense is left out; if no row does, that is an error.
func (s Server) Panes(ctx context.Context) ([]Pane, error) {
	const op = "tmux.panes"
	m := newMarks()
	out, rerr := s.run(ctx, readBound, maxListing, nil, "list-panes", "-a", "-F", m.format())
	if rerr != nil {
		return nil, s.readFailure(rerr, op)
	}
	rows, rejected := m.parse(out, s.Socket)
	if len(rows) == 0 && (rejected > 0 || len(out) > 0) {
		return nil, fault.New(fault.Unavailable, op, "the tmux server at %s answers in an unknown form", s.Socket).
			WithHint("AKK needs tmux 3.2 or newer")
	}
	// A window linked into several sessions is listed once for each of them.
	seen := make(map[string]bool, len(rows))
	panes := rows[:0]
	for _, p := range rows {
		if !seen[p.ID] {
			seen[p.ID] = true
			panes = append(panes, p)
		}
	}
	return panes, nil
}

// Pane reads one pane. A pane that does not exist is [fault.NotFound].
func (s Server) Pane(ctx context.Context, id string) (Pane, error) {
	const op = "tmux.pane"
	if !validPaneID(id) {
		return Pane{}, fault.New(fault.Invalid, op, "%q is no pane id", id)
	}
	m := newMarks()
	out, rerr := s.run(ctx, readBound, maxListing, nil, "display-message", "-p", "-t", id, m.format())
	if rerr != nil && !rerr.started || rerr != nil && rerr.timeout {
		return Pane{}, s.readFailure(rerr, op)
	}
	return s.onePane(m, out, rerr, op, id)
}

// onePane takes the row of id out of what a command printed before it may have failed.
func (s Server) onePane(m marks, out []byte, rerr *runError, op, id string) (Pane, error) {
	rows, _ := m.parse(out, s.Socket)
	for _, p := range rows {
		if p.ID == id {
			return p, nil
		}
	}
	if m.empty(out) || len(rows) > 0 {
		// tmux prints an empty row, or another pane's, when the target does not exist.
		return Pane{}, fault.New(fault.NotFound, op, "pane %s does not exist on the tmux server at %s", id, s.Socket)
	}
	if rerr == nil {
		rerr = &runError{started: true, err: errors.New("tmux printed nothing")}
	}
	return Pane{}, s.readFailure(rerr, op)
}

func (s Server) readFailure(rerr *runError, op string) error {
	switch {
	case rerr.timeout:
		return fault.Wrap(rerr, fault.Timeout, op, "the tmux server at %s did not answer in time", s.Socket)
	case !rerr.started:
		return fault.Wrap(rerr, fault.Unavailable, op, "tmux could not be started").WithHint("install tmux or put it on PATH")
	}
	return fault.Wrap(rerr, fault.Unavailable, op, "the tmux server at %s cannot be read", s.Socket)
}

// absent reports that certainly no server listens on the socket.
func (s Server) absent(ctx context.Context) bool {
	d := net.Dialer{Timeout: dropBound}
	c, err := d.DialContext(ctx, "unix", s.Socket)
	if err == nil {
		c.Close()
		return false
	}
	return errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ENOTDIR)
}

// ServerPanes is the answer of one server in an [Inventory].
type ServerPanes struct {
	Server Server
	Panes  []Pane
	Err    error // this server could not be read; the others are not affected
}

// parallelServers bounds how many servers are asked at once.
const parallelServers = 8

// Inventory asks all servers at once, each within its own bound, and returns their answers
// in the given order. A server that hangs delays nothing beyond that bound.
func Inventory(ctx context.Context, servers []Server) []ServerPanes {
	out := make([]ServerPanes, len(servers))
	gate := make(chan struct{}, parallelServers)
	var wg sync.WaitGroup
	for i, s := range servers {
		wg.Go(func() {
			gate <- struct{}{}
			defer func() { <-gate }()
			panes, err := s.Panes(ctx)
			out[i] = ServerPanes{Server: s, Panes: panes, Err: err}
		})
	}
	wg.Wait()
	return out
}
