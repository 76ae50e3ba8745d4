package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/agent-knock-knock/akk/internal/cli"
	"github.com/agent-knock-knock/akk/internal/control"
	"github.com/agent-knock-knock/akk/internal/doctor"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/outbox"
	"github.com/agent-knock-knock/akk/internal/outbox/outboxsql"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/telemetry"
	"github.com/agent-knock-knock/akk/internal/wire"
)

// controlDir holds the socket of a Bridge that starts in this environment.
func controlDir() string { return filepath.Join(runtimeDir(), "bridges") }

// controlPlaces are where Bridges of this user have their sockets: our own place first,
// then those of Hosts that had another environment. A named place is the only one.
func controlPlaces() []string {
	places := []string{controlDir()}
	if namedRuntimeDir() != "" {
		return places
	}
	for _, dir := range []string{filepath.Join("/run/user", uid(), "agent-knock-knock"), filepath.Join(os.TempDir(), "agent-knock-knock-"+uid()), lockDir()} {
		if place := filepath.Join(dir, "bridges"); !slices.Contains(places, place) {
			places = append(places, place)
		}
	}
	return places
}

// siblings are the programs of a release that lie beside this one. without says what does
// not work while one is not there that an install may leave out.
var siblings = []struct{ name, without string }{
	{"akk-monitor", ""},
	{"akk-callback", ""},
	{topProgram, ""},
	{telemetry.Program, "traces and metrics stay off"},
}

func machineReport(ctx context.Context, o cli.DoctorOptions) doctor.MachineReport {
	m := doctor.Machine{StoreDir: o.StoreDir, Places: controlPlaces()}
	for _, s := range siblings {
		path, err := wire.Sibling(s.name)
		if err != nil {
			path = s.name // reported as one that cannot be found
		}
		m.Programs = append(m.Programs, doctor.Program{Path: path, Without: s.without})
	}
	return m.Check(ctx)
}

func runningBridges(ctx context.Context) ([]doctor.BridgeState, error) {
	found := control.AskAll(ctx, controlPlaces())
	return doctor.Bridges(found.Answers, time.Now()), found.Unseen()
}

// outboxCommands act on a Store that a Bridge may be using at the same time: each change
// is one transaction with a compare, as the Bridge's own are.
var outboxCommands = cli.OutboxFuncs{
	List: func(ctx context.Context, dir string, statuses []outbox.Status, limit int) (out []outbox.Delivery, err error) {
		err = withStore(ctx, dir, true, func(_ *store.DB, tx *store.Tx) error {
			rows, err := outboxsql.List(tx, statuses, limit)
			for _, r := range rows {
				out = append(out, r.Delivery)
			}
			return err
		})
		return out, err
	},
	Get: func(ctx context.Context, dir string, id ids.DeliveryID) (outbox.Delivery, error) {
		return oneDelivery(ctx, dir, true, func(_ *store.DB, tx *store.Tx) (outboxsql.Row, error) { return outboxsql.Get(tx, id) })
	},
	Redrive: func(ctx context.Context, dir string, id ids.DeliveryID, checked bool) (outbox.Delivery, error) {
		return oneDelivery(ctx, dir, false, func(db *store.DB, tx *store.Tx) (outboxsql.Row, error) {
			return outboxsql.Redrive(tx, id, checked, db.Alive)
		})
	},
	Discard: func(ctx context.Context, dir string, id ids.DeliveryID) (outbox.Delivery, error) {
		return oneDelivery(ctx, dir, false, func(db *store.DB, tx *store.Tx) (outboxsql.Row, error) {
			return outboxsql.Discard(tx, id, db.Alive)
		})
	},
}

func oneDelivery(ctx context.Context, dir string, read bool, f func(*store.DB, *store.Tx) (outboxsql.Row, error)) (outbox.Delivery, error) {
	var row outboxsql.Row
	err := withStore(ctx, dir, read, func(db *store.DB, tx *store.Tx) (err error) {
		row, err = f(db, tx)
		return err
	})
	return row.Delivery, err
}

// withStore runs f on an existing Store. It makes none.
func withStore(ctx context.Context, dir string, read bool, f func(*store.DB, *store.Tx) error) error {
	probe, err := store.Open(ctx, dir, store.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	defer probe.Close()
	if read {
		return probe.View(ctx, func(tx *store.Tx) error { return f(probe, tx) })
	}
	db, err := store.Open(ctx, dir, store.Options{})
	if err != nil {
		return err
	}
	defer db.Close()
	if err := db.CheckWritable(); err != nil {
		return err
	}
	return db.Update(ctx, func(tx *store.Tx) error { return f(db, tx) })
}
