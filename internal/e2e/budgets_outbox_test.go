//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/outbox"
	"github.com/agent-knock-knock/akk/internal/outbox/delivery"
	"github.com/agent-knock-knock/akk/internal/outbox/outboxsql"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/testkit/fakehost"
	"github.com/agent-knock-knock/akk/internal/testkit/faketmux"
	"github.com/agent-knock-knock/akk/internal/testkit/standin"
)

// trivial accepts every callback. It starts nothing and reads nothing: what is measured is
// ours, the kernel's and the shell's start.
const trivial = `#!/bin/sh
printf '{"result":{"status":"accepted","acceptance_id":"a"},"request":{"delivery_id":"%s","message_id":"%s"}}\n' "$4" "$6"
`

// outboxRate is how many callbacks a second the real worker delivers by a trivial callback
// program, beside history settled ones. A killed Bridge left n that are due, for 64 Turns,
// and the next one works them off.
func outboxRate(t *testing.T, n, history int) float64 {
	t.Helper()
	program := filepath.Join(t.TempDir(), "trivial")
	if err := os.WriteFile(program, []byte(trivial), 0o700); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, &fakehost.ProfileOptions{Executable: program})
	w.agent(standin.Codex)
	c := w.start()
	first := send(t, c, idle(t, c).TerminalID, "SAY:x").TurnID
	waitCallback(t, c, first, "delivered")
	c.Kill()

	db, err := store.Open(t.Context(), w.host.Store, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	owed(t, db, first, "history", history)
	update := func(query string, args ...any) {
		if err := db.Update(t.Context(), func(tx *store.Tx) error { _, err := tx.Exec(query, args...); return err }); err != nil {
			t.Fatal(err)
		}
	}
	update("UPDATE outbox SET status = ?, open = 0 WHERE open = 1", outbox.Delivered)
	owed(t, db, first, "due", n)
	open := func() (left int) {
		if err := db.View(t.Context(), func(tx *store.Tx) error {
			return tx.QueryRow("SELECT count(*) FROM outbox WHERE open = 1").Scan(&left)
		}); err != nil {
			t.Fatal(err)
		}
		return left
	}
	w.start()
	reach := func(left int) time.Time {
		faketmux.Wait(t, fmt.Sprintf("%d callbacks left", left), func() bool { return open() <= left }, func() string { return fmt.Sprint(open(), " are open") })
		return time.Now()
	}
	from := reach(n - n/10) // the worker runs
	had := open()
	to := reach(0)
	if got := delivered(t, db); got != n+history+1 {
		t.Errorf("%d of %d callbacks were delivered", got, n+history+1)
	}
	return float64(had) / to.Sub(from).Seconds()
}

// startRate is how many trivial programs a second this machine starts and ends, as many at
// once as the outbox runs: what no delivery by a program of its own can exceed.
func startRate(t *testing.T, n int) float64 {
	t.Helper()
	program := filepath.Join(t.TempDir(), "trivial")
	if err := os.WriteFile(program, []byte(trivial), 0o700); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	var wg sync.WaitGroup
	for range delivery.DefaultConcurrent {
		wg.Go(func() {
			for range n / delivery.DefaultConcurrent {
				if _, err := exec.Command(program, "a", "b", "c", "d", "e", "f").Output(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	return float64(n) / time.Since(start).Seconds()
}

func delivered(t *testing.T, db *store.DB) (n int) {
	t.Helper()
	if err := db.View(t.Context(), func(tx *store.Tx) error {
		return tx.QueryRow("SELECT count(*) FROM outbox WHERE status = ?", outbox.Delivered).Scan(&n)
	}); err != nil {
		t.Fatal(err)
	}
	return n
}

// owed stores n callbacks like the one of a Turn, for 64 others.
func owed(t *testing.T, db *store.DB, turn, name string, n int) {
	t.Helper()
	const batch = 1000
	for at := 0; at < n; at += batch {
		if err := db.Update(t.Context(), func(tx *store.Tx) error {
			like, err := outboxsql.RowsBySource(tx, outbox.SourceTurn, turn)
			if err != nil {
				return err
			}
			for i := at; i < min(n, at+batch); i++ {
				event := like[0].Event
				event.ID = fmt.Sprintf("%s-%d", name, i)
				d := outbox.New(like[0].Route, outbox.Source{Kind: outbox.SourceTurn, ID: fmt.Sprintf("%s-turn-%d", name, i%64)}, event, tx.Now)
				if _, err := outboxsql.Enqueue(tx, d, like[0].Owner); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
}
