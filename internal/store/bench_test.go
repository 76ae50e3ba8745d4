package store_test

import (
	"testing"

	"github.com/agent-knock-knock/akk/internal/store"
)

// BenchmarkOpenFresh is what the first start pays for its Store, with full durability.
func BenchmarkOpenFresh(b *testing.B) {
	for b.Loop() {
		db, err := store.Open(b.Context(), b.TempDir(), store.Options{})
		if err != nil {
			b.Fatal(err)
		}
		if err := db.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkUpdate is one durable commit, which an observation costs, and an attempt twice.
func BenchmarkUpdate(b *testing.B) {
	db, err := store.Open(b.Context(), b.TempDir(), store.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	for i := 0; b.Loop(); i++ {
		if err := db.Update(b.Context(), func(tx *store.Tx) error {
			_, err := tx.Exec("UPDATE meta SET created_at = ?", i)
			return err
		}); err != nil {
			b.Fatal(err)
		}
	}
}
