package turn

import (
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
)

// EvRoundReserved begins another round of a completed Turn: an answer, sent as a
// submission of its own.
const EvRoundReserved EventKind = "round_reserved"

// CodeBudget refuses a round beyond the hard limit.
const CodeBudget fault.Code = "budget_exhausted"

// The budget of answers of one Turn (spec part 4.3).
const (
	roundsConverge = 30
	roundsWarning  = 40
	SoftRounds     = 50
	MaxRounds      = 100
)

// Budget is how many answers a Turn took.
type Budget struct {
	RoundsUsed int    `json:"rounds_used"`
	SoftLimit  int    `json:"soft_limit"`
	HardLimit  int    `json:"hard_limit"`
	Level      string `json:"level"` // ok, converge, warning, soft_stop, hard_stop
}

// Budget returns the Turn's budget.
func (t Turn) Budget() Budget {
	b := Budget{RoundsUsed: t.Round, SoftLimit: SoftRounds, HardLimit: MaxRounds, Level: "ok"}
	switch {
	case t.Round >= MaxRounds:
		b.Level = "hard_stop"
	case t.Round >= SoftRounds:
		b.Level = "soft_stop"
	case t.Round >= roundsWarning:
		b.Level = "warning"
	case t.Round >= roundsConverge:
		b.Level = "converge"
	}
	return b
}

// Round is what an answer brings anew: its own message, route, anchor and text. Whatever
// was proved of the round before it proves nothing of this one.
type Round struct {
	Message      ids.MessageID
	Route        ids.RouteID
	Origin       ids.BridgeID
	Channel      Channel
	AgentVersion string
	Mode         string
	RequestHash  string
	RequestBytes int
	Anchor       Anchor
}

// CanRespond returns nil when the Turn may be continued with an answer: its agent ended
// the round before with a result, which may have been a question.
func CanRespond(t Turn) error {
	const op = "turn.respond"
	refuse := func(hint, format string, args ...any) error {
		return fault.New(CodeNotAllowed, op, format, args...).WithHint("%s", hint)
	}
	switch {
	case t.Prompt != nil && t.Prompt.Kind == PromptApproval && t.Status.Blocking():
		return refuse("decide about it with agent_knock_knock_approve", "turn %s waits for an approval", t.ID)
	case t.Prompt != nil && t.Status.Blocking():
		return refuse("answer it with agent_knock_knock_respond_interaction, or in the terminal", "turn %s waits at a question of the agent's own", t.ID)
	case t.Status.Blocking():
		return refuse(t.NextStep(), "turn %s is %s (%s)", t.ID, t.Status, t.Stage)
	case t.Status != Idle || t.Stage != Accepted && (t.Stage != Aborted || t.Round == 0):
		return refuse("send a new task with agent_knock_knock_send", "turn %s is %s and cannot be continued", t.ID, t.Status)
	case t.ThreadID == "":
		return refuse("send a new task with agent_knock_knock_send", "the thread of turn %s is not known", t.ID)
	case t.Round >= MaxRounds:
		return fault.New(CodeBudget, op, "turn %s took %d answers, the limit is %d", t.ID, t.Round, MaxRounds).WithHint("close the matter, or send a new task")
	}
	return nil
}

// ReserveRound continues a completed Turn: the same Turn, a new submission. Nothing has
// been typed; the ladder and the clocks begin anew.
func ReserveRound(t Turn, r Round, now time.Time) (Plan, error) {
	if err := CanRespond(t); err != nil {
		return Plan{}, err
	}
	p := Plan{Turn: t}
	next := t
	next.MessageID, next.Route, next.Origin, next.Channel = r.Message, r.Route, r.Origin, r.Channel
	next.AgentVersion, next.Mode = r.AgentVersion, r.Mode
	next.RequestHash, next.RequestBytes, next.Anchor = r.RequestHash, r.RequestBytes, r.Anchor
	next.Round++
	next.RoundAt, next.LastActivityAt = now, now
	next.Status, next.Stage, next.Reason = Created, Reserved, ""
	next.NativeTurnID, next.Trouble, next.Evidence, next.FinalMessage, next.AnswerDigest, next.AnswerBytes = "", "", "", "", "", 0
	next.Prompt, next.LastPrompt, next.PromptGoneAt, next.Answer = nil, "", time.Time{}, nil
	next.Cancel, next.CancelRequestedAt, next.StopProved, next.ProcessGone, next.Disposition = nil, time.Time{}, false, false, ""
	next.EnteredAt, next.AcceptedAt, next.EndedAt = time.Time{}, time.Time{}, time.Time{}
	p.add(Event{At: now, Kind: EvRoundReserved, Turn: &next})
	return p, nil
}
