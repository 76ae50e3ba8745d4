package store_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/store"
)

// notes is a set of tables with n migrations.
func notes(n int) store.Set {
	files := fstest.MapFS{"0001_note.sql": {Data: []byte("CREATE TABLE note (id TEXT PRIMARY KEY) STRICT;")}}
	if n > 1 {
		files["0002_text.sql"] = &fstest.MapFile{Data: []byte("ALTER TABLE note ADD COLUMN text TEXT NOT NULL DEFAULT '';")}
	}
	return store.Set{Name: "notes", Files: files, Writer: 1}
}

func addNote(db *store.DB, t *testing.T, id string) error {
	return db.Update(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec("INSERT INTO note (id) VALUES (?)", id)
		return err
	})
}

func countNotes(t *testing.T, db *store.DB) (n int) {
	t.Helper()
	if err := db.View(t.Context(), func(tx *store.Tx) error { return tx.QueryRow("SELECT count(*) FROM note").Scan(&n) }); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestAFileOfItsOwnGrowsAndKeepsItsPlace(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "notes.db")
	for n := 1; n <= 2; n++ { // a newer release brings its second migration
		db, err := store.OpenFile(t.Context(), file, store.Options{Relaxed: true, Sets: []store.Set{notes(n)}})
		if err != nil {
			t.Fatal(err)
		}
		if err := addNote(db, t, string(rune('a'+n))); err != nil {
			t.Fatal(err)
		}
		if got := countNotes(t, db); got != n {
			t.Errorf("%d notes, want %d", got, n)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v, %v", info.Mode(), err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("the directory of another owner's choice was changed to %v, %v", info.Mode(), err)
	}
	old, err := store.OpenFile(t.Context(), file, store.Options{Relaxed: true, Sets: []store.Set{notes(1)}})
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	if err := addNote(old, t, "z"); !fault.Is(err, store.CodeIncompatible) {
		t.Errorf("an older release wrote: %v", err)
	}
	if got := countNotes(t, old); got != 2 {
		t.Errorf("an older release reads %d notes", got)
	}
}

func TestAStoreCarriesASetBesideItsOwnTables(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s")
	open(t, dir) // an existing Store of a release without sets
	db, err := store.Open(t.Context(), dir, store.Options{Relaxed: true, Sets: []store.Set{notes(1)}})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := addNote(db, t, "a"); err != nil {
		t.Fatal(err)
	}
	plain := open(t, dir) // and one without it still works on the same file
	if err := plain.Update(t.Context(), func(tx *store.Tx) error { _, err := tx.Exec(insertSession, "s", "e"); return err }); err != nil {
		t.Error(err)
	}
	if _, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "none"), store.Options{ReadOnly: true, Sets: []store.Set{notes(1)}}); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
}

func TestAFileThatIsNoStoreIsRefusedUntouched(t *testing.T) {
	dir := t.TempDir()
	foreign := filepath.Join(dir, "foreign.db")
	db, err := sql.Open("sqlite", foreign)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("CREATE TABLE theirs (x)"); err != nil {
		t.Fatal(err)
	}
	db.Close()
	text := filepath.Join(dir, "text.db")
	if err := os.WriteFile(text, []byte("this is no database at all, and long enough to be looked at"), 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link.db")
	if err := os.Symlink(foreign, link); err != nil {
		t.Fatal(err)
	}
	for file, code := range map[string]fault.Code{foreign: store.CodeStorage, text: store.CodeStorage, link: store.CodeUnsafe, dir: store.CodeUnsafe,
		filepath.Join(dir, "no", "dir.db"): store.CodeUnwritable, "": fault.Invalid} {
		if _, err := store.OpenFile(t.Context(), file, store.Options{Sets: []store.Set{notes(1)}}); !fault.Is(err, code) {
			t.Errorf("%s: %v", file, err)
		}
		// What a look shows is the same; what a database holds, a look does not say.
		if err := store.CheckFile(file); file != foreign && !fault.Is(err, code) || file == foreign && err != nil {
			t.Errorf("a look at %s: %v", file, err)
		}
	}
	db, err = sql.Open("sqlite", foreign)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var tables int
	if err := db.QueryRow("SELECT count(*) FROM sqlite_schema").Scan(&tables); err != nil || tables != 1 {
		t.Errorf("%d tables, %v", tables, err)
	}
}

func TestAStoreInMemoryIsShareableAndItsOwn(t *testing.T) {
	a, err := store.OpenMemory(t.Context(), store.Options{Sets: []store.Set{notes(2)}})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	b, err := store.OpenMemory(t.Context(), store.Options{Sets: []store.Set{notes(2)}})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if err := addNote(a, t, string(rune('a'+i))); err != nil {
				t.Error(err)
			}
			countNotes(t, a)
		})
	}
	wg.Wait()
	if countNotes(t, a) != 20 || countNotes(t, b) != 0 {
		t.Errorf("%d and %d notes", countNotes(t, a), countNotes(t, b))
	}
}
