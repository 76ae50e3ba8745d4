package table_test

import (
	"math"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/store/table"
)

type thing struct {
	Shelf, ID  string
	Count      int
	Labels     []string
	Made, Used time.Time
}

var things = table.New("test_thing", []string{"shelf", "id"}, []string{"shelf", "id", "count", "labels", "made", "used"},
	func(t *thing) []any {
		return []any{&t.Shelf, &t.ID, &t.Count, table.Pack(&t.Labels), table.Millis(&t.Made), table.Nanos(&t.Used)}
	})

func TestARecordIsWhatWasStored(t *testing.T) {
	db, err := store.OpenMemory(t.Context(), store.Options{Sets: []store.Set{{Name: "test", Writer: 1, Files: fstest.MapFS{"0001_thing.sql": {Data: []byte(
		`CREATE TABLE test_thing (shelf TEXT NOT NULL, id TEXT NOT NULL, count INTEGER NOT NULL, labels TEXT NOT NULL, made INTEGER NOT NULL, used INTEGER NOT NULL, extra TEXT NOT NULL DEFAULT '', PRIMARY KEY (shelf, id)) STRICT;`)}}}}})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	a, b := thing{"s", "a", 1, []string{"x", "y"}, time.UnixMilli(1_700_000_000_123).UTC(), time.Unix(1_700_000_000, 5).UTC()}, thing{Shelf: "s", ID: "b", Count: 2}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(db.Update(t.Context(), func(tx *store.Tx) error {
		must(things.Insert(tx, a))
		must(things.InsertDerived(tx, b, "extra", "SELECT ? || ?", "de", "rived"))
		if err := things.Insert(tx, a); !fault.Is(err, fault.AlreadyExists) {
			t.Errorf("a key that is taken: %v", err)
		}
		if _, ok, err := things.Get(tx, "s", "none"); ok || err != nil {
			t.Errorf("a row that is not there: %v %v", ok, err)
		}
		a.Count, a.Labels = 7, []string{}
		must(things.Put(tx, a))
		must(things.Put(tx, thing{Shelf: "t", ID: "a"}))
		if there, err := things.Update(tx, thing{Shelf: "s", ID: "none"}); there || err != nil {
			t.Errorf("an update of no row: %v %v", there, err)
		}
		got, err := things.List(tx, "WHERE shelf = ? ORDER BY id", "s")
		must(err)
		a.Labels = nil // empty and absent are stored alike
		if diff := cmp.Diff([]thing{a, b}, got); diff != "" {
			t.Error(diff)
		}
		if first, ok, err := things.First(tx, "WHERE extra = 'derived'"); !ok || err != nil || first.ID != "b" {
			t.Errorf("%+v %v %v", first, ok, err)
		}
		for _, want := range []bool{true, false} {
			if gone, err := things.Delete(tx, "t", "a"); gone != want || err != nil {
				t.Errorf("deleted %v %v", gone, err)
			}
		}
		if none, err := things.List(tx, "WHERE shelf = 't'"); err != nil || none == nil || len(none) != 0 {
			t.Errorf("no rows: %v %v", none, err)
		}
		if _, err := tx.Exec("UPDATE test_thing SET labels = '{' WHERE id = 'b'"); err != nil {
			return err
		}
		if _, _, err := things.Get(tx, "s", "b"); err == nil {
			t.Error("a damaged value was read")
		}
		return nil
	}))
}

// A column of nanoseconds holds three centuries around today: what lies outside is its end,
// never a time of another century.
func TestATimeThatNoColumnHoldsIsTheNearestOne(t *testing.T) {
	first, last := time.Unix(0, math.MinInt64).UTC(), time.Unix(0, math.MaxInt64).UTC()
	for _, c := range []struct{ in, want time.Time }{
		{time.Date(1, 1, 2, 0, 0, 0, 0, time.UTC), first}, {time.Date(1600, 1, 1, 0, 0, 0, 0, time.UTC), first}, {first, first},
		{first.Add(time.Nanosecond), first.Add(time.Nanosecond)}, {last.Add(-time.Nanosecond), last.Add(-time.Nanosecond)}, {last, last},
		{last.Add(time.Nanosecond), last}, {time.Date(2300, 1, 1, 0, 0, 0, 0, time.UTC), last}, {time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC), last},
		{time.Time{}, time.Time{}}, {time.Unix(1_700_000_000, 5).UTC(), time.Unix(1_700_000_000, 5).UTC()},
	} {
		var got time.Time
		if err := table.Nanos(&got).Scan(table.NanosOf(c.in)); err != nil || !got.Equal(c.want) {
			t.Errorf("%v became %v, want %v, %v", c.in, got, c.want, err)
		}
	}
}
