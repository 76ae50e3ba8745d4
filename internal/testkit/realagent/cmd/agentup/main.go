// Command agentup brings up one real coding agent, offline, in a pane of a private tmux
// server, prints where it is and keeps it until it is interrupted. With no --model it
// also runs the scripted model server.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/agent-knock-knock/akk/internal/testkit/fakemodel"
	"github.com/agent-knock-knock/akk/internal/testkit/realagent"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() (err error) {
	var o realagent.Options
	mode := flag.String("agent", "embedded", "embedded, daemon or remote (Codex), or claude")
	flag.StringVar(&o.Socket, "socket", "", "tmux socket `path`; the server is started if it does not run")
	flag.StringVar(&o.Session, "session", "", "name of the tmux session to make (default: the agent)")
	flag.StringVar(&o.Dir, "dir", "", "existing `folder` for the agent's home and project (default: a new one, removed at the end)")
	flag.StringVar(&o.ModelURL, "model", "", "`URL` of a model server (default: run one)")
	flag.StringVar(&o.Bin, "bin", "", "`folder` of the agents' executables (default: install the pinned versions)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	o.Mode = realagent.Mode(*mode)
	switch o.Mode {
	case realagent.CodexEmbedded, realagent.CodexDaemon, realagent.CodexRemote, realagent.ClaudePlain:
	default:
		return fmt.Errorf("agentup: --agent %q: want embedded, daemon, remote or claude", *mode)
	}
	if o.Bin == "" {
		if _, ok := realagent.Agents.Installed(); !ok {
			fmt.Fprintln(os.Stderr, "npm installs the pinned agents, about 700 MB, once")
		}
		if o.Bin, err = realagent.Agents.Install(ctx); err != nil {
			return err
		}
	}
	if o.Dir == "" {
		if o.Dir, err = os.MkdirTemp("", "akk-agent-"); err != nil {
			return err
		}
		defer os.RemoveAll(o.Dir)
	}
	if o.Socket == "" {
		o.Socket = filepath.Join(o.Dir, "tmux")
	}
	if o.Session == "" {
		o.Session = o.Mode.Kind()
	}
	if o.ModelURL == "" {
		s, err := fakemodel.Listen("127.0.0.1:0", nil)
		if err != nil {
			return err
		}
		defer s.Close()
		o.ModelURL = s.URL()
	}
	a, err := realagent.Up(ctx, o)
	if err != nil {
		return err
	}
	fmt.Print(a)
	fmt.Println("ready")
	<-ctx.Done()
	return a.Down()
}
