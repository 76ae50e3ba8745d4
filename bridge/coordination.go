package main

import (
	"context"
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
	var db *store.DB
	var err error
	if o.DB == "" {
		db, err = store.OpenMemory(ctx, options)
	} else {
		db, err = store.OpenFile(ctx, o.DB, options)
	}
	if err != nil {
		return err
	}
	defer db.Close()
	service := coord.New(db, coord.WithAssignmentClaimLeaseTTL(o.LeaseTTL))
	return ledgerserver.New(service, version.Version).Serve(ctx, stdin, stdout)
}
