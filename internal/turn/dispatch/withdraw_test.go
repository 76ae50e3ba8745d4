package dispatch_test

import (
	"testing"

	"github.com/agent-knock-knock/akk/internal/outbox"
	"github.com/agent-knock-knock/akk/internal/outbox/outboxsql"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/turn"
)

// observe applies what a monitor would see.
func (r *rig) observe(id turn.Turn, o turn.Observation) {
	r.t.Helper()
	if err := r.Observe(r.t.Context(), id.ID, o); err != nil {
		r.t.Fatal(err)
	}
}

func prompt(fingerprint string) turn.Observation {
	return turn.Observation{Kind: turn.ObsPrompt, Prompt: &turn.Prompt{Kind: turn.PromptApproval, Fingerprint: fingerprint, Title: "Run it?"}}
}

// attempt makes one attempt of the callback that is due now, and returns its kind; "" when
// none is due.
func (r *rig) attempt(kind outbox.OutcomeKind) (told string) {
	r.t.Helper()
	r.update(func(tx *store.Tx) error {
		due, err := outboxsql.ClaimDue(tx, "bridge-a", 1)
		if err != nil || len(due) == 0 {
			return err
		}
		told = due[0].Event.Kind
		_, _, err = outboxsql.Settle(tx, due[0].DeliveryID, due[0].AttemptID, "bridge-a", outbox.Outcome{Kind: kind, At: tx.Now})
		return err
	})
	return told
}

// Callbacks of one Turn keep their order, so a question that nobody can answer any more
// would hold back the answer while it is retried.
func TestAQuestionThatWasNotHeardDoesNotHoldBackTheAnswer(t *testing.T) { // spec case 50
	completed := turn.Observation{Kind: turn.ObsCompleted, NativeTurnID: "n", Source: "rollout", Text: "the answer"}
	for name, end := range map[string][]turn.Observation{
		"answered by a person":         {{Kind: turn.ObsPromptCleared}, completed},
		"the end says that it is over": {completed},
		"another question took over":   {prompt("b"), {Kind: turn.ObsPromptCleared}, completed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			tn := r.accepted()
			r.observe(tn, prompt("a"))
			if got := r.attempt(outbox.RetryableFailure); got != "approval" {
				t.Fatalf("the Host was told %q", got)
			}
			for _, o := range end {
				r.observe(tn, o)
			}
			if got := r.attempt(outbox.Accepted); got != "completion" {
				t.Errorf("after the end %q is due: %+v", got, deliveries(t, r))
			}
			for _, d := range deliveries(t, r) {
				if d.Event.Kind == "approval" && d.Status != outbox.Superseded {
					t.Errorf("the question is %s", d.Status)
				}
			}
		})
	}
}

func TestAQuestionThatWasHeardStays(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	tn := r.accepted()
	r.observe(tn, prompt("a"))
	if got := r.attempt(outbox.Accepted); got != "approval" {
		t.Fatalf("the Host was told %q", got)
	}
	r.observe(tn, turn.Observation{Kind: turn.ObsPromptCleared})
	r.observe(tn, prompt("a")) // the screen repainted
	if ds := deliveries(t, r); len(ds) != 1 || ds[0].Status != outbox.Delivered {
		t.Errorf("%+v", ds)
	}
}

// The screen may lose a prompt for a moment. If its callback was withdrawn in that moment,
// its return is news to the Host.
func TestAWithdrawnQuestionThatComesBackIsToldAnew(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	tn := r.accepted()
	for range 3 {
		r.observe(tn, prompt("a"))
		r.observe(tn, turn.Observation{Kind: turn.ObsPromptCleared})
	}
	r.observe(tn, prompt("a"))
	if got := r.attempt(outbox.Accepted); got != "approval" {
		t.Errorf("%q is due: %+v", got, deliveries(t, r))
	}
	if got := r.attempt(outbox.Accepted); got != "" {
		t.Errorf("the question is told twice: %+v", deliveries(t, r))
	}
}
