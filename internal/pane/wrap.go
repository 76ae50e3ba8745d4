package pane

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/agent-knock-knock/akk/internal/agent/claude/known"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/proc"
	"github.com/agent-knock-knock/akk/internal/wire"
)

// The bounds of the wrapper.
const (
	starterLimit = 10 * time.Second       // for the starter to say what is to be run
	rawLimit     = 30 * time.Second       // for the terminal program to take the terminal
	rawPoll      = 50 * time.Millisecond  // there is no event for that
	settled      = 700 * time.Millisecond // it may still fail right after that
	capturedIn   = 5 * time.Second        // for the starter to read the screen of a failure
	endGrace     = 700 * time.Millisecond // from the polite signal to the kill, for program and server alike
	maxServerLog = 4 << 10
)

// Terminal is the pane's terminal as the wrapper got it.
type Terminal struct{ In, Out, Err *os.File }

// Wrap is the wrapper: the first process of the pane. It fetches the job from the starter,
// runs the agent's terminal program in the foreground, and returns its exit status when
// it has ended and nothing of ours is left. ctx ends when the pane goes (SIGHUP) or
// somebody ends the wrapper; the keys of the terminal must not end it.
func Wrap(ctx context.Context, starter string, term Terminal) (int, error) {
	d := net.Dialer{Timeout: starterLimit}
	conn, err := d.DialContext(ctx, "unix", starter)
	if err != nil {
		return 1, fault.Wrap(err, fault.Unavailable, "pane.wrap", "this runs inside a pane that `agent-knock-knock pane` makes").
			WithHint("run `agent-knock-knock pane --help`")
	}
	w := &wrapper{term: term, starter: newLink(conn)}
	defer w.starter.close()
	_ = conn.SetReadDeadline(time.Now().Add(starterLimit))
	if err := w.starter.receive(&w.job, maxJob); err != nil {
		return 1, err
	}
	_ = conn.SetReadDeadline(time.Time{})
	return w.run(ctx)
}

type wrapper struct {
	job
	term    Terminal
	starter *link
	dir     *wire.RunDir
	server  *server
}

func (w *wrapper) run(ctx context.Context) (int, error) {
	var err error
	if w.dir, err = wire.OpenRunDir(""); err != nil {
		return w.fail(ctx, err)
	}
	defer w.dir.Close()
	argv, commands, err := w.prepare(ctx)
	if err != nil {
		return w.fail(ctx, err)
	}
	if w.server != nil {
		defer w.server.end()
	}
	_ = w.starter.send(news{Mode: w.Mode, ThreadID: w.ThreadID, Commands: commands})
	return w.foreground(ctx, argv)
}

// fail tells the starter and leaves the pane open until it has read the screen.
func (w *wrapper) fail(ctx context.Context, err error) (int, error) {
	_, msg, _ := fault.Public(err)
	w.failed(ctx, msg)
	return 1, err
}

func (w *wrapper) failed(ctx context.Context, why string) {
	if w.starter.send(news{Failed: why}) != nil {
		return
	}
	stop := context.AfterFunc(ctx, w.starter.close)
	defer stop()
	_ = w.starter.conn.SetReadDeadline(time.Now().Add(capturedIn))
	w.starter.drained()
}

// prepare starts and writes what the terminal program needs, and returns its argv and
// the lines that say what is run.
func (w *wrapper) prepare(ctx context.Context) (argv, commands []string, err error) {
	if w.Agent == Claude {
		file := ""
		if w.Hooks {
			if file, err = w.hooks(); err != nil {
				return nil, nil, err
			}
		}
		argv = claudeTUI(w.Path, w.ThreadID, file, w.Args)
		return argv, []string{shell(argv...)}, nil
	}
	if w.Mode == ModeRemote {
		if err := w.startServer(ctx); err != nil {
			if ctx.Err() != nil {
				return nil, nil, err
			}
			w.embedded(err)
		}
	}
	socket := ""
	if w.server != nil {
		socket = w.server.socket
		commands = append(commands, shell(codexServer(w.Path, socket, w.Codex)...)+"   # ends with the pane")
	}
	argv = codexTUI(w.Path, socket, w.ThreadID, w.Codex)
	return argv, append(commands, shell(argv...)), nil
}

// embedded gives the server up: a terminal program alone is worth more than an error.
func (w *wrapper) embedded(err error) {
	_, msg, _ := fault.Public(err)
	if w.server != nil {
		w.server.end()
		if said := strings.TrimSpace(string(w.server.log.buf)); said != "" {
			msg += ": " + said[strings.LastIndexByte(said, '\n')+1:]
		}
		w.server = nil
	}
	w.Mode, w.ThreadID = ModeEmbedded, ""
	_ = w.starter.send(news{Note: msg + "; it runs embedded instead: driven by keys, approvals read from the screen"})
}

// hooks writes the settings file of Claude Code, and the empty file of its events.
func (w *wrapper) hooks() (file string, err error) {
	events := filepath.Join(w.dir.Path(), known.HookEventLog)
	file = filepath.Join(w.dir.Path(), known.HookSettings)
	b, err := settings(events)
	if err == nil {
		err = errors.Join(os.WriteFile(events, nil, 0o600), os.WriteFile(file, b, 0o600))
	}
	if err != nil {
		return "", fault.Wrap(err, fault.Unavailable, "pane.hooks", "the settings file cannot be written in %s", w.dir.Path())
	}
	return file, nil
}

// env is the person's environment with what belongs to this pane.
func (w *wrapper) env() []string {
	env := append(w.Env, "PWD="+w.Dir)
	for _, name := range []string{"TERM", "TMUX", "TMUX_PANE", "TERM_PROGRAM", "TERM_PROGRAM_VERSION"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// foreground runs the terminal program on the pane's terminal and in the wrapper's process
// group, so that it has the keyboard.
func (w *wrapper) foreground(ctx context.Context, argv []string) (int, error) {
	cmd := &exec.Cmd{Path: argv[0], Args: argv, Env: w.env(), Dir: w.Dir, Stdin: w.term.In, Stdout: w.term.Out, Stderr: w.term.Err}
	if err := cmd.Start(); err != nil {
		return w.fail(ctx, fault.Wrap(err, fault.Unavailable, "pane.run", "%s cannot be started", argv[0]))
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // the status is in ProcessState
		close(ended)
	}()
	if w.up(ctx, ended) {
		_ = w.starter.send(news{Up: true})
	} else if ctx.Err() == nil {
		w.failed(ctx, w.Agent+" ended at once ("+cmd.ProcessState.String()+")")
	}
	w.starter.close()
	select {
	case <-ended:
	case <-ctx.Done(): // the pane is gone; the program has heard that from the kernel too
		politely(cmd.Process.Pid, syscall.SIGHUP, ended, func() { _ = cmd.Process.Kill() })
		<-ended
	}
	return cmd.ProcessState.ExitCode(), nil
}

// up waits until the program has taken the terminal, which is when it draws. A program
// that is slow with it counts as up, too.
func (w *wrapper) up(ctx context.Context, ended <-chan struct{}) bool {
	limit := time.NewTimer(rawLimit)
	defer limit.Stop()
	tick := time.NewTicker(rawPoll)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			return false
		case <-ctx.Done():
			return false
		case <-limit.C:
			return true
		case <-tick.C:
			if !lineMode(w.term.In) {
				tick.Stop()
				limit.Reset(settled)
			}
		}
	}
}

// politely signals a child that was not reaped yet, and kills it after the grace.
func politely(pid int, sig syscall.Signal, ended <-chan struct{}, kill func()) {
	select {
	case <-ended:
		return
	default:
	}
	_ = syscall.Kill(pid, sig)
	t := time.NewTimer(endGrace)
	defer t.Stop()
	select {
	case <-ended:
	case <-t.C:
		kill()
	}
}

// server is Codex's app server, contained: whatever it starts ends with it, and it ends
// with the wrapper in any case.
type server struct {
	socket  string
	spawner *proc.Spawner
	runners *proc.Runners
	child   *proc.Contained
	ended   chan struct{}
	log     *tail
	logged  chan struct{}
}

func (w *wrapper) startServer(ctx context.Context) error {
	const op = "pane.server"
	s := &server{socket: filepath.Join(w.dir.Path(), "s"), ended: make(chan struct{}), log: &tail{max: maxServerLog}, logged: make(chan struct{})}
	r, out, err := os.Pipe()
	if err != nil {
		return fault.Wrap(err, fault.Unavailable, op, "cannot make a pipe")
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		r.Close()
		out.Close()
		return fault.Wrap(err, fault.Unavailable, op, "cannot open %s", os.DevNull)
	}
	s.spawner = proc.NewSpawner()
	s.runners = proc.NewRunners(s.spawner, 0)
	s.child, err = s.runners.Start(ctx, proc.Program{Path: w.Path, Args: codexServer(w.Path, s.socket, w.Codex), Env: w.env(), Dir: w.Dir}, null, out, out)
	out.Close()
	null.Close()
	if err != nil {
		r.Close()
		s.runners.Close()
		s.spawner.Close()
		return fault.Wrap(err, fault.Unavailable, op, "Codex's app server cannot be started")
	}
	w.server = s
	go func() {
		defer close(s.logged)
		defer r.Close()
		buf := make([]byte, 4<<10)
		for {
			n, err := r.Read(buf)
			s.log.Write(buf[:n])
			if err != nil {
				return
			}
		}
	}()
	go func() {
		defer close(s.ended)
		_, _ = s.child.Wait(context.WithoutCancel(ctx)) // it is ended below, never by ctx
	}()
	conn, err := awaitServer(ctx, s.socket, s.ended)
	if err != nil {
		return err
	}
	defer conn.Close()
	if !w.Thread {
		return nil
	}
	w.ThreadID, err = newThread(ctx, conn, w.Dir, w.Name+" in "+filepath.Base(w.Dir))
	if err == nil && w.ThreadID == "" {
		_ = w.starter.send(news{Note: "this Codex keeps no thread before its first prompt, so the terminal program makes its own; the pane's title names it"})
	}
	return err
}

// end ends the server and everything that it started.
func (s *server) end() {
	politely(s.child.PID, syscall.SIGTERM, s.ended, s.child.Kill)
	s.runners.Close()
	<-s.ended
	<-s.logged
	s.spawner.Close()
}
