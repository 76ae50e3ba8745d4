package ledgersql_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/agent-knock-knock/akk/internal/ledger/ledgersql"
	"github.com/agent-knock-knock/akk/internal/store"
)

func reopen(b *testing.B, file func(i int) string) {
	o := store.Options{Sets: []store.Set{ledgersql.Tables()}}
	for i := 0; b.Loop(); i++ {
		db, err := store.OpenFile(b.Context(), file(i), o)
		if err != nil {
			b.Fatal(err)
		}
		if err := db.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkOpenExisting(b *testing.B) {
	file := filepath.Join(b.TempDir(), "ledger.db")
	reopen(b, func(int) string { return file })
}

func BenchmarkOpenFresh(b *testing.B) {
	dir := b.TempDir()
	reopen(b, func(i int) string { return filepath.Join(dir, fmt.Sprint(i, ".db")) })
}
