package tmux

import (
	"bytes"
	"context"
	"errors"
	"strings"

	"github.com/agent-knock-knock/akk/internal/fault"
)

// capturesAtOnce bounds the panes of one command. The tmux client sends a command in one
// message of at most 16 KiB; a pane needs up to 300 bytes of it.
const capturesAtOnce = 40

// Shot is the answer for one pane of [Server.Captures].
type Shot struct {
	Capture
	Err error // this pane could not be captured; the others are not affected
}

// Captures reads the visible screens of many panes, as [Server.Capture] does for one,
// with one run of the tmux client for every 40 of them: starting the client costs far more
// than the capture. The answers come in the order of paneIDs. A pane that does not exist
// has [fault.NotFound] and hides no other one. The error is for all: tmux could not be
// asked.
func (s Server) Captures(ctx context.Context, paneIDs []string) ([]Shot, error) {
	out := make([]Shot, 0, len(paneIDs))
	for len(paneIDs) > 0 {
		n := min(len(paneIDs), capturesAtOnce)
		shots, err := s.captureSome(ctx, paneIDs[:n])
		if err != nil {
			return nil, err
		}
		out, paneIDs = append(out, shots...), paneIDs[n:]
	}
	return out, nil
}

// captureSome asks for at most capturesAtOnce panes by one command. The server runs it
// without reading anything of the programs in between, so the listing at its begin and the
// screens after it are of one moment. capture-pane ends the whole command when its pane
// does not exist; if-shell is asked first, and does not.
func (s Server) captureSome(ctx context.Context, paneIDs []string) ([]Shot, error) {
	const op = "tmux.captures"
	m := newMarks()
	border := "display-message -p " + m.start // alone on its line, as in no row
	args := []string{"list-panes", "-a", "-F", m.format(), ";", "display-message", "-p", m.start}
	for _, id := range paneIDs {
		if !validPaneID(id) {
			return nil, fault.New(fault.Invalid, op, "%q is no pane id", id)
		}
		shot := "capture-pane -p -t " + id
		args = append(args, ";", "if-shell", "-F", "-t", id, "#{==:#{pane_id},"+id+"}",
			shot+" ; "+border+" ; "+shot+" -e ; "+border, border+" ; "+border)
	}
	out, rerr := s.run(ctx, readBound, maxScreen, nil, args...)
	if rerr != nil {
		if errors.Is(rerr, errTooLarge) && len(paneIDs) > 1 { // huge panes: fewer at once
			return s.captureHalves(ctx, paneIDs)
		}
		return nil, s.readFailure(rerr, op)
	}
	parts := bytes.Split(out, []byte(m.start+"\n"))
	if len(parts) != 2*len(paneIDs)+2 || len(parts[len(parts)-1]) != 0 {
		return nil, fault.New(fault.Unavailable, op, "the tmux server at %s answers in an unknown form", s.Socket)
	}
	rows, _ := m.parse(parts[0], s.Socket)
	listed := make(map[string]Pane, len(rows))
	for _, p := range rows {
		listed[p.ID] = p
	}
	shots := make([]Shot, len(paneIDs))
	for i, id := range paneIDs {
		p, ok := listed[id]
		if !ok {
			shots[i].Err = fault.New(fault.NotFound, op, "pane %s does not exist on the tmux server at %s", id, s.Socket)
			continue
		}
		shots[i].Capture, shots[i].Err = newCapture(op, p, parts[2*i+1], parts[2*i+2], false)
	}
	return shots, nil
}

func (s Server) captureHalves(ctx context.Context, paneIDs []string) ([]Shot, error) {
	var out []Shot
	for _, half := range [][]string{paneIDs[:len(paneIDs)/2], paneIDs[len(paneIDs)/2:]} {
		shots, err := s.captureSome(ctx, half)
		if err != nil {
			return nil, err
		}
		out = append(out, shots...)
	}
	return out, nil
}

// newCapture joins what one moment showed of a pane.
func newCapture(op string, p Pane, plain, styled []byte, joined bool) (Capture, error) {
	c := Capture{Pane: p, Lines: screenLines(plain), Styled: screenLines(styled)}
	if len(c.Lines) != len(c.Styled) {
		return Capture{}, fault.New(fault.Unavailable, op, "the two captures of pane %s differ in rows", p.ID)
	}
	for i := range c.Lines {
		c.Lines[i] = strings.TrimRight(c.Lines[i], " ")
	}
	if !joined {
		c.FirstRow = p.Height - len(c.Lines)
	}
	c.bound(joined)
	return c, nil
}
