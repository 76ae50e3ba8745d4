package delivery_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/outbox"
	"github.com/agent-knock-knock/akk/internal/outbox/delivery"
	"github.com/agent-knock-knock/akk/internal/outbox/outboxsql"
	"github.com/agent-knock-knock/akk/internal/store"
)

func TestCase31AcceptedEvidenceOfADeadBridgeIsSettledWithoutASend(t *testing.T) {
	db, dead, me, w := openStore(t), ids.NewBridge(), ids.NewBridge(), always(outbox.Accepted)
	enqueue(t, db, me, "other", "msg-0")
	enqueue(t, db, dead, "turn-1", "msg-1")
	d := claimAs(t, db, dead, true)
	if err := db.Update(t.Context(), func(tx *store.Tx) error {
		_, ok, err := outboxsql.RecordOutcome(tx, d.DeliveryID, d.AttemptID, dead, answer(outbox.Accepted))
		if !ok {
			t.Error("the evidence was not recorded")
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	p := newPump(t, db, me, w)
	if n, err := p.Recover(t.Context()); err != nil || n != 1 {
		t.Fatalf("recovered %d, %v", n, err)
	}
	p.Start(t.Context())
	waitStatus(t, db, "other", outbox.Delivered)
	if d := first(t, db, "turn-1"); d.Status != outbox.Delivered || d.Outcome.AcceptanceID != "a" || len(w.seen()) != 1 {
		t.Errorf("%+v after %d sends", d, len(w.seen()))
	}
}

// sending starts a real Bridge whose callback for turn-1 runs, and returns its Store and what
// kills it.
func sending(t *testing.T) (db *store.DB, kill func()) {
	t.Helper()
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "sent")
	bridge := exec.Command(os.Args[0])
	bridge.Env = append(os.Environ(), "AKK_DELIVERY_TEST_DIR="+dir, "AKK_DELIVERY_TEST_FILE="+file)
	if err := bridge.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { bridge.Process.Kill() })
	waitFor(t, "the callback runs", func() bool { _, err := os.Stat(file); return err == nil })
	db, err := store.Open(t.Context(), dir, store.Options{Relaxed: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db, func() {
		t.Helper()
		if err := bridge.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = bridge.Wait()
	}
}

// A real Bridge is killed while its callback runs.
func TestCase32AStartedAttemptOfAKilledBridgeIsUncertainAndNeverResent(t *testing.T) {
	db, kill := sending(t)
	me, w := ids.NewBridge(), always(outbox.Accepted)
	enqueue(t, db, me, "turn-2", "msg-2")
	p := newPump(t, db, me, w)
	if n, err := p.Recover(t.Context()); n != 0 || err != nil {
		t.Fatalf("took %d from a Bridge that lives: %v", n, err)
	}
	kill()
	if n, err := p.Recover(t.Context()); n != 1 || err != nil {
		t.Fatalf("recovered %d, %v", n, err)
	}
	p.Start(t.Context())
	waitStatus(t, db, "turn-2", outbox.Delivered)
	r, err := p.RetryNow(t.Context(), "turn-1")
	if err != nil || r.Disposition != outbox.DoLeave || r.Delivery.Status != outbox.Unproved || r.Delivery.LastError != outbox.CodeLost {
		t.Errorf("retry: %+v, %v", r, err)
	}
	if len(w.seen()) != 1 {
		t.Errorf("%d sends, want only the other Turn's", len(w.seen()))
	}
}

func TestCase33OfTwoRetriesOneSendsAndTheOtherSeesItInFlight(t *testing.T) {
	db, me := openStore(t), ids.NewBridge()
	entered, release := make(chan struct{}), make(chan struct{})
	w := &recorder{say: func(_ context.Context, j delivery.Job) (outbox.Outcome, error) {
		if j.Attempt == 1 {
			return answer(outbox.RetryableFailure), nil
		}
		close(entered)
		<-release
		return answer(outbox.Accepted), nil
	}}
	enqueue(t, db, me, "turn-1", "msg-1")
	p := newPump(t, db, me, w)
	p.Start(t.Context())
	waitFor(t, "first attempt settled", func() bool { d := first(t, db, "turn-1"); return d.Status == outbox.Pending && d.Attempts == 1 })
	winner := make(chan delivery.Retry, 1)
	go func() {
		r, err := p.RetryNow(t.Context(), "turn-1")
		if err != nil {
			t.Error(err)
		}
		winner <- r
	}()
	<-entered
	r, err := p.RetryNow(t.Context(), "turn-1")
	if err != nil || r.Disposition != outbox.DoWait || r.Delivery.AttemptID == "" || r.Delivery.LeaseExpiresAt.IsZero() {
		t.Errorf("the second retry: %+v, %v", r, err)
	}
	close(release)
	if r := <-winner; r.Disposition != outbox.DoRetry || r.Delivery.Status != outbox.Delivered {
		t.Errorf("the first retry: %+v", r)
	}
	if r, err := p.RetryNow(t.Context(), "turn-1"); err != nil || r.Disposition != outbox.DoNothing {
		t.Errorf("a retry of a delivered callback: %+v, %v", r, err)
	}
	if len(w.seen()) != 2 {
		t.Errorf("%d sends, want 2", len(w.seen()))
	}
}

func TestARetryIsRefusedWithItsReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, me := openStore(t), ids.NewBridge()
		p := newPump(t, db, me, &recorder{say: func(_ context.Context, j delivery.Job) (outbox.Outcome, error) {
			return answer(outbox.OutcomeKind(j.Source.ID)), nil
		}})
		if _, err := p.RetryNow(t.Context(), "x"); !fault.Is(err, fault.Unavailable) {
			t.Errorf("before Start: %v", err)
		}
		want := map[string]outbox.Disposition{"permanent_failure": outbox.DoRefuse, "uncertain": outbox.DoLeave, "retryable_failure": outbox.DoStop, "accepted": outbox.DoNothing}
		for source := range want {
			enqueue(t, db, me, source, "msg-"+source)
		}
		p.Start(t.Context())
		<-time.After(time.Hour)
		for source, do := range want {
			if r, err := p.RetryNow(t.Context(), ids.TurnID(source)); err != nil || r.Disposition != do {
				t.Errorf("%s: %s, %v, want %s", source, r.Disposition, err, do)
			}
		}
		if _, err := p.RetryNow(t.Context(), "nothing"); !fault.Is(err, fault.NotFound) {
			t.Errorf("a Turn without a callback: %v", err)
		}
		p.Stop()
		if _, err := p.RetryNow(t.Context(), "accepted"); !fault.Is(err, fault.Unavailable) {
			t.Errorf("after Stop: %v", err)
		}
	})
}

func TestCase36TheStartupPassTakesWhatADeadBridgeLeftAndALaterLookDoesNot(t *testing.T) {
	db, dead, me, w := openStore(t), ids.NewBridge(), ids.NewBridge(), always(outbox.Accepted)
	p := newPump(t, db, me, w)
	if n, err := p.Recover(t.Context()); n != 0 || err != nil {
		t.Fatalf("an empty Store: %d, %v", n, err)
	}
	p.Start(t.Context())
	enqueue(t, db, dead, "turn-1", "msg-1")
	enqueue(t, db, me, "turn-2", "msg-2")
	p.Kick()
	waitStatus(t, db, "turn-2", outbox.Delivered)
	if d := first(t, db, "turn-1"); d.Status != outbox.Pending || d.Attempts != 0 {
		t.Errorf("touched a foreign delivery: %+v", d)
	}
	next := newPump(t, db, ids.NewBridge(), w)
	if n, err := next.Recover(t.Context()); n != 1 || err != nil {
		t.Fatalf("recovered %d, %v", n, err)
	}
	next.Start(t.Context())
	waitStatus(t, db, "turn-1", outbox.Delivered)
}

func TestTheStartupPassLeavesOtherSessionsAndLivingBridgesAlone(t *testing.T) {
	db, alive, dead, me, w := openStore(t), ids.NewBridge(), ids.NewBridge(), ids.NewBridge(), always(outbox.Accepted)
	release, err := db.Announce(alive)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	enqueue(t, db, alive, "turn-alive", "msg-1")
	claimAs(t, db, alive, true)
	other := route
	other.SessionDigest = "another session"
	newer := route
	newer.ProfileRevision = "2"
	if err := db.Update(t.Context(), func(tx *store.Tx) error {
		if err := seed(tx, dead, other, "turn-other", "msg-2"); err != nil {
			return err
		}
		return seed(tx, dead, newer, "turn-newer", "msg-3")
	}); err != nil {
		t.Fatal(err)
	}
	enqueue(t, db, dead, "turn-claimed", "msg-4")
	if err := db.Update(t.Context(), func(tx *store.Tx) error { _, err := outboxsql.ClaimDue(tx, dead, 9); return err }); err != nil {
		t.Fatal(err)
	}
	p := newPump(t, db, me, w)
	if n, err := p.Recover(t.Context()); n != 2 || err != nil {
		t.Fatalf("recovered %d, %v; want the other revision of our session and the claim", n, err)
	}
	for source, want := range map[string]outbox.Status{"turn-alive": outbox.Delivering, "turn-other": outbox.Delivering, "turn-newer": outbox.Pending, "turn-claimed": outbox.Pending} {
		if d := first(t, db, source); d.Status != want {
			t.Errorf("%s is %s, want %s", source, d.Status, want)
		}
	}
	if d := first(t, db, "turn-claimed"); d.Attempts != 0 {
		t.Errorf("a claim that never started counts: %+v", d)
	}
	p.Start(t.Context())
	if _, err := p.RetryNow(t.Context(), "turn-alive"); err != nil {
		t.Errorf("a foreign attempt in flight should be reported: %v", err)
	}
	if len(w.seen()) > 2 {
		t.Errorf("sent %v", w.seen())
	}
}

func TestALaterLookLeavesOurOwnAttemptInFlightAlone(t *testing.T) {
	db, me := openStore(t), ids.NewBridge()
	entered, release := make(chan struct{}), make(chan struct{})
	w := &recorder{say: func(context.Context, delivery.Job) (outbox.Outcome, error) {
		close(entered)
		<-release
		return answer(outbox.Accepted), nil
	}}
	enqueue(t, db, me, "turn-1", "msg-1")
	p := newPump(t, db, me, w)
	p.Start(t.Context())
	<-entered
	if n, err := p.Recover(t.Context()); n != 0 || err != nil {
		t.Errorf("recovered %d, %v", n, err)
	}
	close(release)
	waitFor(t, "the callback to be delivered", func() bool { return first(t, db, "turn-1").Status == outbox.Delivered })
}

// The session of a killed Bridge never comes back, so no Bridge takes its attempt over: an
// operator decides it, once the Bridge is gone.
func TestAnOperatorDecidesWhatAKilledBridgeWasSending(t *testing.T) {
	db, kill := sending(t)
	id := first(t, db, "turn-1").DeliveryID
	discard := func() (r outboxsql.Row, err error) {
		err = db.Update(t.Context(), func(tx *store.Tx) error { r, err = outboxsql.Discard(tx, id, db.Alive); return err })
		return r, err
	}
	if _, err := discard(); !fault.Is(err, fault.Conflict) {
		t.Fatalf("while it is being sent: %v", err)
	}
	kill()
	err := db.Update(t.Context(), func(tx *store.Tx) error { _, err := outboxsql.Redrive(tx, id, false, db.Alive); return err })
	if !fault.Is(err, outbox.CodeNotChecked) {
		t.Errorf("an unchecked redrive: %v", err)
	}
	if r, err := discard(); err != nil || r.Status != outbox.Discarded || r.LastError != outbox.CodeLost {
		t.Errorf("%+v, %v", r.Delivery, err)
	}
}
