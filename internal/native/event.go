package native

import (
	"fmt"
	"time"

	"github.com/agent-knock-knock/akk/internal/ids"
)

// EventKind names one line of a Transition's journal.
type EventKind string

const (
	EvPrepared    EventKind = "prepared"
	EvDispatching EventKind = "dispatching"
	EvSubmitted   EventKind = "submitted"
	EvVerified    EventKind = "verified"
	EvCommitted   EventKind = "committed"
	EvUncertain   EventKind = "uncertain"
	EvAborted     EventKind = "aborted"
	EvAdopted     EventKind = "adopted"   // another Bridge took over after the owner died
	EvAbandoned   EventKind = "abandoned" // the terminal is free again; nothing more was proved
)

// Event is one fact of a Transition. Which fields are set depends on Kind; nothing outside
// this package builds one.
type Event struct {
	Seq        int64         `json:"seq"`
	At         time.Time     `json:"at"`
	Kind       EventKind     `json:"kind"`
	Transition *Transition   `json:"transition,omitempty"` // prepared
	ThreadID   string        `json:"native_thread_id,omitempty"`
	SessionID  ids.SessionID `json:"session_id,omitempty"`
	BindingID  ids.BindingID `json:"binding_id,omitempty"`
	Generation int           `json:"binding_generation,omitempty"`
	Reason     string        `json:"reason,omitempty"`
}

// Plan is the outcome of a decision: the events to append and the Transition after them.
// An empty Plan changes nothing.
type Plan struct {
	Events     []Event
	Transition Transition
}

func (p *Plan) add(e Event) {
	e.Seq = p.Transition.Seq + 1
	next, err := Apply(p.Transition, e)
	if err != nil {
		panic(err) // a rule of this package built an event that its own reducer refuses
	}
	p.Transition = next
	p.Events = append(p.Events, e)
}

// follows says from which statuses an event may come.
var follows = map[EventKind][]Status{
	EvDispatching: {Prepared},
	EvSubmitted:   {Dispatching},
	EvVerified:    {Dispatching, Submitted, Uncertain},
	EvCommitted:   {Verified},
	EvUncertain:   {Dispatching, Submitted},
	EvAborted:     {Prepared, Dispatching, Submitted},
	EvAdopted:     {Prepared, Dispatching, Submitted, Verified, Uncertain},
	EvAbandoned:   {Prepared, Dispatching, Submitted, Verified, Uncertain},
}

// Apply folds one event into a Transition. It is the only way a Transition changes. It
// refuses an event out of order and one that its state cannot take; it never repairs.
func Apply(t Transition, e Event) (Transition, error) {
	if e.Seq != t.Seq+1 || (e.Kind == EvPrepared) != (t.Seq == 0) {
		return t, fmt.Errorf("transition %s: %s cannot be event %d after %d", t.ID, e.Kind, e.Seq, t.Seq)
	}
	if e.Kind == EvPrepared {
		t = *e.Transition
		t.Seq, t.UpdatedAt = e.Seq, e.At
		return t, nil
	}
	allowed := false
	for _, s := range follows[e.Kind] {
		allowed = allowed || s == t.Status
	}
	if !allowed || t.Abandoned {
		return t, fmt.Errorf("transition %s: %s after %s", t.ID, e.Kind, t.Status)
	}
	switch e.Kind {
	case EvDispatching:
		t.Status, t.DispatchedAt = Dispatching, e.At
	case EvSubmitted:
		t.Status = Submitted
	case EvVerified:
		t.Status, t.ThreadID, t.Reason = Verified, e.ThreadID, ""
	case EvCommitted:
		t.Status, t.SessionID, t.BindingID, t.Generation = Committed, e.SessionID, e.BindingID, e.Generation
	case EvUncertain:
		t.Status, t.Reason = Uncertain, e.Reason
	case EvAborted:
		t.Status, t.Reason = Aborted, e.Reason
	case EvAbandoned:
		t.Abandoned, t.Reason = true, e.Reason
		if t.Status != Verified {
			t.Status = Uncertain
		}
	case EvAdopted: // who owns the Transition is a column beside it
	}
	t.Seq, t.UpdatedAt = e.Seq, e.At
	return t, nil
}
