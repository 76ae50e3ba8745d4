package turn

import (
	"fmt"
	"time"
)

// EventKind names one line of the journal.
type EventKind string

const (
	EvReserved     EventKind = "reserved"
	EvTextInjected EventKind = "text_injected"
	EvEntered      EventKind = "enter_dispatched"
	EvAborted      EventKind = "aborted"
	EvUncertain    EventKind = "uncertain"
	EvObserved     EventKind = "observed" // an Observation that changed the Turn
	EvStalled      EventKind = "stalled"
	EvAdopted      EventKind = "adopted" // another Bridge took over after the owner died
	EvClosed       EventKind = "closed"
	EvUnheard      EventKind = "unheard" // the question told last was withdrawn before the Host heard it
)

// Event is one fact of a Turn's journal. Which fields are set depends on Kind; nothing
// outside this package builds one.
type Event struct {
	Seq         int64        `json:"seq"`
	At          time.Time    `json:"at"`
	Kind        EventKind    `json:"kind"`
	Turn        *Turn        `json:"turn,omitempty"`        // reserved: the Turn as reserved
	Observation *Observation `json:"observation,omitempty"` // observed; Text is elided, see Journal
	Reason      string       `json:"reason,omitempty"`
	Message     string       `json:"message,omitempty"` // id of the notice that the event gave rise to
	Answer      *Answer      `json:"answer,omitempty"`  // answer events
	Life        *Life        `json:"life,omitempty"`    // cancel, renew and close events
}

// Notice is what the Host must hear because of an event. The use case turns it into a
// delivery in the same transaction.
type Notice struct {
	MessageID        string
	Type             string // done, error, question
	Kind             string // completion, failure, interrupted, approval, interaction, stalled
	Body             string
	RequiresResponse bool
	Metadata         map[string]string
}

// Plan is the outcome of a decision: the events to append, the Turn after them, and what
// the Host must hear. An empty Plan changes nothing.
type Plan struct {
	Events  []Event
	Turn    Turn
	Notices []Notice
}

// add folds e into the plan's Turn and appends it. A rule of this package that builds an
// event its own reducer refuses is a programming error.
func (p *Plan) add(e Event) {
	e.Seq = p.Turn.Seq + 1
	next, err := Apply(p.Turn, e)
	if err != nil {
		panic(err)
	}
	p.Turn = next
	p.Events = append(p.Events, e)
}

// Apply folds one event into a Turn. It is the only way a Turn changes. It refuses an
// event out of order and one that its state cannot take; it never repairs.
func Apply(t Turn, e Event) (Turn, error) {
	if e.Seq != t.Seq+1 {
		return t, fmt.Errorf("turn %s: event %d follows %d", t.ID, e.Seq, t.Seq)
	}
	if (e.Kind == EvReserved) != (t.Seq == 0) {
		return t, fmt.Errorf("turn %s: %s cannot be event %d", t.ID, e.Kind, e.Seq)
	}
	switch e.Kind {
	case EvReserved:
		t = *e.Turn
	case EvTextInjected:
		if t.Stage != Reserved {
			return t, fmt.Errorf("turn %s: text_injected after %s", t.ID, t.Stage)
		}
		t.Stage = TextInjected
	case EvEntered:
		if t.Stage == TextInjected {
			t.Stage = EnterDispatched
		}
		t.Status, t.EnteredAt, t.LastActivityAt = WaitingForAgent, e.At, e.At
	case EvAborted:
		t.Stage, t.Status, t.Reason, t.EndedAt = Aborted, Failed, e.Reason, e.At
		if t.Round > 0 {
			t.Status = Idle // the result of the round before stands
		}
	case EvUncertain:
		t.Stage, t.Status, t.Reason = Uncertain, Stalled, e.Reason
	case EvStalled:
		t.Status, t.Reason = Stalled, e.Reason
	case EvAdopted: // who owns the Turn is a column beside it, not part of its state
	case EvClosed:
		t.Status, t.Reason, t.EndedAt = Closed, e.Reason, e.At
		t = applyClosed(t, e)
	case EvUnheard:
		t.LastPrompt = ""
	case EvObserved:
		t = applyObservation(t, e)
	default:
		next, known, err := applyAnswer(t, e)
		if !known {
			next, known, err = applyLife(t, e)
		}
		if err != nil {
			return t, err
		}
		if !known {
			return t, fmt.Errorf("turn %s: unknown event %q", t.ID, e.Kind)
		}
		t = next
	}
	t.Seq, t.UpdatedAt = e.Seq, e.At
	return t, nil
}

func applyObservation(t Turn, e Event) Turn {
	o, pending := e.Observation, t.CancelPending()
	if o.ThreadID != "" {
		t.ThreadID = o.ThreadID
	}
	switch o.Kind {
	case ObsAccepted:
		t.Stage, t.NativeTurnID, t.AcceptedAt = Accepted, o.NativeTurnID, e.At
		t.Status, t.Reason, t.LastActivityAt = WaitingForAgent, "", e.At
		if t.EnteredAt.IsZero() {
			t.EnteredAt = e.At
		}
	case ObsActivity:
		t.LastActivityAt = e.At
	case ObsNotAccepted:
		t.Stage, t.Status, t.Reason = NotAccepted, Stalled, "the agent did not take the request; it is still a draft in the composer"
	case ObsPrompt:
		t = promptShown(t, e)
	case ObsPromptCleared:
		t = promptCleared(t, e)
	case ObsTrouble:
		t.Trouble = o.Code + ": " + o.Detail
	case ObsGone:
		t.ProcessGone, t.Prompt, t.Status = true, nil, Stalled
		t.Reason = "the agent process ended before the task did"
		t.Evidence = o.Source
		if t.Stage == TextInjected || t.Stage == EnterDispatched {
			t.Stage = Uncertain
		}
	case ObsCompleted, ObsFailed, ObsInterrupted:
		t.Prompt, t.EndedAt, t.Evidence, t.FinalMessage = nil, e.At, o.Source, e.Message
		t.AnswerBytes, t.AnswerDigest = o.FullBytes, o.Detail
		t.Status, t.Reason = Failed, o.Code
		if o.Kind == ObsCompleted {
			t.Status, t.Reason = Idle, ""
		}
	}
	return applyStop(t, e, pending)
}
