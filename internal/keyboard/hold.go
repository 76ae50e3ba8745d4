// Package keyboard types into terminals that are proved, and into no others. A Hold is the
// exclusive right to type into one: it is taken under the pane's lock, with all evidence
// read anew, and every key goes to the very process that was found.
//
// It owns the way from a decision to a key. It records nothing, decides nothing about a
// Turn, and never presses a key twice: who holds it writes down what may happen before it
// does.
package keyboard

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/clock"
	"github.com/agent-knock-knock/akk/internal/discover"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/procinfo"
	"github.com/agent-knock-knock/akk/internal/tmux"
	"github.com/agent-knock-knock/akk/internal/turn"
)

const (
	// lockWait bounds the wait for whoever types into the pane now.
	lockWait = 5 * time.Second
	// enterGap lies between a paste and the next key: measured on real agents, a key in the
	// same moment as the paste is swallowed by some.
	enterGap = 100 * time.Millisecond
	// draftLimit bounds the wait for typed text to show in the composer.
	draftLimit = 3 * time.Second
	// lookPause lies between two looks at the screen while something is awaited.
	lookPause = 30 * time.Millisecond
)

// Finder reads all evidence of one terminal anew. [discover.Scanner] is one.
type Finder interface {
	Find(ctx context.Context, id ids.TerminalID) (discover.Terminal, error)
}

// Desk is what every Hold is taken with.
type Desk struct {
	Finder  Finder
	LockDir string // per user: two Stores may name the same pane
	Clock   clock.Clock
	// DraftLimit bounds the wait for typed text to show in the composer; 0 is three seconds.
	DraftLimit time.Duration
}

// Hold is the exclusive right to type into one terminal, until Release.
type Hold struct {
	term    discover.Terminal
	server  tmux.Server
	clock   clock.Clock
	unlock  func()
	touched bool
	draft   time.Duration
}

// Shot is one look at the terminal.
type Shot struct {
	Capture tmux.Capture
	Screen  agent.Screen
}

// Take locks the terminal and reads its evidence anew. It refuses when another process or
// directory is there than seen showed. The Hold's terminal is the one read under the lock.
func (d Desk) Take(ctx context.Context, seen discover.Terminal) (*Hold, error) {
	const op = "keyboard.take"
	lockCtx, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	unlock, err := tmux.LockPane(lockCtx, d.LockDir, seen.Ref.Endpoint.Key())
	if err != nil {
		return nil, err
	}
	now, err := d.Finder.Find(ctx, seen.ID)
	if err == nil && (now.Key() != seen.Key() || now.Ref.Cwd != seen.Ref.Cwd) {
		err = fault.New(turn.CodeTerminal, op, "%s changed hands meanwhile", seen.ID).WithHint("call agent_knock_knock_list again")
	}
	if err == nil && now.Conflict != "" {
		err = fault.New(turn.CodeTerminal, op, "%s is ambiguous: %s", seen.ID, now.Conflict).WithHint("%s", now.Remedy)
	}
	if err != nil {
		unlock()
		return nil, err
	}
	return &Hold{term: now, server: tmux.At(now.Pane.Socket), clock: d.Clock, unlock: unlock, draft: cmp.Or(d.DraftLimit, draftLimit)}, nil
}

// Release gives the terminal back. It may be called more than once.
func (h *Hold) Release() {
	if h.unlock != nil {
		h.unlock()
		h.unlock = nil
	}
}

// Terminal is the terminal as it was found under the lock.
func (h *Hold) Terminal() discover.Terminal { return h.term }

// Touched reports whether a byte may have reached the terminal through this Hold.
func (h *Hold) Touched() bool { return h.touched }

// Look captures the pane and proves that it still shows the process that was found.
func (h *Hold) Look(ctx context.Context) (Shot, error) {
	const op = "keyboard.look"
	c, err := h.server.Capture(ctx, h.term.Pane.ID, tmux.CaptureOptions{})
	if err != nil {
		return Shot{}, err
	}
	if c.Pane.PID != h.term.Ref.Endpoint.PanePID {
		return Shot{}, fault.New(turn.CodeTerminal, op, "the pane of %s holds another program now", h.term.ID).WithHint("call agent_knock_knock_list again")
	}
	if alive, err := procinfo.Alive(h.term.Ref.Process); err != nil || !alive {
		e := fault.New(turn.CodeTerminal, op, "the agent process of %s ended", h.term.ID).WithHint("call agent_knock_knock_list again")
		e.Err = err
		return Shot{}, e
	}
	return Shot{Capture: c, Screen: h.term.Adapter.Screen(c)}, nil
}

// Await looks until ok is true of a look, which is returned. After limit the error is
// [fault.Timeout] and the last look comes with it.
func (h *Hold) Await(ctx context.Context, limit time.Duration, ok func(Shot) bool) (Shot, error) {
	deadline := h.clock.Now().Add(limit)
	for {
		s, err := h.Look(ctx)
		if err != nil || ok(s) {
			return s, err
		}
		if !h.clock.Now().Before(deadline) {
			return s, fault.New(fault.Timeout, "keyboard.await", "the terminal did not show what was expected within %s (%s)", limit, s.Screen.State)
		}
		if err := h.pause(ctx, lookPause); err != nil {
			return s, err
		}
	}
}

// Press sends one key. An error with [tmux.CodeInputNotSent] proves that it was not sent;
// after any other error it may have been.
func (h *Hold) Press(ctx context.Context, key tmux.Key) error {
	err := h.server.Key(ctx, h.term.Pane.Target(), key)
	h.touched = h.touched || !fault.Is(err, tmux.CodeInputNotSent)
	return err
}

// Type puts text into a composer that is proved idle and empty, and proves that it holds
// exactly that. It presses no Enter. An error with [tmux.CodeInputNotSent], or one while
// Touched is false, proves that nothing was typed; after any other error the text may be a
// draft.
func (h *Hold) Type(ctx context.Context, text string) error {
	const op = "keyboard.type"
	s, err := h.Look(ctx)
	if err != nil {
		return err
	}
	if !s.Screen.Free() || s.Capture.Pane.InMode {
		return fault.New(turn.CodeTerminal, op, "the composer of %s is not idle and empty (%s, %s)", h.term.ID, s.Screen.State, s.Screen.Composer).
			WithHint("nothing was typed; look at the pane, then call agent_knock_knock_list again")
	}
	return h.Paste(ctx, text)
}

// Paste puts text where the focus is and waits until the composer shows exactly that,
// twice in a row. The caller has proved where the focus is. A command of the agent, which
// begins with "/", may have opened the list of commands, where Enter takes what is typed.
func (h *Hold) Paste(ctx context.Context, text string) error {
	err := h.server.Paste(ctx, h.term.Pane.Target(), []byte(text))
	if err != nil {
		h.touched = h.touched || !fault.Is(err, tmux.CodeInputNotSent)
		return err
	}
	h.touched = true
	if err := h.pause(ctx, enterGap); err != nil {
		return err
	}
	same := 0
	_, err = h.Await(ctx, h.draft, func(s Shot) bool {
		exact := strings.HasPrefix(text, "/") && s.Screen.Draft == text
		if s.Screen.Composer != agent.ComposerDraft || !exact && h.term.Adapter.DraftMatches(s.Screen, text) != agent.MatchYes {
			same = 0
			return false
		}
		same++
		return same == 2
	})
	return err
}

func (h *Hold) pause(ctx context.Context, d time.Duration) error {
	timer, stop := h.clock.NewTimer(d)
	defer stop()
	select {
	case <-timer:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
