package store_test

import (
	"errors"
	"testing"

	"github.com/agent-knock-knock/akk/internal/store"
)

func TestWhatIsFirstIsStoredOnceWithTheFirstThingThatIsStored(t *testing.T) {
	db := open(t, t.TempDir())
	runs := 0
	db.First(func(tx *store.Tx) error {
		runs++
		_, err := tx.Exec(insertSession, "first", "e")
		return err
	})
	sessions := func() (n int) {
		t.Helper()
		if err := db.View(t.Context(), func(tx *store.Tx) error { return tx.QueryRow("SELECT count(*) FROM session").Scan(&n) }); err != nil {
			t.Fatal(err)
		}
		return n
	}
	refused := errors.New("refused")
	if err := db.Update(t.Context(), func(*store.Tx) error { return refused }); !errors.Is(err, refused) || sessions() != 0 {
		t.Fatalf("%v, %d sessions", err, sessions())
	}
	for range 2 {
		if err := db.Update(t.Context(), func(tx *store.Tx) error {
			if n := 0; tx.QueryRow("SELECT count(*) FROM session WHERE session_id = 'first'").Scan(&n) != nil || n != 1 {
				return errors.New("it was not first")
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	if runs != 2 || sessions() != 1 {
		t.Errorf("ran %d times, %d sessions; want once in each of two tries, and 1", runs, sessions())
	}
}

func TestWhatCannotBeFirstStopsEverythingElse(t *testing.T) {
	db := open(t, t.TempDir())
	broken := errors.New("broken")
	db.First(func(*store.Tx) error { return broken })
	if err := db.Update(t.Context(), func(*store.Tx) error { t.Error("ran"); return nil }); !errors.Is(err, broken) {
		t.Error(err)
	}
}
