package dispatch

import (
	"context"
	"strings"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/discover"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/turn"
	"github.com/agent-knock-knock/akk/internal/turn/turnsql"
)

// CodeAmbiguous: no target was named and there is not exactly one.
const CodeAmbiguous fault.Code = "ambiguous"

// target finds the terminal that a send means. A session id is strict: the terminal must
// still show exactly that native thread. A terminal id follows whatever thread is in the
// foreground. Neither means that there must be exactly one ready terminal.
func (s *Service) target(ctx context.Context, in SendInput) (discover.Terminal, error) {
	switch {
	case in.SessionID != "" && in.TerminalID != "":
		return discover.Terminal{}, fault.New(fault.Invalid, "dispatch.send", "session_id and terminal_id were both given").WithHint("give one of them")
	case in.TerminalID != "":
		return s.Scanner.Find(ctx, in.TerminalID)
	case in.SessionID != "":
		return s.sessionTerminal(ctx, in.SessionID)
	}
	return s.onlyReady(ctx)
}

func (s *Service) sessionTerminal(ctx context.Context, id ids.SessionID) (discover.Terminal, error) {
	const op = "dispatch.send"
	var session turn.Session
	if err := s.DB.View(ctx, func(tx *store.Tx) (err error) {
		session, err = turnsql.GetSession(tx, id)
		return err
	}); err != nil {
		return discover.Terminal{}, err
	}
	if session.Status != turn.SessionBound {
		return discover.Terminal{}, fault.New(turn.CodeTerminal, op, "session %s is not bound to a terminal", id).WithHint("send to a terminal_id from agent_knock_knock_list")
	}
	t, err := s.Scanner.Find(ctx, session.Binding.TerminalID)
	if err != nil {
		return t, err
	}
	if t.Key() != session.Terminal {
		return t, fault.New(turn.CodeTerminal, op, "the terminal of session %s runs another process now", id).WithHint("call agent_knock_knock_list again")
	}
	if session.ThreadID != "" && (t.Native.Thread != agent.ThreadResolved || t.Native.ThreadID != session.ThreadID) {
		return t, fault.New(turn.CodeTerminal, op, "the terminal of session %s does not provably show its thread any more", id).
			WithHint("send to the terminal_id to follow the thread in the foreground")
	}
	return t, nil
}

func (s *Service) onlyReady(ctx context.Context) (discover.Terminal, error) {
	scan, err := s.Scanner.Scan(ctx, discover.Options{Screens: true})
	if err != nil {
		return discover.Terminal{}, err
	}
	held, err := s.blocking(ctx)
	if err != nil {
		return discover.Terminal{}, err
	}
	var ready []discover.Terminal
	for _, t := range scan.Terminals {
		if _, busy := held[t.Key()]; !busy && discover.Ready(t) == nil {
			ready = append(ready, t)
		}
	}
	if scan.Unseen != nil { // what was not seen may be ready too
		return discover.Terminal{}, fault.New(CodeAmbiguous, "dispatch.send", "not everything could be looked at: %s: %s", scan.Unseen.Where, scan.Unseen.What).
			WithHint("give a terminal_id from agent_knock_knock_list, or mend that")
	}
	if len(ready) == 1 {
		return ready[0], nil
	}
	names := make([]string, len(ready))
	for i, t := range ready {
		names[i] = string(t.ID)
	}
	e := fault.New(CodeAmbiguous, "dispatch.send", "%d of %d terminals are ready; a target is needed", len(ready), len(scan.Terminals))
	if len(ready) == 0 {
		return discover.Terminal{}, e.WithHint("start an agent in tmux, or see agent_knock_knock_list for why none is ready")
	}
	return discover.Terminal{}, e.WithHint("give one terminal_id: %s", strings.Join(names, ", "))
}

// blocking returns the Turns that keep terminals, by terminal key.
func (s *Service) blocking(ctx context.Context) (map[string]turnsql.Row, error) {
	held := map[string]turnsql.Row{}
	err := s.DB.View(ctx, func(tx *store.Tx) error {
		rows, err := turnsql.Blocking(tx)
		for _, r := range rows {
			held[r.Terminal] = r
		}
		return err
	})
	return held, err
}
