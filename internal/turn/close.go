package turn

import (
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
)

// Close gives a Turn up: its terminal is free for another task and nothing that the agent
// still does is reported for it. It stops no agent. A submission that is being typed right
// now cannot be closed; one that is uncertain can, and stays a submission that nobody may
// repeat. Closing a closed Turn changes nothing.
func Close(t Turn, reason string, now time.Time) (Plan, error) {
	p := Plan{Turn: t}
	if t.Status == Closed {
		return p, nil
	}
	if t.Status == Created {
		return p, fault.New(CodeNotAllowed, "turn.close", "turn %s is being submitted right now", t.ID).WithHint("look at it with agent_knock_knock_status in a few seconds")
	}
	if reason == "" {
		reason = "closed by request"
	}
	p.add(Event{At: now, Kind: EvClosed, Reason: reason})
	return p, nil
}
