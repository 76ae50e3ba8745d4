package store

import (
	"strings"
	"testing"
)

func fillUp(t *testing.T, db *DB) {
	t.Helper()
	if err := db.Update(t.Context(), func(tx *Tx) error {
		if _, err := tx.Exec("CREATE TABLE bulk (v TEXT) STRICT"); err != nil {
			return err
		}
		for range 2000 {
			if _, err := tx.Exec("INSERT INTO bulk VALUES (?)", strings.Repeat("x", 2000)); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := db.Update(t.Context(), func(tx *Tx) error { _, err := tx.Exec("DELETE FROM bulk"); return err }); err != nil {
		t.Fatal(err)
	}
}

func space(t *testing.T, db *DB) Space {
	t.Helper()
	s, err := db.Space(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestTheFileShrinksInSmallSteps(t *testing.T) {
	db, err := Open(t.Context(), t.TempDir(), Options{Relaxed: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	fillUp(t, db)
	before := space(t, db)
	if !before.Shrinks || before.Free < 3<<20 {
		t.Fatalf("%+v", before)
	}
	if err := db.Shrink(t.Context(), 100); err != nil {
		t.Fatal(err)
	}
	if step := space(t, db); step.Free >= before.Free || step.Free < before.Free/2 {
		t.Errorf("one step left %+v of %+v", step, before)
	}
	if err := db.Shrink(t.Context(), 1<<20); err != nil {
		t.Fatal(err)
	}
	if after := space(t, db); after.Free != 0 || after.Size > 1<<20 {
		t.Errorf("%+v", after)
	}
}

// A file of a release before this one keeps its free pages until it is compacted.
func TestAnOldFileShrinksOnceItWasCompacted(t *testing.T) {
	dir := t.TempDir()
	db, err := Open(t.Context(), dir, Options{Relaxed: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, sql := range []string{"PRAGMA auto_vacuum = NONE", "VACUUM"} { // as the old release made it
		if _, err := db.write.ExecContext(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	fillUp(t, db)
	if s := space(t, db); s.Shrinks {
		t.Fatalf("%+v", s)
	}
	if err := db.Shrink(t.Context(), 1<<20); err != nil {
		t.Errorf("a step on an old file: %v", err)
	}
	if err := db.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s := space(t, db); !s.Shrinks || s.Free != 0 || s.Size > 1<<20 {
		t.Errorf("%+v", s)
	}
}
