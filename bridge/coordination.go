package main

import (
	"context"
	"errors"
	"io"

	"github.com/agent-knock-knock/akk/internal/cli"
	"github.com/agent-knock-knock/akk/internal/ledger/coord"
	"github.com/agent-knock-knock/akk/internal/ledger/ledgerserver"
	"github.com/agent-knock-knock/akk/internal/ledger/ledgersql"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/version"
)

// coordinationServer serves the ledger of a file, or of memory, to one MCP client.
func coordinationServer(ctx context.Context, o cli.CoordinationOptions, stdin io.Reader, stdout, _ io.Writer) error {
	options := store.Options{Sets: []store.Set{ledgersql.Tables()}}
	if o.DB != "" { // what a look shows is refused before the client is greeted
		if err := store.CheckFile(o.DB); err != nil {
			return err
		}
	}
	var db *store.DB
	open := func() (_ *coord.Service, err error) {
		if o.DB == "" {
			db, err = store.OpenMemory(ctx, options)
		} else {
			db, err = store.OpenFile(ctx, o.DB, options)
		}
		if err != nil {
			return nil, err
		}
		return coord.New(db, coord.WithAssignmentClaimLeaseTTL(o.LeaseTTL)), nil
	}
	server := ledgerserver.Opening(open, version.Version)
	if err := server.Restrict(o.Policy); err != nil {
		return err
	}
	err := server.Serve(ctx, stdin, stdout)
	if db != nil { // Serve has waited for open
		err = errors.Join(err, db.Close())
	}
	return err
}
