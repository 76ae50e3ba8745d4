package delivery_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/outbox"
	"github.com/agent-knock-knock/akk/internal/outbox/delivery"
	"github.com/agent-knock-knock/akk/internal/outbox/outboxsql"
	"github.com/agent-knock-knock/akk/internal/store"
)

const patience = 20 * time.Second

var route = outbox.Route{Transport: outbox.TransportCommandJSON, ProfileID: "p", ProfileRevision: "1", ProfileFingerprint: "sha256:f", SessionDigest: "s"}

// TestMain lets the test binary be a Bridge that is killed in the middle of a delivery.
func TestMain(m *testing.M) {
	if dir := os.Getenv("AKK_DELIVERY_TEST_DIR"); dir != "" {
		os.Exit(bridgeThatHangs(dir, os.Getenv("AKK_DELIVERY_TEST_FILE")))
	}
	os.Exit(m.Run())
}

func bridgeThatHangs(dir, file string) int {
	ctx := context.Background()
	db, err := store.Open(ctx, dir, store.Options{Relaxed: true})
	if err != nil {
		return 1
	}
	me := ids.NewBridge()
	if _, err := db.Announce(me); err != nil {
		return 1
	}
	if err := db.Update(ctx, func(tx *store.Tx) error { return seed(tx, me, route, "turn-1", "msg-1") }); err != nil {
		return 1
	}
	p := delivery.New(delivery.Config{DB: db, Owner: me, Live: route, Worker: scripted(func(ctx context.Context, _ delivery.Job) (outbox.Outcome, error) {
		os.WriteFile(file, []byte("sent"), 0o600)
		<-ctx.Done()
		return outbox.Outcome{}, ctx.Err()
	})})
	p.Start(ctx)
	time.Sleep(time.Hour) // until it is killed
	return 1
}

type scripted func(ctx context.Context, job delivery.Job) (outbox.Outcome, error)

func (f scripted) Deliver(ctx context.Context, job delivery.Job) (outbox.Outcome, error) {
	return f(ctx, job)
}

func (scripted) Serving() bool               { return true }
func (scripted) Ready(context.Context) error { return nil }

func answer(kind outbox.OutcomeKind) outbox.Outcome {
	o := outbox.Outcome{Kind: kind, At: time.Now().UTC().Truncate(time.Millisecond)}
	if kind == outbox.Accepted {
		o.AcceptanceID = "a"
	} else {
		o.ErrorCode = "code_" + string(kind)
	}
	return o
}

// recorder is a worker that remembers its jobs and answers what say says.
type recorder struct {
	mu   sync.Mutex
	jobs []delivery.Job
	at   []time.Time
	say  scripted
}

func (r *recorder) Deliver(ctx context.Context, job delivery.Job) (outbox.Outcome, error) {
	r.mu.Lock()
	r.jobs, r.at = append(r.jobs, job), append(r.at, time.Now())
	r.mu.Unlock()
	return r.say(ctx, job)
}

func (*recorder) Serving() bool               { return true }
func (*recorder) Ready(context.Context) error { return nil }

func (r *recorder) seen() []delivery.Job {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]delivery.Job(nil), r.jobs...)
}

func always(kind outbox.OutcomeKind) *recorder {
	return &recorder{say: func(context.Context, delivery.Job) (outbox.Outcome, error) { return answer(kind), nil }}
}

func openStore(t testing.TB) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), t.TempDir(), store.Options{Relaxed: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func putBridge(tx *store.Tx, id ids.BridgeID) error {
	_, err := tx.Exec(`INSERT INTO bridge (bridge_id, host, host_version, profile_id, profile_revision, profile_fingerprint, pid, started_at)
		VALUES (?, 'h', '1', 'p', '1', 'f', 1, 1) ON CONFLICT DO NOTHING`, id)
	return err
}

// seed makes owner known and enqueues one event for it.
func seed(tx *store.Tx, owner ids.BridgeID, r outbox.Route, source, message string) error {
	if err := putBridge(tx, owner); err != nil {
		return err
	}
	if _, err := outboxsql.PutRoute(tx, r); err != nil {
		return err
	}
	_, err := outboxsql.Enqueue(tx, outbox.New(r, outbox.Source{Kind: outbox.SourceTurn, ID: source},
		outbox.Event{ID: message, Type: "done", Kind: "completion", Body: []byte("body of " + message)}, tx.Now), owner)
	return err
}

func enqueue(t testing.TB, db *store.DB, owner ids.BridgeID, source string, messages ...string) {
	t.Helper()
	for _, m := range messages {
		if err := db.Update(t.Context(), func(tx *store.Tx) error { return seed(tx, owner, route, source, m) }); err != nil {
			t.Fatal(err)
		}
	}
}

func newPump(t testing.TB, db *store.DB, owner ids.BridgeID, w delivery.Worker) *delivery.Pump {
	t.Helper()
	if err := db.Update(t.Context(), func(tx *store.Tx) error { return putBridge(tx, owner) }); err != nil {
		t.Fatal(err)
	}
	p := delivery.New(delivery.Config{DB: db, Worker: w, Owner: owner, Live: route})
	t.Cleanup(p.Stop)
	return p
}

// first returns the oldest delivery of a source.
func first(t testing.TB, db *store.DB, source string) outbox.Delivery {
	t.Helper()
	var all []outbox.Delivery
	if err := db.View(t.Context(), func(tx *store.Tx) (err error) {
		all, err = outboxsql.BySource(tx, outbox.SourceTurn, source)
		return err
	}); err != nil || len(all) == 0 {
		t.Fatalf("deliveries of %s: %v, %v", source, all, err)
	}
	return all[0]
}

func waitFor(t testing.TB, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); !ok(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", patience, what)
		}
	}
}

func waitStatus(t testing.TB, db *store.DB, source string, want outbox.Status) outbox.Delivery {
	t.Helper()
	var d outbox.Delivery
	waitFor(t, fmt.Sprintf("%s is %s", source, want), func() bool { d = first(t, db, source); return d.Status == want })
	return d
}

// claimAs begins an attempt as another Bridge would, started or not.
func claimAs(t testing.TB, db *store.DB, owner ids.BridgeID, started bool) outbox.Delivery {
	t.Helper()
	var d outbox.Delivery
	if err := db.Update(t.Context(), func(tx *store.Tx) error {
		claims, err := outboxsql.ClaimDue(tx, owner, 1)
		if err != nil || len(claims) != 1 {
			return fmt.Errorf("claims %v: %w", claims, err)
		}
		d = claims[0]
		if started {
			d, err = outboxsql.MarkStarted(tx, d, owner)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return d
}
