package native

import (
	"fmt"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
)

// Prepare starts a Transition: t holds its identity, terminal and operation. Nothing has
// been typed.
func Prepare(t Transition, now time.Time) Plan {
	t.Status, t.CreatedAt, t.UpdatedAt = Prepared, now, now
	var p Plan
	p.add(Event{At: now, Kind: EvPrepared, Transition: &t})
	return p
}

func refuse(t Transition, op, what string) error {
	return fault.New(CodeNotAllowed, op, "transition %s is %s; %s", t.ID, t.Status, what).WithHint("call agent_knock_knock_list again")
}

// Dispatch records that the command may reach the agent from now on. It is committed
// before the first byte; without it nothing may be typed.
func Dispatch(t Transition, now time.Time) (Plan, error) {
	if !t.MayType() {
		return Plan{}, refuse(t, "native.dispatch", "nothing is typed twice")
	}
	p := Plan{Transition: t}
	p.add(Event{At: now, Kind: EvDispatching})
	return p, nil
}

// Submit records that Enter was pressed. A proof that was quicker stands.
func Submit(t Transition, now time.Time) (Plan, error) {
	p := Plan{Transition: t}
	switch {
	case t.Status == Verified || t.Status == Committed:
	case t.Status != Dispatching || t.Abandoned:
		return Plan{}, refuse(t, "native.submit", "its command was not being typed")
	default:
		p.add(Event{At: now, Kind: EvSubmitted})
	}
	return p, nil
}

// Verify records that the terminal provably shows the wanted thread. An uncertain resume
// may still be verified, because the thread has one name whoever went there; an uncertain
// new thread may not, because the thread that is shown may be a person's.
func Verify(t Transition, thread string, now time.Time) (Plan, error) {
	const op = "native.verify"
	switch {
	case !t.Proves(thread):
		return Plan{}, refuse(t, op, fmt.Sprintf("thread %q does not prove it", thread))
	case t.Abandoned, t.Status == Uncertain && t.Operation == NewThread:
		return Plan{}, refuse(t, op, "what the terminal shows may be somebody else's doing")
	}
	switch t.Status {
	case Dispatching, Submitted, Uncertain:
		p := Plan{Transition: t}
		p.add(Event{At: now, Kind: EvVerified, ThreadID: thread})
		return p, nil
	}
	return Plan{}, refuse(t, op, "it has nothing to be verified")
}

// Commit records the Session that now holds the thread. It is written in the transaction
// that binds that Session.
func Commit(t Transition, session ids.SessionID, binding ids.BindingID, generation int, now time.Time) (Plan, error) {
	if t.Status != Verified || t.Abandoned {
		return Plan{}, refuse(t, "native.commit", "only a verified one can be committed")
	}
	p := Plan{Transition: t}
	p.add(Event{At: now, Kind: EvCommitted, SessionID: session, BindingID: binding, Generation: generation})
	return p, nil
}

// Abort records the proof that the terminal still shows the thread that it showed: nothing
// was typed, or the agent itself said that it did not follow.
func Abort(t Transition, reason string, now time.Time) (Plan, error) {
	switch t.Status {
	case Prepared, Dispatching, Submitted:
		if !t.Abandoned {
			p := Plan{Transition: t}
			p.add(Event{At: now, Kind: EvAborted, Reason: reason})
			return p, nil
		}
	}
	return Plan{}, refuse(t, "native.abort", "it cannot be aborted")
}

// MarkUncertain records that input was possible and what became of it is unknown. A proof
// that was quicker stands, and nothing changes.
func MarkUncertain(t Transition, reason string, now time.Time) Plan {
	p := Plan{Transition: t}
	if (t.Status == Dispatching || t.Status == Submitted) && !t.Abandoned {
		p.add(Event{At: now, Kind: EvUncertain, Reason: reason})
	}
	return p
}

// Adopt records that another Bridge took an open Transition over.
func Adopt(t Transition, from, to ids.BridgeID, now time.Time) Plan {
	p := Plan{Transition: t}
	if t.Open() {
		p.add(Event{At: now, Kind: EvAdopted, Reason: fmt.Sprintf("taken over by %s; %s ended", to, from)})
	}
	return p
}

// Abandon gives an open Transition up by a person's decision: its terminal is free again.
// What the terminal shows stays unknown. Abandoning a closed one changes nothing.
func Abandon(t Transition, reason string, now time.Time) Plan {
	p := Plan{Transition: t}
	if t.Open() {
		p.add(Event{At: now, Kind: EvAbandoned, Reason: reason})
	}
	return p
}

// Evidence is what a look at the terminal of an open Transition gave.
type Evidence struct {
	Gone     bool   // its process is verified dead
	Thread   string // the thread that the terminal provably shows with an idle, empty composer; "" when none is proved
	Detail   string // one line: what stands in the way of a proof
	Finished bool   // nobody types for it any more: its Bridge died or gave it up
}

// Recover decides what an open Transition means that nobody carries on, or that is still
// not proved some time after its command. It never leads to another key: a prepared one is
// aborted, a verified one stays for its commit, and everything between is proved from
// evidence or, once SettleLimit is over, uncertain.
func Recover(t Transition, e Evidence, now time.Time) Plan {
	p := Plan{Transition: t}
	switch {
	case !t.Open() || t.Status == Verified:
		return p
	case t.Status == Prepared:
		if e.Finished {
			p.add(Event{At: now, Kind: EvAborted, Reason: "it was cut off before anything was typed"})
		}
		return p
	case e.Gone:
		p.add(Event{At: now, Kind: EvAbandoned, Reason: "the agent process ended"})
		return p
	}
	if v, err := Verify(t, e.Thread, now); err == nil {
		return v
	}
	if t.Status == Uncertain || now.Sub(t.DispatchedAt) < SettleLimit {
		return p
	}
	reason := "the terminal did not provably show the thread in time"
	if e.Detail != "" {
		reason += ": " + e.Detail
	}
	return MarkUncertain(t, reason, now)
}
