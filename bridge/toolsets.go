package main

import (
	"context"

	"github.com/agent-knock-knock/akk/internal/catalogue/hosttools"
	"github.com/agent-knock-knock/akk/internal/cli"
	"github.com/agent-knock-knock/akk/internal/ledger/coord"
	"github.com/agent-knock-knock/akk/internal/ledger/ledgerserver"
	"github.com/agent-knock-knock/akk/internal/ledger/ledgersql"
	"github.com/agent-knock-knock/akk/internal/ledger/ledgertools"
	"github.com/agent-knock-knock/akk/internal/mcpserver"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/version"
)

// tableSets are the tables that the Store needs beside its own. A Bridge that serves no
// ledger makes none and reads none.
func tableSets(o cli.HostBridgeOptions) []store.Set {
	if o.Serves(cli.ToolsetCoordination) {
		return []store.Set{ledgersql.Tables()}
	}
	return nil
}

// offer fills the table of tools with the chosen families, each in its own order.
func (b *bridge) offer(session *mcpserver.Config) error {
	if b.options.Serves(cli.ToolsetTerminal) {
		services := hosttools.Services{Turns: b.turns, Watches: b.watches, Threads: b.threads, Panels: b.panels}
		if err := hosttools.Register(session.Registry, services, b.options.Extended); err != nil {
			return err
		}
	}
	if b.options.Serves(cli.ToolsetCoordination) {
		ledger := ledgertools.New(coord.New(b.db), ledgerserver.Name, version.Version)
		if err := ledger.Mount(session.Registry); err != nil {
			return err
		}
		session.Resources = ledgerResources{ledger}
	}
	return nil
}

// ledgerResources are the ledger's records and its view, for a session of the Bridge.
type ledgerResources struct{ tools *ledgertools.Tools }

func (r ledgerResources) Extensions() map[string]any {
	return map[string]any{ledgerserver.UIExtension: map[string]any{"mimeTypes": []string{ledgertools.ViewType}}}
}

func (r ledgerResources) Templates() []mcpserver.Resource {
	out := make([]mcpserver.Resource, len(ledgertools.Templates))
	for i, t := range ledgertools.Templates {
		out[i] = mcpserver.Resource{URI: t.URITemplate, Name: t.Name, Title: t.Title, Description: t.Description, MIMEType: t.MIMEType}
	}
	return out
}

func (r ledgerResources) List(ctx context.Context, cursor string) ([]mcpserver.Resource, string, error) {
	list, next, err := r.tools.Resources(ctx, cursor)
	out := make([]mcpserver.Resource, len(list))
	for i, e := range list {
		out[i] = mcpserver.Resource(e)
	}
	return out, next, err
}

func (r ledgerResources) Read(ctx context.Context, uri string) (mediaType, text string, err error) {
	c, err := r.tools.ReadResource(ctx, uri)
	return c.MIMEType, c.Text, err
}
