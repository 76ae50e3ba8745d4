package main

import (
	"context"
	"path/filepath"
	"time"

	"github.com/agent-knock-knock/akk/internal/cli"
	"github.com/agent-knock-knock/akk/internal/control"
	"github.com/agent-knock-knock/akk/internal/doctor"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/outbox"
	"github.com/agent-knock-knock/akk/internal/outbox/outboxsql"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/wire"
)

// controlDir holds the sockets of this user's Bridges.
func controlDir() string { return filepath.Join(runtimeDir(), "bridges") }

func machineReport(ctx context.Context, o cli.DoctorOptions) doctor.MachineReport {
	return doctor.Machine{StoreDir: o.StoreDir, ControlDir: controlDir(), Programs: wire.Binaries{}.Paths()}.Check(ctx)
}

func runningBridges(ctx context.Context) ([]doctor.BridgeState, error) {
	answers, err := control.Ask(ctx, controlDir())
	return doctor.Bridges(answers, time.Now()), err
}

// outboxCommands act on a Store that a Bridge may be using at the same time: each change
// is one transaction with a compare, as the Bridge's own are.
var outboxCommands = cli.OutboxFuncs{
	List: func(ctx context.Context, dir string, statuses []outbox.Status, limit int) (out []outbox.Delivery, err error) {
		err = withStore(ctx, dir, true, func(tx *store.Tx) error {
			rows, err := outboxsql.List(tx, statuses, limit)
			for _, r := range rows {
				out = append(out, r.Delivery)
			}
			return err
		})
		return out, err
	},
	Get: func(ctx context.Context, dir string, id ids.DeliveryID) (outbox.Delivery, error) {
		return oneDelivery(ctx, dir, true, func(tx *store.Tx) (outboxsql.Row, error) { return outboxsql.Get(tx, id) })
	},
	Redrive: func(ctx context.Context, dir string, id ids.DeliveryID, checked bool) (outbox.Delivery, error) {
		return oneDelivery(ctx, dir, false, func(tx *store.Tx) (outboxsql.Row, error) { return outboxsql.Redrive(tx, id, checked) })
	},
	Discard: func(ctx context.Context, dir string, id ids.DeliveryID) (outbox.Delivery, error) {
		return oneDelivery(ctx, dir, false, func(tx *store.Tx) (outboxsql.Row, error) { return outboxsql.Discard(tx, id) })
	},
}

func oneDelivery(ctx context.Context, dir string, read bool, f func(*store.Tx) (outboxsql.Row, error)) (outbox.Delivery, error) {
	var row outboxsql.Row
	err := withStore(ctx, dir, read, func(tx *store.Tx) (err error) {
		row, err = f(tx)
		return err
	})
	return row.Delivery, err
}

// withStore runs f on an existing Store. It makes none.
func withStore(ctx context.Context, dir string, read bool, f func(*store.Tx) error) error {
	probe, err := store.Open(ctx, dir, store.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	defer probe.Close()
	if read {
		return probe.View(ctx, f)
	}
	db, err := store.Open(ctx, dir, store.Options{})
	if err != nil {
		return err
	}
	defer db.Close()
	if err := db.CheckWritable(); err != nil {
		return err
	}
	return db.Update(ctx, f)
}
