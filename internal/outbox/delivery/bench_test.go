package delivery_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/outbox"
	"github.com/agent-knock-knock/akk/internal/outbox/delivery"
	"github.com/agent-knock-knock/akk/internal/store"
)

// benchSources spreads the deliveries as many Turns would.
const benchSources = 64

// fill stores n deliveries; settled ones are history that must not slow the pump down.
func fill(b *testing.B, db *store.DB, owner ids.BridgeID, prefix string, n int, settled bool) {
	b.Helper()
	const batch = 1000
	for from := 0; from < n; from += batch {
		if err := db.Update(b.Context(), func(tx *store.Tx) error {
			for i := from; i < min(from+batch, n); i++ {
				if err := seed(tx, owner, route, fmt.Sprintf("%s-%d", prefix, i%benchSources), fmt.Sprintf("%s-msg-%d", prefix, i)); err != nil {
					return err
				}
			}
			if settled {
				_, err := tx.Exec(`UPDATE outbox SET status = 'delivered', open = 0 WHERE open = 1`)
				return err
			}
			return nil
		}); err != nil {
			b.Fatal(err)
		}
	}
}

// Budget: at least 300 deliveries a second with full durability, flat to 100,000 rows.
func BenchmarkDeliveries(b *testing.B) {
	for _, history := range []int{0, 100_000} {
		b.Run(fmt.Sprintf("history=%d", history), func(b *testing.B) {
			db, err := store.Open(b.Context(), b.TempDir(), store.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer db.Close()
			me := ids.NewBridge()
			fill(b, db, me, "old", history, true)
			fill(b, db, me, "new", b.N, false)
			w := always(outbox.Accepted)
			p := delivery.New(delivery.Config{DB: db, Worker: w, Owner: me, Live: route})
			b.ResetTimer()
			begin := time.Now()
			p.Start(b.Context())
			waitFor(b, "all sent", func() bool { return len(w.seen()) == b.N })
			p.Stop()
			b.StopTimer()
			b.ReportMetric(float64(b.N)/time.Since(begin).Seconds(), "deliveries/s")
		})
	}
}
