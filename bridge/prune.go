package main

import (
	"context"
	"time"

	"github.com/agent-knock-knock/akk/internal/cli"
	"github.com/agent-knock-knock/akk/internal/retention"
	"github.com/agent-knock-knock/akk/internal/store"
)

// shrinkAll is more pages than a Store has: a command gives everything back.
const shrinkAll = 1 << 30

// pruneStore forgets what ended longer than age ago in an existing Store.
func pruneStore(ctx context.Context, dir string, age time.Duration, dryRun bool) (cli.PruneReport, error) {
	r := cli.PruneReport{DryRun: dryRun, Before: time.Now().UTC().Add(-age)}
	probe, err := store.Open(ctx, dir, store.Options{ReadOnly: true}) // it makes no Store
	if err != nil {
		return r, err
	}
	defer probe.Close()
	before, err := probe.Space(ctx)
	if err != nil {
		return r, err
	}
	r.SizeBefore, r.SizeAfter = before.Size, before.Size
	if dryRun {
		r.Gone, _, err = (&retention.Pruner{DB: probe, DryRun: true}).Prune(ctx, r.Before, 0)
		return r, err
	}
	db, err := store.Open(ctx, dir, store.Options{})
	if err != nil {
		return r, err
	}
	defer db.Close()
	if err := db.CheckWritable(); err != nil {
		return r, err
	}
	if r.Gone, _, err = (&retention.Pruner{DB: db}).Prune(ctx, r.Before, 0); err != nil {
		return r, err
	}
	if before.Shrinks {
		err = db.Shrink(ctx, shrinkAll)
	} else {
		err = db.Compact(ctx)
	}
	if err != nil {
		return r, err
	}
	after, err := db.Space(ctx)
	r.SizeAfter = after.Size
	return r, err
}
