package tmux

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/agent-knock-knock/akk/internal/fault"
)

// The two ways in which input fails. There is no third: whoever types must know whether
// anything may have reached the program.
const (
	// CodeInputNotSent proves that nothing reached the pane.
	CodeInputNotSent fault.Code = "input_not_sent"
	// CodeInputUncertain says that the input may have reached the pane, in whole or in part.
	// It must never be repeated.
	CodeInputUncertain fault.Code = "input_uncertain"
)

// Paste gives text to the program in the pane as one paste, framed if the program asked
// for bracketed paste, byte for byte: LF stays LF, and no Enter is added. Nil means that
// tmux took the whole text for this program; that the program understood it is for the
// caller to prove.
//
// The text reaches tmux by standard input, so its length is limited by [MaxText] alone
// and nothing in it is taken for an option, a key or a separator. See [ValidateText] for
// what is refused with [fault.Invalid].
//
// The command that pastes also checks that the pane is t, alive, in no mode, takes input
// and is not synchronised with others, and that a program known not to frame pastes gets
// one line without a Tab only: to such a program both are keys. Failures have [CodeInputNotSent] or [CodeInputUncertain].
func (s Server) Paste(ctx context.Context, t Target, text []byte) error {
	const op = "tmux.paste"
	if err := ValidateText(text, MaxText); err != nil {
		return err
	}
	if err := s.ready(ctx, op, t); err != nil {
		return err
	}
	buffer := "akk-" + newNonce()
	if err := s.load(ctx, op, buffer, text); err != nil {
		return err
	}
	g := guard{target: t, needsFrame: bytes.ContainsAny(text, "\n\t")}
	err := s.guarded(ctx, op, g,
		fmt.Sprintf("paste-buffer -p -r -d -b %s -t %s", buffer, t.PaneID),
		"delete-buffer -b "+buffer)
	if err != nil {
		s.drop(ctx, buffer)
	}
	return err
}

// Key sends one key to the program in the pane, under the same checks as [Server.Paste].
func (s Server) Key(ctx context.Context, t Target, k Key) error {
	const op = "tmux.key"
	if !k.valid() {
		return fault.New(fault.Invalid, op, "%s is no key that is sent", k)
	}
	if err := s.ready(ctx, op, t); err != nil {
		return err
	}
	return s.guarded(ctx, op, guard{target: t}, k.command(t.PaneID), "")
}

// ready refuses what needs no tmux to be refused.
func (s Server) ready(ctx context.Context, op string, t Target) error {
	switch {
	case t.Socket != s.Socket:
		return notSent(nil, op, "the target is on another tmux server")
	case !validPaneID(t.PaneID) || t.PanePID <= 0:
		return notSent(nil, op, "the target names no pane and process")
	case ctx.Err() != nil:
		return notSent(ctx.Err(), op, "the request was over before tmux was called")
	case s.absent(ctx):
		return notSent(nil, op, "no tmux server runs at %s", s.Socket)
	}
	return nil
}

// load puts text into a buffer of the server and makes sure that all of it arrived. No
// pane is touched, so every failure proves that nothing was sent.
func (s Server) load(ctx context.Context, op, buffer string, text []byte) error {
	out, rerr := s.run(ctx, inputBound, maxListing, text,
		"load-buffer", "-b", buffer, "-", ";",
		"list-buffers", "-f", "#{==:#{buffer_name},"+buffer+"}", "-F", "#{buffer_name} #{buffer_size}")
	if rerr != nil {
		s.drop(ctx, buffer)
		return notSent(rerr, op, "tmux did not take the text")
	}
	if got, want := strings.TrimSpace(string(out)), buffer+" "+strconv.Itoa(len(text)); got != want {
		s.drop(ctx, buffer)
		return notSent(nil, op, "tmux did not take the whole text")
	}
	return nil
}

// drop deletes a buffer that may be left. It works after ctx ended too, within its own
// bound; a server that hangs keeps the buffer.
func (s Server) drop(ctx context.Context, buffer string) {
	s.run(context.WithoutCancel(ctx), dropBound, maxStderr, nil, "delete-buffer", "-b", buffer)
}

// guarded runs act under the guard and reads back which way tmux went. The server runs
// the check and act in one go, without handling the end of a process or a person's key in
// between. cleanup, if any, runs when the guard refuses.
//
// The end of ctx does not end the command: it takes milliseconds, and a client killed half
// way would turn a known result into an uncertain one. Its own bound does end it.
func (s Server) guarded(ctx context.Context, op string, g guard, act, cleanup string) error {
	m := newMarks()
	done := m.end + m.end
	refused := "display-message -p -t " + g.target.PaneID + " '" + m.format() + "'"
	if cleanup != "" {
		refused += " ; " + cleanup
	}
	out, rerr := s.run(context.WithoutCancel(ctx), inputBound, maxListing, nil,
		"if-shell", "-F", "-t", g.target.PaneID, g.condition(),
		act+" ; display-message -p '"+done+"'", refused)
	rows, _ := m.parse(out, s.Socket)
	switch {
	case bytes.Contains(out, []byte(done)):
		return nil // printed after act succeeded, whatever became of the client then
	case rerr != nil && !rerr.started:
		return notSent(rerr, op, "tmux could not be started")
	case len(rows) > 0:
		return notSent(nil, op, "%s", g.reason(rows[0]))
	case m.empty(out):
		return notSent(nil, op, "pane %s does not exist any more", g.target.PaneID)
	}
	if rerr == nil {
		rerr = &runError{started: true, err: errors.New("tmux printed nothing")}
	}
	return fault.Wrap(rerr, CodeInputUncertain, op, "tmux failed while it typed into pane %s", g.target.PaneID).
		WithHint("look at the pane; do not send the text again blindly")
}

func notSent(cause error, op, format string, args ...any) error {
	e := fault.New(CodeInputNotSent, op, format, args...).
		WithHint("nothing reached the pane; list the terminals again before another try")
	e.Err = cause
	return e
}

// guard is what must hold at the moment of input.
type guard struct {
	target     Target
	needsFrame bool // the text holds what is a key outside of a frame
}

// condition is the guard in tmux's format language. tmux 3.3a crashes when it pastes into
// a dead pane; in a mode, keys act on tmux and a paste loses its frame.
func (g guard) condition() string {
	all := []string{
		"#{==:#{pane_id}," + g.target.PaneID + "}",
		"#{==:#{pane_pid}," + strconv.Itoa(g.target.PanePID) + "}",
		"#{==:#{pane_dead},0}",
		"#{==:#{pane_in_mode},0}",
		"#{==:#{pane_input_off},0}",
		"#{==:#{pane_synchronized},0}",
	}
	if g.needsFrame {
		all = append(all, "#{!=:#{bracket_paste_flag},0}") // empty where tmux cannot tell
	}
	cond := all[0]
	for _, c := range all[1:] {
		cond = "#{&&:" + cond + "," + c + "}"
	}
	return cond
}

// reason says which part of the guard did not hold.
func (g guard) reason(p Pane) string {
	id := g.target.PaneID
	switch {
	case p.ID != id:
		return "pane " + id + " does not exist any more"
	case p.PID != g.target.PanePID:
		return "pane " + id + " changed hands: another process runs in it"
	case p.Dead:
		return "the program in pane " + id + " has ended"
	case p.InMode:
		return "pane " + id + " is in copy mode or another tmux mode; leave it (q) first"
	case p.InputOff:
		return "input to pane " + id + " is switched off in tmux"
	case p.Synced:
		return "pane " + id + " is synchronised with other panes"
	case g.needsFrame && p.BracketedPaste == FlagOff:
		return "the program in pane " + id + " does not frame pastes, so its lines or Tabs would be taken for keys"
	}
	return "pane " + id + " did not pass the check before input"
}
