package feed

import (
	"context"
	"maps"
	"time"

	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/outbox"
	"github.com/agent-knock-knock/akk/internal/outbox/outboxsql"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/telemetry"
	"github.com/agent-knock-knock/akk/internal/turn/turnsql"
)

// journalLimit is how much of a Turn's journal is read, the newest.
const journalLimit = 500

// fact reads what the Store holds of a source now.
func (f *Feed) fact(ctx context.Context, s outbox.Source) (telemetry.Fact, error) {
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	out := telemetry.Fact{At: time.Now()}
	err := f.cfg.DB.View(ctx, func(tx *store.Tx) error {
		journeys, err := outboxsql.Journeys(tx, s)
		if err != nil {
			return err
		}
		if s.Kind != outbox.SourceTurn {
			out.Watch = &telemetry.Watch{ID: s.ID, Deliveries: deliveries(journeys)}
			return nil
		}
		row, err := turnsql.Get(tx, ids.TurnID(s.ID))
		if err != nil {
			return err
		}
		journal, err := turnsql.Events(tx, row.Turn.ID, journalLimit)
		if err != nil {
			return err
		}
		story := telemetry.StoryOf(row.Turn, journal, deliveries(journeys), f.cfg.Bridge)
		out.Turn = &story
		return nil
	})
	return out, err
}

func deliveries(all []outboxsql.Journey) []telemetry.Delivery {
	out := make([]telemetry.Delivery, 0, len(all))
	for _, j := range all {
		d := telemetry.Delivery{ID: j.DeliveryID, Kind: telemetry.Code(j.Kind), Status: telemetry.Code(string(j.Status)), Queued: j.QueuedAt, Settled: j.SettledAt}
		for _, l := range j.Attempts {
			d.Attempts = append(d.Attempts, telemetry.Attempt{ID: l.AttemptID, Number: l.Number, Began: l.BeganAt, Ended: l.EndedAt,
				Outcome: telemetry.Code(string(l.Outcome)), Code: telemetry.Code(l.ErrorCode)})
		}
		out = append(out, d)
	}
	return out
}

// levels reads the gauges.
func (f *Feed) levels(ctx context.Context) (telemetry.Fact, error) {
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	var l telemetry.Levels
	err := f.cfg.DB.View(ctx, func(tx *store.Tx) (err error) {
		if l.OpenTurns, err = turnsql.CountBlocking(tx); err == nil {
			l.Backlog, l.DeadLetters, err = outboxsql.Backlog(tx)
		}
		return err
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	l.Dropped, l.Restarts = f.dropped, maps.Clone(f.restarts)
	return telemetry.Fact{At: time.Now(), Levels: &l}, err
}
