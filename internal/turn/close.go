package turn

import (
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
)

// ReasonHandoff is the reason of a close that a human made needed by switching the
// terminal to another thread.
const ReasonHandoff = "superseded_by_human_context_switch"

// Dispositions of a close: what was known beyond a person's wish.
const (
	DispositionDead    = "verified_dead"        // the agent's process is proved gone
	DispositionHandoff = "human_context_switch" // the terminal shows another thread
	DispositionOrphan  = "orphaned_submission"  // nobody carries the submission on
	defaultReason      = "closed by request"
)

// Closing says why a Turn is given up and what is known.
type Closing struct {
	Reason      string
	Disposition string // one of the dispositions, "" for a plain close
}

// Close gives a Turn up: its terminal is free for another task and nothing that the agent
// still does is reported for it. It stops no agent. A submission that is being typed right
// now cannot be closed; one that is uncertain can, and stays a submission that nobody may
// repeat. Closing a closed Turn changes nothing.
func Close(t Turn, c Closing, now time.Time) (Plan, error) {
	p := Plan{Turn: t}
	if t.Status == Closed {
		return p, nil
	}
	if t.Status == Created {
		return p, fault.New(CodeNotAllowed, "turn.close", "turn %s is being submitted right now", t.ID).WithHint("look at it with agent_knock_knock_status in a few seconds")
	}
	e := Event{At: now, Kind: EvClosed, Reason: orElse(c.Reason, defaultReason)}
	if c.Disposition != "" {
		e.Life = &Life{Disposition: c.Disposition, ProcessGone: c.Disposition == DispositionDead}
	}
	p.add(e)
	return p, nil
}

// applyClosed folds what a close knew beyond a person's wish.
func applyClosed(t Turn, e Event) Turn {
	t.Prompt = nil
	if e.Life == nil {
		return t
	}
	t.Disposition, t.ProcessGone = e.Life.Disposition, t.ProcessGone || e.Life.ProcessGone
	return t
}
