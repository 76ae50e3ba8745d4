package fakeacp

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"
)

type raw = json.RawMessage

type object map[string]any

// frame is any message.
type frame struct {
	ID     raw    `json:"id"`
	Method string `json:"method"`
	Params raw    `json:"params"`
	Result raw    `json:"result"`
	Error  *rpc   `json:"error"`
}

type rpc struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

// agent is one process.
type agent struct {
	flags Flags
	in    *bufio.Reader
	err   io.Writer
	ctx   context.Context
	exit  func(int)

	writing sync.Mutex
	out     io.Writer

	mu       sync.Mutex
	nextID   int // of our requests: from 0, as real agents do
	waiting  map[string]chan frame
	sessions map[string]*session
	loggedIn bool
	caps     raw
	turns    sync.WaitGroup
}

// session is one conversation.
type session struct {
	id, cwd string
	options map[string]string
	cancel  context.CancelFunc // of the running prompt
}

// Main plays the agent as a process of its own until its stdin ends, and returns the exit
// status.
func Main(args, env []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return run(args, env, stdin, stdout, stderr, os.Exit)
}

// Run plays the agent inside this process. EXIT ends it like the end of stdin; CRASH and
// --stay-open are not for it.
func Run(args, env []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return run(args, env, stdin, stdout, stderr, nil)
}

func run(args, env []string, stdin io.Reader, stdout, stderr io.Writer, exit func(int)) int {
	flags, err := ParseFlags(args, env, stderr)
	if err != nil {
		return 2
	}
	if flags.Login {
		return login(flags, stdin, stdout)
	}
	if flags.IgnoreTERM {
		signal.Ignore(syscall.SIGTERM)
	}
	if flags.EnvDump != "" {
		if err := os.WriteFile(flags.EnvDump, []byte(strings.Join(env, "\n")+"\n"), 0o600); err != nil {
			fmt.Fprintln(stderr, err)
			return 2
		}
	}
	if flags.Stderr != "" {
		fmt.Fprintln(stderr, flags.Stderr)
	}
	ctx, stop := context.WithCancel(context.Background())
	if exit == nil {
		exit = func(int) {
			stop()
			if c, ok := stdin.(io.Closer); ok {
				_ = c.Close()
			}
		}
	}
	a := &agent{
		exit: exit, flags: flags, in: bufio.NewReader(stdin), out: stdout, err: stderr, ctx: ctx,
		waiting: map[string]chan frame{}, sessions: map[string]*session{}, loggedIn: !flags.AuthRequired,
	}
	if flags.Prose {
		a.line("Loaded cached credentials.")
	}
	a.serve()
	stop()
	if flags.StayOpen {
		select {}
	}
	a.turns.Wait()
	return 0
}

func (a *agent) serve() {
	for {
		line, err := a.in.ReadBytes('\n')
		if len(line) > 0 {
			a.journal(line)
			var f frame
			if json.Unmarshal(line, &f) != nil {
				a.send(object{"jsonrpc": "2.0", "id": nil, "error": rpc{Code: -32700, Message: "Parse error"}})
			} else {
				a.receive(f)
			}
		}
		if err != nil {
			return
		}
	}
}

func (a *agent) journal(line []byte) {
	if a.flags.Journal == "" {
		return
	}
	f, err := os.OpenFile(a.flags.Journal, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		fmt.Fprintln(a.err, err)
		return
	}
	defer f.Close()
	_, _ = f.Write(line)
}

func (a *agent) receive(f frame) {
	switch {
	case f.Method == "" && f.ID != nil:
		a.mu.Lock()
		reply := a.waiting[string(f.ID)]
		delete(a.waiting, string(f.ID))
		a.mu.Unlock()
		if reply != nil {
			reply <- f
		}
	case f.Method == "session/cancel":
		if s := a.session(f.Params); s != nil {
			a.mu.Lock()
			if s.cancel != nil {
				s.cancel()
			}
			a.mu.Unlock()
		}
	case f.ID == nil: // other notifications are ignored, as the protocol says
	case f.Method == "session/prompt":
		a.prompt(f)
	case f.Method == "initialize" && a.flags.SlowInit > 0, f.Method == "session/new" && a.flags.SlowNew > 0, f.Method == "authenticate":
		a.turns.Go(func() { a.answer(f) })
	default:
		a.answer(f)
	}
}

func (a *agent) session(params raw) *session {
	var p struct{ SessionID string }
	_ = json.Unmarshal(params, &p)
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.sessions[p.SessionID]
}

// answer runs one call that is no prompt.
func (a *agent) answer(f frame) {
	result, failure, silent := a.call(f)
	switch {
	case silent:
	case failure != nil:
		a.send(object{"jsonrpc": "2.0", "id": f.ID, "error": failure})
	default:
		a.send(object{"jsonrpc": "2.0", "id": f.ID, "result": result})
	}
}

func (a *agent) send(message any) {
	line, err := json.Marshal(message)
	if err != nil {
		panic(err) // a mistake in this package
	}
	a.line(string(line))
}

// line writes one line whole.
func (a *agent) line(text string) {
	a.writing.Lock()
	defer a.writing.Unlock()
	if _, err := io.WriteString(a.out, text+"\n"); err != nil {
		a.exit(1) // nobody listens any more
	}
}

func (a *agent) notify(method string, params any) {
	a.send(object{"jsonrpc": "2.0", "method": method, "params": params})
}

func (a *agent) update(s *session, update object) {
	a.notify("session/update", object{"sessionId": s.id, "update": update})
}

// ask sends a request; the channel gets its response. It counts from 0 in every process.
func (a *agent) ask(method string, params any) (id int, reply <-chan frame) {
	answer := make(chan frame, 1)
	a.mu.Lock()
	id = a.nextID
	a.nextID++
	a.waiting[fmt.Sprint(id)] = answer
	a.mu.Unlock()
	a.send(object{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
	return id, answer
}

// pause waits, and reports false when ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
