//go:build e2e

package e2e

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/outbox"
	"github.com/agent-knock-knock/akk/internal/outbox/outboxsql"
	"github.com/agent-knock-knock/akk/internal/retention"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/testkit/bigstore"
	"github.com/agent-knock-knock/akk/internal/testkit/fakehost"
	"github.com/agent-knock-knock/akk/internal/testkit/faketmux"
	"github.com/agent-knock-knock/akk/internal/testkit/standin"
	"github.com/agent-knock-knock/akk/internal/turn"
	"github.com/agent-knock-knock/akk/internal/turn/turnsql"
)

const (
	// openTurns keep a terminal in every Store, whatever else it holds.
	openTurns = 20
	// turnsOfABridge and turnsOfASession spread the settled Turns as months of work do.
	turnsOfABridge, turnsOfASession = 10, 5
	// idleBridges own nothing and may be forgotten.
	idleBridges = 50
)

// grown is one Store of the growth tables.
type grown struct {
	*world
	db   *store.DB
	turn string // a settled Turn of it
}

// TestGrowthOfTheStore measures what a Store with 100 to 100,000 Turns, and as many
// callbacks, costs whoever uses it. Run it with `make growth`.
func TestGrowthOfTheStore(t *testing.T) {
	sizes := []int{100, 1000, 10_000, 100_000}
	server, bin := faketmux.New(t), install(t)
	stores := make([]*grown, len(sizes))
	for i, n := range sizes {
		w := &world{t: t, host: fakehost.New(t, nil), tmux: server, bin: bin}
		begin := time.Now()
		stores[i] = grow(t, w, n)
		info, err := os.Stat(filepath.Join(w.host.Store, store.FileName))
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s Turns: %.1f MiB, made in %v", thousands(n), float64(info.Size())/(1<<20), time.Since(begin).Round(100*time.Millisecond))
	}
	stores[0].agent(standin.Codex)
	turnCurves(t, sizes, stores)
	outboxCurves(t, sizes, stores)
	upkeepCurves(t, sizes, stores)
}

// grow makes a Store with n settled Turns of many Bridges and Sessions.
func grow(t *testing.T, w *world, n int) *grown {
	t.Helper()
	bigstore.Fill(t, w.host.Store, n, time.Now().Add(-time.Hour))
	db, err := store.Open(t.Context(), w.host.Store, store.Options{Relaxed: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	g := &grown{world: w, db: db}
	long := store.Millis(time.Now().Add(-30 * 24 * time.Hour))
	g.update(func(tx *store.Tx) error {
		if err := tx.QueryRow("SELECT turn_id FROM turn ORDER BY turn_id LIMIT 1").Scan(&g.turn); err != nil {
			return err
		}
		const numbers = "WITH RECURSIVE k(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM k WHERE n + 1 < ?1) "
		for _, s := range []struct {
			sql  string
			args []any
		}{
			{numbers + `INSERT INTO bridge (bridge_id, host, host_version, profile_id, profile_revision, profile_fingerprint, pid, started_at)
				SELECT 'bridge-grown-' || n, 'old-host', '', 'old-profile', '', '', 1, ?2 FROM k`, []any{n / turnsOfABridge, long}},
			{numbers + `INSERT INTO session SELECT 'session-grown-' || n, agent, status, endpoint_key, 'thread-grown-' || n, workspace, binding, revision, created_at, updated_at
				FROM k, (SELECT * FROM session LIMIT 1)`, []any{n / turnsOfASession}},
			{`UPDATE turn SET owner = 'bridge-grown-' || (rowid % ?1), session_id = 'session-grown-' || (rowid % ?2)`, []any{n / turnsOfABridge, n / turnsOfASession}},
			{`UPDATE outbox SET owner = 'bridge-grown-' || (seq % ?1)`, []any{n / turnsOfABridge}},
		} {
			if _, err := tx.Exec(s.sql, s.args...); err != nil {
				return err
			}
		}
		for i := range openTurns {
			if err := openTurn(tx, i); err != nil {
				return err
			}
		}
		return nil
	})
	return g
}

func (g *grown) update(f func(*store.Tx) error) {
	g.t.Helper()
	if err := g.db.Update(g.t.Context(), f); err != nil {
		g.t.Fatal(err)
	}
}

func (g *grown) view(f func(*store.Tx) error) {
	g.t.Helper()
	if err := g.db.View(g.t.Context(), f); err != nil {
		g.t.Fatal(err)
	}
}

// openTurn stores a Turn that keeps a terminal which is not there.
func openTurn(tx *store.Tx, n int) error {
	b := turn.Binding{Endpoint: turn.Endpoint{Socket: "/gone", PaneID: fmt.Sprintf("%%%d", n+100), PanePID: n + 100}, Process: turn.Incarnation{PID: n + 1000, Birth: "1@open"}}
	session := turn.NewSession("codex", fmt.Sprintf("thread-open-%d", n), "/w", b, tx.Now)
	if err := turnsql.PutSession(tx, session); err != nil {
		return err
	}
	id := ids.NewTurn(tx.Now)
	var route string
	if err := tx.QueryRow("SELECT route_id FROM callback_route LIMIT 1").Scan(&route); err != nil {
		return err
	}
	plan := turn.Reserve(turn.Turn{ID: id, Origin: "bridge-grown-0", SessionID: session.ID, MessageID: ids.DeriveMessage("send", string(id)), CallKey: "call-" + string(id), Route: ids.RouteID(route),
		Agent: "codex", Endpoint: b.Endpoint, Process: b.Process, Hard: time.Hour, RequestSummary: "an open task", RequestHash: ids.TextHash("an open task")}, tx.Now)
	_, err := turnsql.Insert(tx, plan, "bridge-grown-0")
	return err
}

// turnCurves is the table of Turns: what a Host, a person and an operator wait for.
func turnCurves(t *testing.T, sizes []int, stores []*grown) {
	g := newGrowth(t, "Turns in the Store", sizes...)
	start := g.flat("start to `initialize` reply", "ms", 2, 0)
	status := g.flat("`status` of one Turn, no screen", "ms", 2, 1)
	open := g.flat("`list`, 20 open Turns, 1 agent", "ms", 2, 0)
	all := g.flat("`list` with the settled ones", "ms", 2, 0)
	idleCPU := g.flat("idle Bridge, share of a core", "%", 3, 0.5)
	cli := g.flat("`list` command, whole process", "ms", 2, 0)
	doctor := g.flat("`doctor` command, whole process", "ms", 2, 0)

	private := []string{"AKK_RUNTIME_DIR=" + faketmux.ShortDir(t)} // the Bridges of others are not measured
	g.rounds(9, func(i int) {
		b := stores[i].bridge("--log-level", "warn")
		b.Env = append(b.Env, private...)
		begin := time.Now()
		p := fakehost.Spawn(t, b)
		fmt.Fprint(p.Stdin, initialize)
		if _, err := bufio.NewReader(p.Stdout).ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		start.add(i, ms(begin, time.Now()))
		p.Stdin.Close()
		p.WaitExit(settle)
		cli.timed(i, func() {
			command(t, private, stores[i].bin, "list", "--json", "--store-dir", stores[i].host.Store, "--tmux-socket", stores[i].tmux.Socket())
		})
		doctor.timed(i, func() { command(t, private, stores[i].bin, "doctor", "--json", "--store-dir", stores[i].host.Store) })
	})

	hosts := make([]*fakehost.Client, len(stores))
	for i, s := range stores {
		b := s.bridge()
		b.Env = append(b.Env, private...)
		hosts[i] = fakehost.Start(t, b)
		var l listing
		hosts[i].MustCall("agent_knock_knock_list", map[string]any{}).Decode(t, &l)
		if len(l.Unavailable) != openTurns || len(l.Terminals) != 1 {
			t.Fatalf("%s", dump(l))
		}
	}
	g.rounds(30, func(i int) {
		status.timed(i, func() {
			hosts[i].MustCall("agent_knock_knock_status", map[string]any{"turn_id": stores[i].turn, "screen": false})
		})
		open.timed(i, func() { hosts[i].MustCall("agent_knock_knock_list", map[string]any{}) })
		all.timed(i, func() { hosts[i].MustCall("agent_knock_knock_list", map[string]any{"all": true}) })
	})
	const span = 15 * time.Second
	before := make([]float64, len(hosts))
	for i, c := range hosts {
		before[i] = cpuSeconds(t, c.PID())
	}
	time.Sleep(span) // a measurement of time, not a wait for something
	for i, c := range hosts {
		idleCPU.add(i, (cpuSeconds(t, c.PID())-before[i])/span.Seconds()*100)
		if code := c.Close(settle); code != 0 {
			t.Errorf("exit %d", code)
		}
	}
	g.report()
}

// outboxCurves is the table of the outbox.
func outboxCurves(t *testing.T, sizes []int, stores []*grown) {
	g := newGrowth(t, "callbacks in the outbox", sizes...)
	noDead := g.flat("list of the dead when none is", "ms", 2, 0.5)
	none := g.flat("list of what waits when nothing does", "ms", 2, 0.5)
	enqueue := g.flat("enqueue", "ms", 2, 0.3)
	due := g.flat("when the next one is due", "ms", 2, 0.3)
	claim := g.flat("claim of the next one, marked started", "ms", 2, 0.3)
	settled := g.flat("settle", "ms", 2, 0.3)
	newest := g.flat("list of the newest 50", "ms", 2, 0.5)
	dead := g.flat("list of the newest 50 dead", "ms", 2, 0.5)
	counts := g.linear("counts by status, as doctor asks", "ms", 2, 0)
	cli := g.flat("`outbox list --dead`, whole process", "ms", 2, 0)
	doctor := g.flat("`doctor`, half of the callbacks dead", "ms", 2, 0)

	deadOnes := []outbox.Status{outbox.Failed, outbox.Unproved, outbox.Exhausted}
	listed := func(f *figure, i int, statuses ...outbox.Status) {
		f.timed(i, func() {
			stores[i].view(func(tx *store.Tx) error {
				_, err := outboxsql.List(tx, statuses, 50)
				return err
			})
		})
	}
	g.rounds(20, func(i int) {
		listed(noDead, i, deadOnes...)
		listed(none, i, outbox.Pending)
	})
	for _, s := range stores { // an even mixture of what was heard and of the three ways to die
		s.update(func(tx *store.Tx) error {
			_, err := tx.Exec(`UPDATE outbox SET status = CASE seq % 6 WHEN 1 THEN ? WHEN 3 THEN ? ELSE ? END WHERE seq % 2 = 1`, deadOnes[0], deadOnes[1], deadOnes[2])
			return err
		})
	}
	routes := make([]outbox.Route, len(stores))
	me := ids.NewBridge()
	for i, s := range stores {
		routes[i] = outbox.Route{Transport: outbox.TransportCommandJSON, ProfileID: "p", ProfileRevision: "1", ProfileFingerprint: "f", SessionDigest: "d"}
		s.update(func(tx *store.Tx) error {
			if err := turnsql.PutBridge(tx, turnsql.Bridge{ID: me, ProfileID: "p"}); err != nil {
				return err
			}
			_, err := outboxsql.PutRoute(tx, routes[i])
			return err
		})
	}
	n := 0
	g.rounds(40, func(i int) {
		s := stores[i]
		n++
		event := outbox.Event{ID: fmt.Sprintf("message-%d", n), Type: "result", Kind: "done", Body: []byte("an answer")}
		d := outbox.New(routes[i], outbox.Source{Kind: outbox.SourceTurn, ID: fmt.Sprintf("turn-%d", n)}, event, time.Now().Add(-time.Minute))
		enqueue.timed(i, func() {
			s.update(func(tx *store.Tx) error { _, err := outboxsql.Enqueue(tx, d, me); return err })
		})
		due.timed(i, func() {
			s.update(func(tx *store.Tx) error { // as the pump asks, which has no reader of its own
				if _, found, err := outboxsql.NextDue(tx, me); err != nil || !found {
					t.Errorf("nothing is due: %v", err)
				}
				return nil
			})
		})
		claim.timed(i, func() {
			s.update(func(tx *store.Tx) error {
				got, err := outboxsql.ClaimDue(tx, me, 1)
				if err != nil || len(got) != 1 {
					return fmt.Errorf("claimed %d: %w", len(got), err)
				}
				d, err = outboxsql.MarkStarted(tx, got[0], me)
				return err
			})
		})
		settled.timed(i, func() {
			s.update(func(tx *store.Tx) error {
				_, ok, err := outboxsql.Settle(tx, d.DeliveryID, d.AttemptID, me, outbox.Outcome{Kind: outbox.Accepted, At: tx.Now})
				if !ok {
					t.Error("not settled")
				}
				return err
			})
		})
		listed(newest, i)
		listed(dead, i, deadOnes...)
	})
	g.rounds(7, func(i int) { // last: it fills the reader's cache, and the next reader pays for the end of that
		counts.timed(i, func() {
			stores[i].view(func(tx *store.Tx) error { _, err := outboxsql.Counts(tx, ""); return err })
		})
	})
	private := []string{"AKK_RUNTIME_DIR=" + faketmux.ShortDir(t)}
	g.rounds(7, func(i int) {
		cli.timed(i, func() {
			command(t, private, stores[i].bin, "outbox", "list", "--dead", "--json", "--store-dir", stores[i].host.Store)
		})
		doctor.timed(i, func() { command(t, private, stores[i].bin, "doctor", "--json", "--store-dir", stores[i].host.Store) })
	})
	g.report()
}

// upkeepCurves is the table of the retention sweep.
func upkeepCurves(t *testing.T, sizes []int, stores []*grown) {
	g := newGrowth(t, "Turns in the Store", sizes...)
	// A pass looks at every old Bridge and Session: those grow with the Turns, a tenth and a fifth.
	owners := g.linear(fmt.Sprintf("a pass that forgets %d Bridges only", idleBridges), "ms", 2, 0)
	kept := g.flat("a step over 100 Turns, half of them kept for dead callbacks", "ms", 2, 5)
	// Its rows lie anywhere in the file, which no cache holds from some size on.
	forget := g.flat("a step that forgets 100 Turns", "ms", 3, 5)
	long := time.Now().Add(-30 * 24 * time.Hour)
	old := 0
	g.rounds(3, func(i int) {
		old++
		stores[i].update(func(tx *store.Tx) error {
			for n := range idleBridges {
				if _, err := tx.Exec(`INSERT INTO bridge (bridge_id, host, host_version, profile_id, profile_revision, profile_fingerprint, pid, started_at) VALUES (?, '', '', '', '', '', 1, ?)`,
					fmt.Sprintf("bridge-idle-%d-%d", old, n), store.Millis(long)); err != nil {
					return err
				}
			}
			return nil
		})
		owners.timed(i, func() {
			sum, done, err := (&retention.Pruner{DB: stores[i].db}).Prune(t.Context(), long.Add(time.Hour), 0)
			if err != nil || !done || sum.Bridges != idleBridges || sum.Turns != 0 {
				t.Fatalf("%+v %v %v", sum, done, err)
			}
		})
	})
	step := func(f *figure, i int) {
		f.timed(i, func() {
			if _, _, err := (&retention.Pruner{DB: stores[i].db}).Prune(t.Context(), time.Now().Add(-time.Minute), 1); err != nil {
				t.Fatal(err)
			}
		})
	}
	for i, s := range stores {
		for range min(5, sizes[i]/100) {
			step(kept, i)
		}
		s.update(func(tx *store.Tx) error {
			_, err := tx.Exec("UPDATE outbox SET status = ? WHERE open = 0", outbox.Delivered)
			return err
		})
		for range min(5, sizes[i]/200) {
			step(forget, i)
		}
	}
	g.report()
}
