package tmux

import (
	"bytes"
	"context"
	"strconv"
	"strings"

	"github.com/agent-knock-knock/akk/internal/fault"
)

// MaxCaptureLines bounds the rows of one capture; the last ones that show anything are kept.
const MaxCaptureLines = 240

// CaptureOptions says what is captured besides the visible screen.
type CaptureOptions struct {
	Scrollback int  // rows above the screen; with the screen at most MaxCaptureLines are returned
	Join       bool // rows that the terminal wrapped become one line; FirstRow is then unknown (0)
}

// Capture reads the facts of a pane and its screen, plain and styled, by one tmux command,
// which the server runs without reading anything of the program in between. In copy mode
// the program's own screen is captured. A pane that does not exist is [fault.NotFound].
func (s Server) Capture(ctx context.Context, paneID string, o CaptureOptions) (Capture, error) {
	const op = "tmux.capture"
	if !validPaneID(paneID) {
		return Capture{}, fault.New(fault.Invalid, op, "%q is no pane id", paneID)
	}
	m := newMarks()
	shot := []string{"capture-pane", "-p", "-t", paneID}
	if o.Scrollback > 0 {
		shot = append(shot, "-S", "-"+strconv.Itoa(min(o.Scrollback, MaxCaptureLines)))
	}
	if o.Join {
		shot = append(shot, "-J")
	}
	border := []string{";", "display-message", "-p", m.sep + m.sep, ";"}
	args := []string{"display-message", "-p", "-t", paneID, m.format()}
	args = append(append(args, border...), shot...)
	args = append(append(append(args, border...), shot...), "-e")
	args = append(args, border[:len(border)-1]...)

	out, rerr := s.run(ctx, readBound, maxScreen, nil, args...)
	p, err := s.onePane(m, out, rerr, op, paneID)
	if err != nil {
		return Capture{}, err
	}
	if rerr != nil {
		return Capture{}, s.readFailure(rerr, op)
	}
	parts := bytes.Split(out, []byte(m.sep+m.sep+"\n"))
	if len(parts) != 4 || len(parts[3]) != 0 {
		return Capture{}, fault.New(fault.Unavailable, op, "the tmux server at %s answers in an unknown form", s.Socket)
	}
	return newCapture(op, p, parts[1], parts[2], o.Join)
}

// bound keeps the last MaxCaptureLines rows up to the last one that shows something or
// holds the cursor: on a very high screen a program may still draw at the top.
func (c *Capture) bound(joined bool) {
	if len(c.Lines) <= MaxCaptureLines {
		return
	}
	end := len(c.Lines)
	for end > MaxCaptureLines && c.Lines[end-1] == "" && (joined || c.FirstRow+end-1 > c.Pane.CursorY) {
		end--
	}
	begin := end - MaxCaptureLines
	c.Lines, c.Styled = c.Lines[begin:end], c.Styled[begin:end]
	if !joined {
		c.FirstRow += begin
	}
}

func screenLines(b []byte) []string {
	s := strings.TrimSuffix(strings.ToValidUTF8(string(b), "\uFFFD"), "\n")
	return strings.Split(s, "\n")
}
