package pane

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/agent-knock-knock/akk/internal/agent/codex/appserver"
	"github.com/agent-knock-knock/akk/internal/agent/codex/known"
	"github.com/agent-knock-knock/akk/internal/fault"
)

// What Codex is told for the one pane, whatever its configuration says: the title names
// state and thread, which tells panes apart, and nothing moves that is no news. 0.130
// warns of the item thread-id and knows the others.
const (
	codexTitle    = `tui.terminal_title=["activity","run-state","thread-id"]`
	codexOldTitle = `tui.terminal_title=["activity","run-state"]`
	codexStill    = "tui.animations=false"
)

// codexRemote is in the help of the versions whose terminal program takes a server on a
// unix socket: 0.150–0.171; 0.130 takes a WebSocket address only.
const codexRemote = "unix://PATH"

// codexServerArgs are options that the server must know as well as the terminal program.
var codexServerArgs = map[string]bool{"-c": true, "--config": true, "--enable": true, "--disable": true}

// codexOpens are the subcommands that open the terminal program on a thread of their own.
var codexOpens = map[string]bool{"resume": true, "fork": true, "agents": true}

// planCodex chooses the best mode of this version.
func planCodex(r Request, help string, j *job, report *Report) error {
	a, err := splitCodex(r.Args)
	if err != nil {
		return err
	}
	j.Mode = ModeRemote
	if !strings.Contains(help, codexRemote) {
		j.Mode = ModeEmbedded
		report.Notes = append(report.Notes, "this Codex takes no server on a unix socket, so it runs embedded: it is driven by keys, and approvals are read from the screen; a newer Codex brings the socket")
	}
	a.Old = j.Mode == ModeEmbedded
	j.Codex = a
	j.Thread = j.Mode == ModeRemote && !a.Opens
	return nil
}

// codexArgs are a person's arguments, sorted.
type codexArgs struct {
	Options []string `json:"options,omitempty"` // of the terminal program
	Server  []string `json:"server,omitempty"`  // those of Options that the server gets too
	Rest    []string `json:"rest,omitempty"`    // a prompt, or a subcommand and what belongs to it
	Opens   bool     `json:"opens,omitempty"`   // Rest says which thread is shown
	Old     bool     `json:"old,omitempty"`     // a version without a server
}

func splitCodex(args []string) (codexArgs, error) {
	const op = "pane.codex"
	var a codexArgs
	for i := 0; i < len(args); i++ {
		arg := args[i]
		name, _, inline := strings.Cut(arg, "=")
		switch {
		case name == known.RemoteFlag:
			return a, fault.New(fault.Invalid, op, "%s is chosen by this command", known.RemoteFlag).WithHint("leave it out, or start codex yourself")
		case known.BatchFlags[arg]:
			return a, fault.New(fault.Invalid, op, "%s shows no terminal program", arg).WithHint("run codex %s yourself", arg)
		case arg == "--":
			a.Rest = args[i:]
			return a, nil
		case known.ValueFlags[name] && !inline && i+1 < len(args):
			i++
			a.Options = append(a.Options, arg, args[i])
			if codexServerArgs[name] {
				a.Server = append(a.Server, arg, args[i])
			}
		case strings.HasPrefix(arg, "-"):
			a.Options = append(a.Options, arg)
			if codexServerArgs[name] && inline {
				a.Server = append(a.Server, arg)
			}
		case known.BatchCommands[arg]:
			return a, fault.New(fault.Invalid, op, "codex %s shows no terminal program", arg).WithHint("run it yourself; pane starts the interactive program")
		default:
			a.Rest, a.Opens = args[i:], codexOpens[arg]
			return a, nil
		}
	}
	return a, nil
}

// codexServer is the argv of the app server on the socket.
func codexServer(path, socket string, a codexArgs) []string {
	return append([]string{path, "app-server", "--listen", known.RemoteUnixScheme + socket}, a.Server...)
}

// codexTUI is the argv of the terminal program. Without a socket it is embedded.
func codexTUI(path, socket, thread string, a codexArgs) []string {
	title := codexTitle
	if a.Old {
		title = codexOldTitle
	}
	// Any -c also keeps Codex from its shared background server, which knows no pane.
	argv := append([]string{path, "-c", title, "-c", codexStill}, a.Options...)
	if socket != "" {
		argv = append(argv, known.RemoteFlag, known.RemoteUnixScheme+socket)
	}
	if thread != "" {
		argv = append(argv, "resume", thread)
	}
	return append(argv, a.Rest...)
}

const (
	listenLimit = 20 * time.Second // from the server's start to its first answer
	listenPoll  = 50 * time.Millisecond
)

// awaitServer waits until the server answers; ended is closed when it is gone.
func awaitServer(ctx context.Context, socket string, ended <-chan struct{}) (*appserver.Conn, error) {
	const op = "pane.server"
	ctx, cancel := context.WithTimeout(ctx, listenLimit)
	defer cancel()
	for {
		c, err := appserver.Dial(ctx, socket)
		if err == nil {
			return c, nil
		}
		t := time.NewTimer(listenPoll) // the server says nothing when it is ready
		select {
		case <-t.C:
		case <-ended:
			t.Stop()
			return nil, fault.New(fault.Unavailable, op, "Codex's app server ended at once")
		case <-ctx.Done():
			t.Stop()
			return nil, fault.Wrap(err, fault.Timeout, op, "Codex's app server does not answer")
		}
	}
}

// recordLimit is how long a named thread may take to be on disk; 0.150 and 0.171 write it
// at once, 0.160 with the first prompt.
const recordLimit = 2 * time.Second

// newThread makes a named thread in dir. The name has its record written now, so that the
// terminal program can resume it, and spares the model a title. A version that does not
// write it gets no thread from us: id is "", and the terminal program makes its own.
func newThread(ctx context.Context, c *appserver.Conn, dir, name string) (id string, err error) {
	var a appserver.ThreadAnswer
	if err := c.Call(ctx, known.MThreadStart, map[string]any{"cwd": filepath.Clean(dir)}, &a); err != nil {
		return "", fault.Wrap(err, fault.Unavailable, "pane.thread", "Codex's app server makes no thread")
	}
	if err := c.Call(ctx, known.MThreadName, map[string]any{"threadId": a.Thread.ID, "name": name}, nil); err != nil {
		return "", fault.Wrap(err, fault.Unavailable, "pane.thread", "Codex's app server does not name a thread")
	}
	limit := time.NewTimer(recordLimit)
	defer limit.Stop()
	tick := time.NewTicker(listenPoll)
	defer tick.Stop()
	for {
		if st, err := os.Stat(a.Thread.Path); err == nil && st.Mode().IsRegular() {
			return a.Thread.ID, nil
		}
		select {
		case <-tick.C:
		case <-limit.C:
			return "", nil
		case <-ctx.Done():
			return "", fault.Wrap(ctx.Err(), fault.Timeout, "pane.thread", "the pane ended")
		}
	}
}
