package ledgerserver_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ledger/coord"
	"github.com/agent-knock-knock/akk/internal/ledger/ledgerserver"
	"github.com/agent-knock-knock/akk/internal/ledger/ledgersql"
	"github.com/agent-knock-knock/akk/internal/store"
)

func openLedger(ctx context.Context, file string) (*store.DB, error) {
	return store.OpenFile(ctx, file, store.Options{Relaxed: true, Sets: []store.Set{ledgersql.Tables()}})
}

// onFile is a client of a ledger in a file, with a project.
func onFile(t *testing.T) (c *client, db *store.DB, file, project string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "ledger.db")
	db, err := openLedger(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	c = &client{t: t, server: ledgerserver.New(coord.New(db), "1.0.0")}
	return c, db, file, c.ok("projects.create", args{"name": "P"}).id()
}

// foreign is another program's connection to the file; it knows nothing of our lock.
func foreign(t *testing.T, file string) *sql.Conn {
	t.Helper()
	other, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { other.Close() })
	conn, err := other.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

func do(t *testing.T, conn *sql.Conn, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := conn.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// A file that another program has locked: reading goes on, a write is refused as one that
// may be repeated, and nothing of it is stored.
func TestALedgerThatIsLockedSaysSoAndKeepsNothingHalf(t *testing.T) {
	t.Parallel() // it waits for SQLite's own patience
	c, _, file, project := onFile(t)
	conn := foreign(t, file)
	do(t, conn, "BEGIN IMMEDIATE")
	c.ok("projects.get", args{"id": project})
	c.fails("internal", "work_items.create", args{"project_id": project, "title": "W"}).is("error.retryable", true)
	do(t, conn, "ROLLBACK")
	c.ok("work_items.list", args{"project_id": project}).is("items", 0)
	c.ok("work_items.create", args{"project_id": project, "title": "W"})
	c.ok("projects.operations_brief", args{"project_id": project}).is("counts.work_items", 1)
}

// A disk that becomes full: what was acknowledged is there, what was refused is not, the
// counters agree, and work goes on when there is room.
func TestALedgerThatIsFullSaysSoAndKeepsNothingHalf(t *testing.T) {
	c, db, _, project := onFile(t)
	room := func(pages int) {
		t.Helper()
		if err := db.Update(t.Context(), func(tx *store.Tx) error {
			_, err := tx.Exec(fmt.Sprintf("PRAGMA max_page_count = %d", pages))
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	role := c.ok("roles.create", args{"project_id": project, "name": "R"}).id()
	var pages int
	if err := db.View(t.Context(), func(tx *store.Tx) error { return tx.QueryRow("PRAGMA page_count").Scan(&pages) }); err != nil {
		t.Fatal(err)
	}
	room(pages + 100)
	made := 0
	var refused answer
	for refused.what == "" {
		got := c.call("assistant.apply", args{"confirm": true, "proposal": args{"title": "T", "actions": []args{ // several writes in one transaction
			{"kind": "create_work_item", "work_item": args{"project_id": project, "title": "W", "brief": strings.Repeat("b", 50000)}},
			{"kind": "create_role", "role": args{"project_id": project, "name": strings.Repeat("r", 5000)}},
		}}})
		if got.isError {
			refused = got
			break
		}
		if made++; made > 1000 {
			t.Fatal("the disk is never full")
		}
	}
	if refused.at("error.code") != "internal" || !strings.Contains(refused.text, "full") || made == 0 {
		t.Errorf("after %d: %q %v", made, refused.text, refused.value)
	}
	check := func(n int) {
		t.Helper()
		c.ok("work_items.list", args{"project_id": project}).is("items", n)
		c.ok("roles.list", args{"project_id": project}).is("items", n+1)
		c.ok("projects.operations_brief", args{"project_id": project}).is("counts.work_items", n)
	}
	check(made)
	room(1 << 30)
	item := c.ok("work_items.create", args{"project_id": project, "title": "W", "brief": strings.Repeat("b", 50000)}).id()
	c.ok("assignments.create", args{"project_id": project, "work_item_id": item, "role_id": role})
	c.ok("work_items.delete", args{"project_id": project, "id": item})
	check(made)
}

// A file that cannot be written says why: one of a newer release is read, one that is
// damaged or another program's is refused, and none of them is changed.
func TestALedgerThatCannotBeWrittenSaysWhy(t *testing.T) {
	t.Run("newer", func(t *testing.T) {
		_, db, file, project := onFile(t)
		db.Close()
		do(t, foreign(t, file), "UPDATE schema_set SET writer = 99")
		newer, err := openLedger(t.Context(), file)
		if err != nil {
			t.Fatal(err)
		}
		defer newer.Close()
		c := &client{t: t, server: ledgerserver.New(coord.New(newer), "1.0.0")}
		c.ok("projects.get", args{"id": project})
		if got := c.fails("internal", "projects.create", args{"name": "Q"}); !strings.Contains(got.text, "newer release") {
			t.Errorf("%q", got.text)
		}
		c.ok("projects.list", args{}).is("items", 1)
	})
	for name, damage := range map[string]func(b []byte) []byte{
		"damaged head": func(b []byte) []byte { return append(make([]byte, 4096), b[4096:]...) },
		"cut":          func(b []byte) []byte { return b[:5000] },
		"text":         func([]byte) []byte { return []byte(strings.Repeat("this is no database\n", 500)) },
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			_, db, file, _ := onFile(t)
			db.Close()
			whole, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			bad := damage(whole)
			if err := os.WriteFile(file, bad, 0o600); err != nil {
				t.Fatal(err)
			}
			again, err := openLedger(t.Context(), file)
			if err == nil {
				again.Close()
			}
			if !fault.Is(err, store.CodeStorage) {
				t.Errorf("opened: %v", err)
			}
			if _, msg, _ := fault.Public(err); msg == "" || strings.Contains(msg, "\n") {
				t.Errorf("message %q", msg)
			}
			if after, err := os.ReadFile(file); err != nil || string(after) != string(bad) {
				t.Errorf("the file was changed, %v", err)
			}
		})
	}
	t.Run("damaged_inside", func(t *testing.T) {
		_, db, file, project := onFile(t)
		db.Close()
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i := 5 * 4096; i < len(b); i++ {
			b[i] = byte(i)
		}
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
		db, err = openLedger(t.Context(), file)
		if err != nil {
			if !fault.Is(err, store.CodeStorage) {
				t.Errorf("%v", err)
			}
			return
		}
		defer db.Close()
		c := &client{t: t, server: ledgerserver.New(coord.New(db), "1.0.0")}
		c.fails("internal", "projects.get", args{"id": project})
		c.fails("internal", "projects.create", args{"name": "Q"})
	})
}
