package sessions_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/harness"
	"github.com/agent-knock-knock/akk/internal/harness/config"
	"github.com/agent-knock-knock/akk/internal/harness/harnesssql"
	"github.com/agent-knock-knock/akk/internal/harness/launch"
	"github.com/agent-knock-knock/akk/internal/harness/sessions"
	"github.com/agent-knock-knock/akk/internal/proc"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/testkit/fakeacp"
)

// agentArg makes the re-executed test binary the scripted agent.
const agentArg = "be-the-agent"

// patience bounds every wait of these tests: a loaded machine is slow, not wrong.
const patience = 60 * time.Second

func TestMain(m *testing.M) {
	proc.MaybeRunner()
	if len(os.Args) > 1 && os.Args[1] == agentArg {
		os.Exit(fakeacp.Main(os.Args[2:], os.Environ(), os.Stdin, os.Stdout, os.Stderr))
	}
	if len(os.Args) > 2 && os.Args[1] == frontArg {
		os.Exit(playFront(os.Args[2], os.Args[3:]))
	}
	os.Exit(m.Run())
}

// world is a Service with real agents and a real database.
type world struct {
	*testing.T
	ctx     context.Context
	dir     string
	cwd     string
	journal string // what the agent got, a line each
	db      *store.DB
	svc     *sessions.Service
	cfg     config.Config
	launch  *launch.Local
}

func newWorld(t *testing.T, change ...func(*config.Config)) *world {
	t.Helper()
	t.Parallel()
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	spawner := proc.NewSpawner()
	t.Cleanup(spawner.Close)
	runners := proc.NewRunners(spawner, 0)
	t.Cleanup(runners.Close)
	w := &world{T: t, ctx: ctx, dir: dir, cwd: t.TempDir(), journal: filepath.Join(dir, "journal"), cfg: config.Default(dir)}
	w.cfg.Transport.TerminateGraceSeconds = 1
	if err := os.Mkdir(filepath.Join(dir, "agent-state"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range change {
		c(&w.cfg)
	}
	w.launch = launch.NewLocal(runners, os.Environ(), launch.Options{EOFGrace: 2 * time.Second, TermGrace: time.Second})
	w.start()
	t.Cleanup(func() { w.stop() })
	return w
}

func (w *world) start() {
	w.Helper()
	w.open(sessions.On(w.launch))
}

// open is start with another way to start agents.
func (w *world) open(by sessions.Launcher) {
	w.Helper()
	var err error
	if w.db, err = store.OpenFile(w.ctx, filepath.Join(w.dir, "harness.db"), store.Options{Relaxed: true, Sets: []store.Set{harnesssql.Tables()}}); err != nil {
		w.Fatal(err)
	}
	if w.svc, err = sessions.New(w.ctx, w.db, sessions.Options{Config: w.cfg, Launcher: by}); err != nil {
		w.Fatal(err)
	}
}

func (w *world) stop() {
	w.Helper()
	if w.svc == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.ctx), patience)
	defer cancel()
	w.svc.Close(ctx)
	w.svc = nil
	if err := w.db.Close(); err != nil {
		w.Error(err)
	}
}

// launchOf is a session with the scripted agent and its flags.
func (w *world) launchOf(id string, flags ...string) harness.Launch {
	exe, err := os.Executable()
	if err != nil {
		w.Fatal(err)
	}
	return harness.Launch{SessionID: id, Harness: "scripted", ModelID: "default",
		Place: harness.Place{Cwd: w.cwd, Command: exe, Args: append([]string{agentArg, "--journal", w.journal, "--state", filepath.Join(w.dir, "agent-state")}, flags...)}}
}

func (w *world) create(id string, flags ...string) sessions.SessionStatus {
	w.Helper()
	st, err := w.svc.Create(w.ctx, w.launchOf(id, flags...))
	if err != nil {
		w.Fatalf("create: %v %v", err, harness.DetailOf(err))
	}
	return st
}

func (w *world) send(id, text string) string {
	w.Helper()
	sent, err := w.svc.Send(w.ctx, id, text, "", false)
	if err != nil {
		w.Fatalf("send %q: %v", text, err)
	}
	return sent.MessageID
}

// await waits until the message is as wanted.
func (w *world) await(id, message, what string, ok func(sessions.MessageStatus) bool) sessions.MessageStatus {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, patience)
	defer cancel()
	var seen *int64
	for {
		st, err := w.svc.AwaitMessage(ctx, id, message, sessions.Wait{For: time.Second, AfterSeq: seen})
		if err != nil {
			w.Fatal(err)
		}
		if ok(st) {
			return st
		}
		if ctx.Err() != nil || st.Terminal {
			w.Fatalf("the message is not %s: %s", what, text(st))
		}
		seen = &st.Seq
	}
}

func (w *world) end(id, message string) sessions.MessageStatus {
	w.Helper()
	return w.await(id, message, "terminal", func(st sessions.MessageStatus) bool { return st.Terminal })
}

// say sends a message and returns its end.
func (w *world) say(id, text string) sessions.MessageStatus {
	w.Helper()
	return w.end(id, w.send(id, text))
}

// asked sends a message and returns its status with n open questions.
func (w *world) asked(id, text string, n int) sessions.MessageStatus {
	w.Helper()
	return w.await(id, w.send(id, text), "asking", func(st sessions.MessageStatus) bool { return len(st.Questions) == n })
}

func (w *world) answer(id, request string, a harness.Answer) sessions.Answered {
	w.Helper()
	out, err := w.svc.Answer(w.ctx, id, request, "", a)
	if err != nil {
		w.Fatal(err)
	}
	return out
}

// session waits until the session is as wanted.
func (w *world) session(id, what string, ok func(sessions.SessionStatus) bool) sessions.SessionStatus {
	w.Helper()
	deadline := time.Now().Add(patience)
	for {
		st, err := w.svc.Status(w.ctx, id)
		if err != nil {
			w.Fatal(err)
		}
		if ok(st) {
			return st
		}
		if time.Now().After(deadline) {
			w.Fatalf("the session is not %s: %s", what, text(st))
		}
		tick(w.T)
	}
}

// idle waits until the session takes the next message.
func (w *world) idle(id string) {
	w.Helper()
	w.session(id, "idle", func(st sessions.SessionStatus) bool { return st.Operation == harness.SlotIdle })
}

// heard waits until the agent got a line with the words.
func (w *world) heard(words string) {
	w.Helper()
	deadline := time.Now().Add(patience)
	for {
		if strings.Contains(w.read(w.journal), words) {
			return
		}
		if time.Now().After(deadline) {
			w.Fatalf("the agent never got %q", words)
		}
		tick(w.T)
	}
}

func (w *world) read(path string) string {
	b, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		w.Fatal(err)
	}
	return string(b)
}

// kinds lists the kinds of the session's events, and checks that their numbers have no gap.
func (w *world) log(id string) []harness.Event {
	w.Helper()
	l, err := w.svc.Events(w.ctx, id, 0, 100000, 0)
	if err != nil {
		w.Fatal(err)
	}
	for i, e := range l.Events {
		if e.Seq != int64(i+1) {
			w.Fatalf("event %d has the number %d", i+1, e.Seq)
		}
	}
	return l.Events
}

// logged counts the events of a kind in a session's log.
func (w *world) logged(id string, kind harness.EventKind) (n int) {
	w.Helper()
	for _, e := range w.log(id) {
		if e.Kind == kind {
			n++
		}
	}
	return n
}

func (w *world) refused(err error, code fault.Code) {
	w.Helper()
	if !fault.Is(err, code) {
		w.Fatalf("got %v (%s), want %s", err, fault.CodeOf(err), code)
	}
}

func tick(t *testing.T) {
	timer := time.NewTimer(10 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.Context().Done():
	}
}

func text(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}
