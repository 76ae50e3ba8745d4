package dispatch

import (
	"context"
	"time"

	"github.com/agent-knock-knock/akk/internal/discover"
	"github.com/agent-knock-knock/akk/internal/native"
	"github.com/agent-knock-knock/akk/internal/native/nativesql"
	"github.com/agent-knock-knock/akk/internal/outbox"
	"github.com/agent-knock-knock/akk/internal/outbox/outboxsql"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/turn"
	"github.com/agent-knock-knock/akk/internal/turn/turnsql"
)

// facts is what the Store knows of a scan, read in one transaction.
type facts struct {
	now      time.Time
	held     map[string]turnsql.Row  // Turns that keep a terminal, by terminal key
	recent   map[string]turnsql.Row  // the newest Turn of a seen terminal
	sessions map[string]turn.Session // bound Sessions of seen terminals
	unheard  []turnsql.Row           // settled Turns whose callback is not delivered yet
	history  []turnsql.Row           // settled Turns, newest first
	sent     map[string]outboxsql.Brief
	moving   map[string]native.Transition // changes of a thread that keep a terminal, by terminal key
}

// read collects the facts of terminals. With all, the settled Turns are among them.
func (s *Service) readFacts(ctx context.Context, terminals []discover.Terminal, all bool) (facts, error) {
	keys := make([]string, len(terminals))
	for i, t := range terminals {
		keys[i] = t.Key()
	}
	f := facts{now: s.Clock.Now(), held: map[string]turnsql.Row{}, moving: map[string]native.Transition{}}
	if s.DB == nil {
		return f, nil // no Store yet: terminals are shown all the same
	}
	return f, s.DB.View(ctx, func(tx *store.Tx) (err error) {
		held, err := turnsql.Blocking(tx)
		if err != nil {
			return err
		}
		for _, r := range held {
			f.held[r.Terminal] = r
		}
		moving, err := nativesql.Open(tx)
		if err != nil {
			return err
		}
		for _, r := range moving {
			f.moving[r.Terminal] = r.Transition
		}
		if f.recent, err = turnsql.NewestOn(tx, keys); err != nil {
			return err
		}
		if f.sessions, err = turnsql.BoundSessions(tx, keys); err != nil {
			return err
		}
		waiting, err := outboxsql.OpenSources(tx, outbox.SourceTurn, turnsShown)
		if err != nil {
			return err
		}
		if f.unheard, err = turnsql.Settled(tx, waiting); err != nil {
			return err
		}
		if all {
			if f.history, err = turnsql.History(tx, historyShown); err != nil {
				return err
			}
		}
		f.sent, err = outboxsql.Briefs(tx, outbox.SourceTurn, f.turnIDs())
		return err
	})
}

// turnIDs names every Turn of the facts.
func (f facts) turnIDs() []string {
	var out []string
	for _, group := range []map[string]turnsql.Row{f.held, f.recent} {
		for _, r := range group {
			out = append(out, string(r.Turn.ID))
		}
	}
	for _, group := range [][]turnsql.Row{f.unheard, f.history} {
		for _, r := range group {
			out = append(out, string(r.Turn.ID))
		}
	}
	return out
}
