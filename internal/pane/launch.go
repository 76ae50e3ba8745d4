package pane

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/wire"
)

const (
	// WrapperArg is the reserved argv[1] with which our executable is the wrapper; argv[2]
	// is the starter's socket.
	WrapperArg = "__akk-pane"

	maxSessions = 100 // names that are tried: codex, codex-2, …
	lastLines   = 6   // of the screen of an agent that ended at once
)

// launch makes the tmux session with the wrapper in it, hands over the job and waits until
// the terminal program runs.
func launch(ctx context.Context, t terminal, r Request, j job, report Report) (Report, error) {
	const op = "pane.start"
	ctx, cancel := context.WithTimeout(ctx, upLimit)
	defer cancel()
	dir, err := wire.OpenRunDir("")
	if err != nil {
		return Report{}, err
	}
	defer dir.Close()
	socket := filepath.Join(dir.Path(), "start")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return Report{}, fault.Wrap(err, fault.Unavailable, op, "cannot listen in %s", dir.Path())
	}
	defer listener.Close()
	stop := context.AfterFunc(ctx, func() { listener.Close() })
	defer stop()

	if j.Name, err = t.freeName(ctx, r); err != nil {
		return Report{}, err
	}
	wrapper := []string{r.Self, WrapperArg, socket}
	command := []string{"new-session", "-d", "-s", j.Name, "-n", r.Agent, "-x", "120", "-y", "40", "-c", r.Dir}
	out, err := t.run(ctx, slices.Concat(command, []string{"-P", "-F", "#{pane_id} #{socket_path}"}, wrapper)...)
	if err != nil {
		return Report{}, fault.Wrap(err, fault.Unavailable, op, "the tmux session %q was not made", j.Name).
			WithHint("look at `%s`; another --name may be free", shell(t.argv("list-sessions")...))
	}
	report.Session = j.Name
	report.PaneID, report.Socket, _ = strings.Cut(out, " ")
	report.Commands = []string{shell(t.argv(slices.Concat(command, wrapper)...)...) + "   # starts, in this pane:"}
	report.AttachArg = t.attach(j.Name)
	report.Attach = shell(report.AttachArg...)
	if err := handOver(ctx, t, listener, j, &report); err != nil {
		t.run(context.WithoutCancel(ctx), "kill-session", "-t", "="+j.Name) // an error: it has ended by itself
		return Report{}, err
	}
	return report, nil
}

// freeName is the wanted name, or the first free one of the agent's.
func (t terminal) freeName(ctx context.Context, r Request) (string, error) {
	if r.Name != "" {
		if t.has(ctx, r.Name) {
			return "", fault.New(fault.AlreadyExists, "pane.name", "there is a tmux session %q already", r.Name).
				WithHint("attach with `%s`, or pass another --name", shell(t.attach(r.Name)...))
		}
		return r.Name, nil
	}
	name := r.Agent
	for i := 2; t.has(ctx, name); i++ {
		if i > maxSessions {
			return "", fault.New(fault.AlreadyExists, "pane.name", "there are %d sessions %q already", maxSessions, r.Agent).WithHint("pass --name")
		}
		name = fmt.Sprintf("%s-%d", r.Agent, i)
	}
	return name, nil
}

// handOver talks to the wrapper until the agent runs or does not.
func handOver(ctx context.Context, t terminal, listener net.Listener, j job, report *Report) error {
	const op = "pane.start"
	conn, err := listener.Accept()
	if err != nil {
		return fault.Wrap(context.Cause(ctx), fault.Timeout, op, "nothing came up in the tmux session %q", j.Name).
			WithHint("look at the tmux server; is %s executable for it?", "agent-knock-knock")
	}
	l := newLink(conn)
	defer l.close()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := l.send(j); err != nil {
		return err
	}
	report.Mode, report.ThreadID = j.Mode, j.ThreadID
	for {
		var n news
		if err := l.receive(&n, maxNews); err != nil {
			if ctx.Err() != nil {
				return fault.Wrap(err, fault.Timeout, op, "%s did not come up in %s", j.Agent, upLimit).WithHint("start it by hand and see")
			}
			return fault.Wrap(err, fault.Unavailable, op, "the pane ended while %s came up", j.Agent).WithHint("start it by hand and see")
		}
		if n.Note != "" {
			report.Notes = append(report.Notes, n.Note)
		}
		if n.Mode != "" {
			report.Mode = n.Mode
		}
		if n.ThreadID != "" {
			report.ThreadID = n.ThreadID
		}
		report.Commands = append(report.Commands, n.Commands...)
		if n.Failed != "" {
			shows, _ := t.run(context.WithoutCancel(ctx), "capture-pane", "-p", "-t", report.PaneID)
			return fault.New(fault.Unavailable, op, "%s%s", n.Failed, says(shows)).WithHint("start it by hand and see: %s", report.lastCommand())
		}
		if n.Up {
			return nil
		}
	}
}

// says is the end of a screen in one line.
func says(screen string) string {
	var lines []string
	for line := range strings.Lines(screen) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return ""
	}
	return "; it said: " + strings.Join(lines[max(0, len(lines)-lastLines):], " ⏎ ")
}

func (r Report) lastCommand() string {
	return strings.TrimSpace(r.Commands[len(r.Commands)-1])
}
