package turn

import (
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
)

// Events of cancel and renew.
const (
	EvCancelRequested EventKind = "cancel_requested" // written before the key or frame
	EvCancelSent      EventKind = "cancel_sent"
	EvCancelNotSent   EventKind = "cancel_not_sent" // proved: nothing reached the agent
	EvCancelUncertain EventKind = "cancel_uncertain"
	EvRenewed         EventKind = "renewed"
)

// CodeIdleNoEnd is the code of an [ObsTrouble]: the agent's records hold the request and no
// end of its turn, and the agent says that it is idle.
const CodeIdleNoEnd = "idle_without_end"

// CancelState is how far a request to stop is proved.
type CancelState string

const (
	CancelRequested CancelState = "requested" // durable, before the key
	CancelSent      CancelState = "sent"
	CancelNotSent   CancelState = "not_sent"
	CancelUncertain CancelState = "uncertain" // a key was possible
)

// Cancel is one request to stop the agent.
type Cancel struct {
	Call   string      `json:"call"`             // the tool call: the same call presses no second key
	Means  string      `json:"means"`            // key:Escape, or socket
	Denies bool        `json:"denies,omitempty"` // an approval was open: the stop denies it
	State  CancelState `json:"state"`
	At     time.Time   `json:"at"`
}

// Life is what cancel, renew and close events carry.
type Life struct {
	Cancel      *Cancel       `json:"cancel,omitempty"`
	Inactivity  time.Duration `json:"inactivity_ns,omitempty"` // renewed
	Call        string        `json:"call,omitempty"`          // renewed
	ProcessGone bool          `json:"process_gone,omitempty"`  // closed: the agent is verified dead
	Disposition string        `json:"disposition,omitempty"`   // closed: see Closing
}

// CancelPending reports whether the agent was asked to stop and no evidence shows that it
// did.
func (t Turn) CancelPending() bool {
	return t.Status.Blocking() && t.Cancel != nil && t.Cancel.State != CancelNotSent
}

// CanCancel returns nil when a request to stop may be made for the Turn: its native turn is
// proved to be ours and has not ended. Whether the agent works on it now is for the
// terminal to show.
func CanCancel(t Turn) error {
	const op = "turn.cancel"
	switch {
	case !t.Status.Blocking():
		return fault.New(CodeNotAllowed, op, "turn %s is %s already", t.ID, t.Status).WithHint("nothing is left to stop")
	case t.ProcessGone:
		return fault.New(CodeNotAllowed, op, "the agent process of turn %s ended", t.ID).WithHint("close the turn with agent_knock_knock_close")
	case t.Stage != Accepted:
		return fault.New(CodeNotAllowed, op, "it is not proved that the agent works on turn %s (%s)", t.ID, t.Stage).
			WithHint("no key was sent; wait for the acceptance, or look at it with agent_knock_knock_status")
	}
	return nil
}

// RequestCancel records that the agent is asked to stop from now on. It is committed
// before the key.
func RequestCancel(t Turn, c Cancel, now time.Time) (Plan, error) {
	if err := CanCancel(t); err != nil {
		return Plan{}, err
	}
	c.State, c.At = CancelRequested, now
	p := Plan{Turn: t}
	p.add(Event{At: now, Kind: EvCancelRequested, Life: &Life{Cancel: &c}})
	return p, nil
}

// SettleCancel records what became of the key. An end of the Turn that was observed
// meanwhile wins and nothing changes.
func SettleCancel(t Turn, state CancelState, reason string, now time.Time) Plan {
	p := Plan{Turn: t}
	if !t.Status.Blocking() || t.Cancel == nil || t.Cancel.State != CancelRequested {
		return p
	}
	kind := EvCancelSent
	switch state {
	case CancelNotSent:
		kind = EvCancelNotSent
	case CancelUncertain:
		kind = EvCancelUncertain
	}
	p.add(Event{At: now, Kind: kind, Reason: reason})
	return p
}

// CanRenew returns nil when a stalled Turn may be waited for again: its submission is not
// in doubt, its agent is not known to be dead, and its hard limit is not reached.
func CanRenew(t Turn, now time.Time) error {
	const op = "turn.renew"
	refuse := func(hint, format string, args ...any) error {
		return fault.New(CodeNotAllowed, op, format, args...).WithHint("%s", hint)
	}
	switch {
	case t.Status != Stalled:
		return refuse("only a stalled turn is renewed", "turn %s is %s, not stalled", t.ID, t.Status)
	case t.ProcessGone:
		return refuse("close it with agent_knock_knock_close", "the agent process of turn %s ended", t.ID)
	case t.Stage != Accepted && t.Stage != EnterDispatched:
		return refuse("look at the terminal, then close the turn; waiting longer proves nothing", "the submission of turn %s is %s", t.ID, t.Stage)
	case t.Hard > 0 && !now.Before(t.HardDeadline()):
		return refuse("close it with agent_knock_knock_close", "turn %s reached its hard limit of %s", t.ID, t.Hard)
	}
	return nil
}

// Renew waits for a stalled Turn again: its inactivity deadline is now plus inactivity, its
// hard limit stays. 0 keeps the limit that it had, or the default where it had none.
func Renew(t Turn, inactivity time.Duration, call string, now time.Time) (Plan, error) {
	if err := CanRenew(t, now); err != nil {
		return Plan{}, err
	}
	if inactivity <= 0 {
		inactivity = t.Inactivity
	}
	if inactivity <= 0 {
		inactivity = DefaultInactivity
	}
	p := Plan{Turn: t}
	p.add(Event{At: now, Kind: EvRenewed, Life: &Life{Inactivity: inactivity, Call: call}})
	return p, nil
}

// stopped reports whether an observation shows that an agent that was asked to stop has
// stopped without a record of it: it says that it is idle, and its records hold no end.
func stopped(t Turn, o Observation) bool {
	return o.Kind == ObsTrouble && o.Code == CodeIdleNoEnd && t.CancelPending() &&
		(o.NativeTurnID == "" || o.NativeTurnID == t.NativeTurnID) &&
		(o.At.IsZero() || !o.At.Before(t.Cancel.At)) // what was seen before the key proves nothing of it
}

// cancelled is the end of a Turn by an idle agent without a record of the end.
func (p *Plan) cancelled(o Observation, now time.Time) {
	id := p.message("cancelled", p.Turn.NativeTurnID)
	p.observe(o, id, now)
	p.Notices = append(p.Notices, Notice{MessageID: id, Type: "error", Kind: "interrupted", Body: cancelledBody(p.Turn)})
}

// applyLife folds the events of cancel and renew. known is false for every other kind.
func applyLife(t Turn, e Event) (next Turn, known bool, err error) {
	switch e.Kind {
	case EvCancelRequested:
		c := *e.Life.Cancel
		t.Cancel, t.CancelRequestedAt, t.StopProved = &c, e.At, false
	case EvCancelSent:
		t = t.cancelState(CancelSent)
	case EvCancelNotSent:
		t = t.cancelState(CancelNotSent)
		t.CancelRequestedAt = time.Time{}
	case EvCancelUncertain:
		t = t.cancelState(CancelUncertain)
	case EvRenewed:
		t.Status, t.Reason = WaitingForAgent, ""
		if t.Prompt != nil {
			t.Status = WaitingForController
		}
		t.Inactivity, t.LastActivityAt, t.RenewCall = e.Life.Inactivity, e.At, e.Life.Call
		t.Renewals++
	default:
		return t, false, nil
	}
	return t, true, nil
}

func (t Turn) cancelState(s CancelState) Turn {
	if t.Cancel != nil {
		c := *t.Cancel
		c.State = s
		t.Cancel = &c
	}
	return t
}

// applyStop folds the end of a native turn that was asked to stop: only an end that is not
// its own completion or failure is the cancel's doing.
func applyStop(t Turn, e Event, wasPending bool) Turn {
	if !wasPending {
		return t
	}
	switch o := e.Observation; {
	case o.Kind == ObsInterrupted:
		t.Status, t.Reason, t.StopProved = Cancelled, "", true
	case o.Kind == ObsTrouble && e.Message != "": // only an end is told to the Host
		t.Status, t.Reason, t.StopProved = Cancelled, "the agent is idle and wrote no end of the task", false
		t.Prompt, t.EndedAt, t.Evidence, t.FinalMessage = nil, e.At, o.Source, e.Message
	}
	return t
}
