// Package bigstore fills a Store with settled Turns, as months of work would have. The
// first one is made by the product's own rules and SQL, the others are copies of it under
// other ids. Only tests import it.
package bigstore

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/clock"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/outbox"
	"github.com/agent-knock-knock/akk/internal/outbox/outboxsql"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/turn"
	"github.com/agent-knock-knock/akk/internal/turn/turnsql"
)

// answerBytes is the length of each answer; a Turn takes about 6 KB with all its rows.
const answerBytes = 600

// copiesAtOnce bounds one transaction.
const copiesAtOnce = 20_000

type fixed time.Time

func (f fixed) Now() time.Time { return time.Time(f) }

func (f fixed) NewTimer(d time.Duration) (<-chan time.Time, func()) {
	return clock.System{}.NewTimer(d)
}

// Fill puts n settled Turns into the Store in dir, all of one session, each with its
// journal and its delivered callback, and last changed at the moment at or some ms before.
func Fill(tb testing.TB, dir string, n int, at time.Time) {
	tb.Helper()
	db, err := store.Open(tb.Context(), dir, store.Options{Relaxed: true, Clock: fixed(at.UTC().Truncate(time.Millisecond))})
	if err != nil {
		tb.Fatal(err)
	}
	defer db.Close()
	update := func(f func(*store.Tx) error) {
		tb.Helper()
		if err := db.Update(tb.Context(), f); err != nil {
			tb.Fatal(err)
		}
	}
	var first turn.Turn
	update(func(tx *store.Tx) (err error) {
		first, err = original(tx)
		return err
	})
	for from := 1; from < n; from += copiesAtOnce {
		to := min(from+copiesAtOnce, n)
		update(func(tx *store.Tx) error { return copies(tx, string(first.ID), from, to) })
	}
}

// original makes one Turn that was answered and heard.
func original(tx *store.Tx) (turn.Turn, error) {
	owner := ids.BridgeID("bridge-of-old-" + string(ids.NewBridge()))
	if err := turnsql.PutBridge(tx, turnsql.Bridge{ID: owner, Host: "old-host", ProfileID: "old-profile"}); err != nil {
		return turn.Turn{}, err
	}
	route := outbox.Route{Transport: outbox.TransportCommandJSON, ProfileID: "old-profile", ProfileRevision: "1", ProfileFingerprint: "f", SessionDigest: "d" + string(owner)}
	routeID, err := outboxsql.PutRoute(tx, route)
	if err != nil {
		return turn.Turn{}, err
	}
	id := ids.NewTurn(tx.Now)
	b := turn.Binding{Endpoint: turn.Endpoint{Socket: "/gone", PaneID: "%1", PanePID: 1}, Process: turn.Incarnation{PID: 10, Birth: "1@" + string(owner)}}
	session := turn.NewSession("codex", "thread-of-"+string(id), "/w", b, tx.Now)
	if err := turnsql.PutSession(tx, session.Detach(tx.Now)); err != nil {
		return turn.Turn{}, err
	}
	plan := turn.Reserve(turn.Turn{ID: id, Origin: owner, SessionID: session.ID, MessageID: ids.DeriveMessage("send", string(id)), CallKey: "call-" + string(id), Route: routeID,
		Agent: "codex", Endpoint: b.Endpoint, Process: b.Process, Hard: time.Hour, RequestSummary: "an old task", RequestHash: ids.TextHash("an old task")}, tx.Now)
	row, err := turnsql.Insert(tx, plan, owner)
	if err != nil {
		return turn.Turn{}, err
	}
	for _, step := range []func(turn.Turn) (turn.Plan, error){
		func(t turn.Turn) (turn.Plan, error) { return turn.Inject(t, tx.Now) },
		func(t turn.Turn) (turn.Plan, error) { return turn.Enter(t, tx.Now) },
		func(t turn.Turn) (turn.Plan, error) {
			return turn.Observe(t, turn.Observation{Kind: turn.ObsAccepted, At: tx.Now, Source: "rollout", NativeTurnID: "n"}, tx.Now), nil
		},
		func(t turn.Turn) (turn.Plan, error) {
			return turn.Observe(t, turn.Observation{Kind: turn.ObsCompleted, At: tx.Now, Source: "rollout", NativeTurnID: "n", Text: strings.Repeat("answer ", answerBytes/7)}, tx.Now), nil
		},
	} {
		if plan, err = step(row.Turn); err != nil {
			return turn.Turn{}, err
		}
		if err := turnsql.Save(tx, row, plan); err != nil {
			return turn.Turn{}, err
		}
		row.Turn = plan.Turn
	}
	if row.Turn.Status.Blocking() || len(plan.Notices) != 1 {
		return turn.Turn{}, fmt.Errorf("bigstore: the first turn is %s", row.Turn.Status)
	}
	notice := plan.Notices[0]
	d := outbox.New(route, outbox.Source{Kind: outbox.SourceTurn, ID: string(id)}, outbox.Event{ID: notice.MessageID, Type: notice.Type, Kind: notice.Kind, Body: []byte(notice.Body), Metadata: notice.Metadata}, tx.Now)
	if _, err := outboxsql.Enqueue(tx, d, owner); err != nil {
		return turn.Turn{}, err
	}
	_, err = tx.Exec("UPDATE outbox SET status = 'delivered', open = 0, attempts = 1, settled_at = ?, accepted_at = ? WHERE source_id = ?", store.Millis(tx.Now), store.Millis(tx.Now), id)
	return row.Turn, err
}

// copies makes the copies with the numbers from (inclusive) to to.
func copies(tx *store.Tx, id string, from, to int) error {
	const numbers = "WITH RECURSIVE k(n) AS (SELECT ?1 UNION ALL SELECT n + 1 FROM k WHERE n + 1 < ?2) "
	for _, sql := range []string{
		`INSERT INTO turn SELECT turn_id || '-' || n, session_id, call_key || '-' || n, owner, fence, endpoint_key, status, blocking, seq,
			replace(state, turn_id || '"', turn_id || '-' || n || '"'), created_at - n, updated_at - n FROM turn, k WHERE turn_id = ?3`,
		`INSERT INTO turn_event SELECT turn_id || '-' || n, seq, at, kind, data FROM turn_event, k WHERE turn_id = ?3`,
		`INSERT INTO outbox SELECT NULL, delivery_id || '-' || n, idempotency_key || '-' || n, route_id, source_kind, source_id || '-' || n, message_id || '-' || n, type, kind, body,
			requires_response, metadata, owner, status, open, attempts, attempt_id, lease_expires_at, transport_started_at, next_attempt_at, outcome, last_error,
			created_at - n, accepted_at - n, settled_at - n, updated_at - n FROM outbox, k WHERE source_id = ?3`,
	} {
		if _, err := tx.Exec(numbers+sql, from, to, id); err != nil {
			return err
		}
	}
	return nil
}
