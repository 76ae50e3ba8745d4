package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/agent-knock-knock/akk/internal/agent/claude"
	"github.com/agent-knock-knock/akk/internal/agent/codex"
	"github.com/agent-knock-knock/akk/internal/cli"
	"github.com/agent-knock-knock/akk/internal/clock"
	"github.com/agent-knock-knock/akk/internal/discover"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/turn/dispatch"
	"github.com/agent-knock-knock/akk/internal/watch/watcher"
)

// list shows what a Bridge on this Store would show. It creates no Store.
func list(ctx context.Context, o cli.ListOptions, stdout, _ io.Writer) error {
	db, err := store.Open(ctx, o.StoreDir, store.Options{ReadOnly: true})
	switch {
	case fault.Is(err, fault.NotFound):
		db = nil
	case err != nil:
		return err
	default:
		defer db.Close()
	}
	s := dispatch.New(dispatch.Config{DB: db, Clock: clock.System{}, Watches: watcher.New(watcher.Config{DB: db}),
		Scanner: discover.New(o.TmuxSockets, codex.New(codex.Options{}), claude.New(claude.Options{}))})
	r, err := s.List(ctx, dispatch.ListInput{Limit: dispatch.MaxPage})
	if err != nil {
		return err
	}
	if o.Output.JSON {
		b, err := json.MarshalIndent(r, "", "  ")
		if err != nil {
			return fmt.Errorf("list: %w", err)
		}
		_, err = fmt.Fprintf(stdout, "%s\n", b)
		return err
	}
	return writeList(stdout, o.Output, r)
}

func writeList(w io.Writer, out cli.Output, r dispatch.ListResult) error {
	if len(r.Terminals) == 0 {
		if _, err := fmt.Fprintf(w, "No coding agent runs in a tmux pane of yours (%d tmux servers). Start codex or claude in tmux.\n", r.Scan.Servers); err != nil {
			return err
		}
	} else {
		table := cli.NewTable("TERMINAL", "AGENT", "STATE", "WHERE", "WORKSPACE", "TASK")
		for _, t := range r.Terminals {
			state := cli.Plain(string(t.State))
			switch t.State {
			case discover.Idle:
				state = cli.Green(string(t.State))
			case discover.Unknown:
				state = cli.Red(string(t.State) + ": " + t.Reason)
			}
			task := ""
			if t.CurrentTurn != nil {
				task = fmt.Sprintf("%s %s", t.CurrentTurn.TurnID, t.CurrentTurn.Status)
			}
			table.Row(cli.Plain(t.ShortRef), cli.Plain(t.Agent+" "+t.AgentVersion), state, cli.Plain(t.Target), cli.Plain(t.Workspace), cli.Plain(task))
		}
		if err := table.Write(w, out); err != nil {
			return err
		}
	}
	for _, p := range r.Scan.Problems {
		if _, err := fmt.Fprintf(w, "problem: %s: %s\n", p.Where, p.What); err != nil {
			return err
		}
	}
	return nil
}
