package watch

import (
	"fmt"
	"time"

	"github.com/agent-knock-knock/akk/internal/turn"
)

// EventKind names one line of the journal.
type EventKind string

const (
	EvCreated  EventKind = "created"
	EvObserved EventKind = "observed" // an observation that changed the Watch
	EvSettled  EventKind = "settled"
	EvAdopted  EventKind = "adopted" // another Bridge took over after the owner died
)

// Event is one fact of a Watch's journal. Nothing outside this package builds one.
type Event struct {
	Seq         int64             `json:"seq"`
	At          time.Time         `json:"at"`
	Kind        EventKind         `json:"kind"`
	Watch       *Watch            `json:"watch,omitempty"`       // created: as created
	Observation *turn.Observation `json:"observation,omitempty"` // observed; without text and without a prompt's words
	Problem     *Problem          `json:"problem,omitempty"`     // observed: what cannot be seen
	Settlement  *Settlement       `json:"settlement,omitempty"`  // settled
	Message     string            `json:"message,omitempty"`     // id of the notification that the event gave rise to
	Reason      string            `json:"reason,omitempty"`
}

// Notice is what the Host must hear. None asks for an answer: a Watch cannot be answered.
type Notice struct {
	MessageID string
	Type      string // approval_required, completed, failed, timed_out, invalidated, cancelled
	Kind      string // approval, interaction, or the type again
	Body      string
	Metadata  map[string]string
}

// Plan is the outcome of a decision. An empty Plan changes nothing.
type Plan struct {
	Events  []Event
	Watch   Watch
	Notices []Notice
	// Supersedes: what was asked before and was not heard is pointless now.
	Supersedes bool
	// Rearm: the monitor gave up on the records and must start anew.
	Rearm bool
}

// QuestionKinds are the kinds of notices that a settlement supersedes.
var QuestionKinds = []string{"approval", "interaction"}

// add folds e into the plan's Watch and appends it. A rule of this package that builds an
// event its own reducer refuses is a programming error.
func (p *Plan) add(e Event) {
	e.Seq = p.Watch.Seq + 1
	next, err := Apply(p.Watch, e)
	if err != nil {
		panic(err)
	}
	p.Watch = next
	p.Events = append(p.Events, e)
}

// Apply folds one event into a Watch. It is the only way a Watch changes. It refuses an
// event out of order and one that its state cannot take; it never repairs.
func Apply(w Watch, e Event) (Watch, error) {
	if e.Seq != w.Seq+1 {
		return w, fmt.Errorf("watch %s: event %d follows %d", w.ID, e.Seq, w.Seq)
	}
	if (e.Kind == EvCreated) != (w.Seq == 0) {
		return w, fmt.Errorf("watch %s: %s cannot be event %d", w.ID, e.Kind, e.Seq)
	}
	if w.Seq > 0 && w.Status != Active {
		return w, fmt.Errorf("watch %s: %s after it was %s", w.ID, e.Kind, w.Status)
	}
	switch {
	case e.Kind == EvCreated && e.Watch != nil:
		w = *e.Watch
	case e.Kind == EvObserved && e.Observation != nil:
		w = applyObservation(w, e)
	case e.Kind == EvSettled && e.Settlement != nil && e.Settlement.Kind != Active:
		w.Status, w.Settlement, w.OpenPrompt, w.Problem = e.Settlement.Kind, e.Settlement, "", nil
	case e.Kind == EvAdopted: // who owns the Watch is a column beside it
	default:
		return w, fmt.Errorf("watch %s: event %q is not whole", w.ID, e.Kind)
	}
	w.Seq, w.UpdatedAt = e.Seq, e.At
	return w, nil
}

func applyObservation(w Watch, e Event) Watch {
	o := e.Observation
	if e.Problem != nil {
		w.Problem = e.Problem
		return w
	}
	w.LastActivityAt, w.Problem = e.At, nil
	switch o.Kind {
	case turn.ObsAccepted:
		w.Seen = true
		if w.ThreadID == "" {
			w.ThreadID = o.ThreadID
		}
	case turn.ObsPrompt:
		w.OpenPrompt = o.Prompt.Fingerprint
		if e.Message != "" {
			told := append([]string{}, w.Told...) // the Watch is a value: its slices are not shared
			if told = append(told, o.Prompt.Fingerprint); len(told) > maxTold {
				told = told[len(told)-maxTold:]
			}
			w.Told = told
		}
	case turn.ObsPromptCleared:
		w.OpenPrompt = ""
	}
	return w
}
