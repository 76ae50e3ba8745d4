package codex

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/procinfo"
	"github.com/agent-knock-knock/akk/internal/turn"
)

// home is a CODEX_HOME with rollouts in it, and the processes that hold them open.
type home struct {
	t     testing.TB
	dir   string
	cwd   string
	procs []procinfo.Process
	open  map[int][]procinfo.File
	fail  map[int]error
	a     *Adapter
	ref   agent.Ref
	n     agent.Native
}

func newHome(t testing.TB) *home {
	t.Helper()
	h := &home{t: t, dir: realDir(t.TempDir()), cwd: realDir(t.TempDir()), open: map[int][]procinfo.File{}, fail: map[int]error{}}
	h.a = New(Options{
		Processes: func(context.Context) ([]procinfo.Process, error) { return h.procs, nil },
		OpenFiles: func(_ context.Context, pid int) ([]procinfo.File, error) { return h.open[pid], h.fail[pid] },
	})
	h.ref = agent.Ref{Process: turn.Incarnation{PID: 100}, Cwd: h.cwd}
	h.n = agent.Native{Version: "0.171.0", Mode: ModeEmbedded, Thread: agent.ThreadResolved, Extra: map[string]string{extraHome: h.dir}}
	h.process(100, "codex")
	return h
}

func (h *home) process(pid int, args ...string) {
	h.procs = append(h.procs, procinfo.Process{Incarnation: turn.Incarnation{PID: pid}, Args: args})
}

// id is a thread id of the nth thread.
func id(n int) string { return fmt.Sprintf("01a2347%d-0000-7000-8000-%012d", n%10, n) }

// rollout writes the file of a thread with a first prompt, as 0.171 does: with a first line
// that is long after the directory.
func (h *home) rollout(folder string, n int, cwd, source, prompt string, age time.Duration) string {
	h.t.Helper()
	dir := filepath.Join(h.dir, folder)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		h.t.Fatal(err)
	}
	path := filepath.Join(dir, "rollout-2026-12-02T01-00-00-"+id(n)+".jsonl")
	text := fmt.Sprintf(`{"timestamp":"2026-12-02T01:00:00Z","ordinal":0,"type":"session_meta","payload":{"session_id":%q,"id":%q,"cwd":%q,"cli_version":"0.171.0","source":%s,"thread_source":"user","base_instructions":{"text":%q}}}`,
		id(n), id(n), cwd, source, strings.Repeat("be helpful ", 2000)) + "\n"
	text += `{"timestamp":"2026-12-02T01:00:00Z","type":"response_item","payload":{"type":"message","role":"developer","content":[{"type":"input_text","text":"` + strings.Repeat("x", 15000) + `"}]}}` + "\n"
	if prompt != "" {
		text += fmt.Sprintf(`{"timestamp":"2026-12-02T01:00:01Z","type":"event_msg","payload":{"type":"item_completed","thread_id":%q,"turn_id":"t","item":{"type":"UserMessage","content":[{"type":"text","text":%q}]}}}`, id(n), prompt) + "\n"
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
	at := time.Date(2026, 12, 2, 12, 0, 0, 0, time.UTC).Add(-age)
	if err := os.Chtimes(path, at, at); err != nil {
		h.t.Fatal(err)
	}
	return path
}

const (
	day = "sessions/2026/12/02"
	cli = `"cli"`
)

func (h *home) threads(limit int) agent.ThreadList {
	h.t.Helper()
	l, err := h.a.Threads(h.t.Context(), h.ref, h.n, limit)
	if err != nil {
		h.t.Fatal(err)
	}
	return l
}

func TestThreadsOfTheDirectoryAreListedNewestFirst(t *testing.T) {
	h := newHome(t)
	h.rollout(day, 1, h.cwd, cli, "the first\nprompt with sk-abcdefgh12345678", 3*time.Hour)
	h.rollout("sessions/2025/01/02", 2, h.cwd, `"vscode"`, "old folder, newest change", time.Hour)
	h.rollout(day, 3, h.cwd, `{"subagent":"review"}`, "of a helper", time.Minute)
	h.rollout(day, 4, "/another/directory", cli, "elsewhere", time.Minute)
	h.rollout("archived_sessions", 5, h.cwd, cli, "put away", 2*time.Hour)
	index := `{"id":"` + id(1) + `","thread_name":"old name"}` + "\n" + `{"id":"` + id(1) + `","thread_name":"A name, token=abc123"}` + "\n"
	if err := os.WriteFile(filepath.Join(h.dir, sessionIndex), []byte(index), 0o600); err != nil {
		t.Fatal(err)
	}
	l := h.threads(10)
	if len(l.Threads) != 3 || l.Cut {
		t.Fatalf("%d threads, cut %v: %+v", len(l.Threads), l.Cut, l.Threads)
	}
	two, five, one := l.Threads[0], l.Threads[1], l.Threads[2]
	if two.ID != id(2) || five.ID != id(5) || one.ID != id(1) || !five.Archived || two.Archived {
		t.Errorf("order or archive: %+v", l.Threads)
	}
	if one.Preview != "the first prompt with [redacted]" || one.Title != "A name, token=[redacted]" || one.Workspace != h.cwd {
		t.Errorf("%+v", one)
	}
	if l := h.threads(2); len(l.Threads) != 2 || !l.Cut {
		t.Errorf("a page of two: %d, cut %v", len(l.Threads), l.Cut)
	}
}

func TestNewerThreadsOfOtherDirectoriesHideNoneOfOurs(t *testing.T) { // case E08
	h := newHome(t)
	for n := range 3 {
		h.rollout(day, n, h.cwd, cli, "ours", 48*time.Hour)
	}
	for n := 10; n < 1010; n++ {
		h.rollout(day, n, "/another/directory", cli, "theirs", time.Duration(n)*time.Second)
	}
	if l := h.threads(50); len(l.Threads) != 3 {
		t.Errorf("%d of our 3 threads", len(l.Threads))
	}
}

func TestOwnershipIsWhoHoldsTheLockOfThisHome(t *testing.T) {
	h := newHome(t)
	for n := range 5 {
		h.rollout(day, n, h.cwd, cli, "x", time.Hour)
	}
	lock := func(home string, n int) procinfo.File {
		return procinfo.File{Path: filepath.Join(home, "thread-writer-locks", id(n)+".lock")}
	}
	h.open[100] = []procinfo.File{lock(h.dir, 0)}
	h.process(101, "/n/bin/codex", "exec", "go on")
	h.open[101] = []procinfo.File{lock(h.dir, 1), lock("/another/home", 2)}
	h.process(102, "vim")
	h.open[102] = []procinfo.File{lock(h.dir, 3)}
	h.process(103, "codex", "app-server")
	h.open[103] = []procinfo.File{{Path: filepath.Join(h.dir, day, "rollout-2026-12-02T01-00-00-"+id(4)+".jsonl")}}
	want := map[string]agent.Ownership{id(0): agent.OwnedHere, id(1): agent.OwnedElsewhere, id(2): agent.OwnedByNobody, id(3): agent.OwnedByNobody, id(4): agent.OwnedElsewhere}
	for _, th := range h.threads(10).Threads {
		if th.Owner != want[th.ID] {
			t.Errorf("%s: %s, want %s", th.ID, th.Owner, want[th.ID])
		}
	}
	me, err := procinfo.Read(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	me.Args = []string{"codex"} // works in another directory: says nothing of ours
	h.procs = append(h.procs, me)
	h.fail[os.Getpid()] = fault.New(fault.Unavailable, "t", "denied")
	if th, err := h.a.Thread(t.Context(), h.ref, h.n, id(2)); err != nil || th.Owner != agent.OwnedByNobody {
		t.Errorf("%+v %v", th, err)
	}
	h.process(1<<30, "codex") // nobody can tell where it works
	h.fail[1<<30] = fault.New(fault.Unavailable, "t", "denied")
	for n, want := range map[int]agent.Ownership{0: agent.OwnedHere, 1: agent.OwnedElsewhere, 2: agent.OwnedUnknown} {
		if th, err := h.a.Thread(t.Context(), h.ref, h.n, id(n)); err != nil || th.Owner != want {
			t.Errorf("%d: %s %v, want %s", n, th.Owner, err, want)
		}
	}
}

func TestTheTokenOfAThreadChangesWithItsFile(t *testing.T) {
	h := newHome(t)
	path := h.rollout(day, 1, h.cwd, cli, "x", time.Hour)
	get := func() string {
		th, err := h.a.Thread(t.Context(), h.ref, h.n, id(1))
		if err != nil || th.Token == "" {
			t.Fatal(th, err)
		}
		return th.Token
	}
	first := get()
	if first != h.threads(1).Threads[0].Token || first != get() {
		t.Error("the token of an unchanged file differs")
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString("{}\n")
	}
	if err != nil || f.Close() != nil {
		t.Fatal(err)
	}
	if get() == first {
		t.Error("the file grew and its token did not change")
	}
	if _, err := h.a.Thread(t.Context(), h.ref, h.n, id(7)); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
}

func TestThreadSupportNeedsAKnownVersionAndAProvedThread(t *testing.T) {
	h := newHome(t)
	ok := h.n
	for name, change := range map[string]func(*agent.Native){
		"no version":        func(n *agent.Native) { n.Version = "" },
		"old version":       func(n *agent.Native) { n.Version = "0.150.0" },
		"ambiguous":         func(n *agent.Native) { n.Thread = agent.ThreadAmbiguous },
		"unavailable":       func(n *agent.Native) { n.Thread = agent.ThreadUnavailable },
		"server, no title":  func(n *agent.Native) { n.Mode, n.Extra = ModeDaemon, map[string]string{extraBound: "directory"} },
		"remote, no thread": func(n *agent.Native) { n.Mode, n.Thread = ModeRemote, agent.ThreadVerifiedAbsent },
	} {
		n := ok
		change(&n)
		if err := h.a.ThreadSupport(n); !fault.Is(err, agent.CodeThreads) {
			t.Errorf("%s: %v", name, err)
		}
	}
	client := ok
	client.Mode, client.Extra = ModeDaemon, map[string]string{extraBound: "title"}
	absent := ok
	absent.Thread = agent.ThreadVerifiedAbsent
	newer := ok
	newer.Version = "0.180.1"
	for _, n := range []agent.Native{ok, client, absent, newer} {
		if err := h.a.ThreadSupport(n); err != nil {
			t.Error(err)
		}
	}
}

func TestARefusalCountsForItsThreadOnly(t *testing.T) {
	lines := []string{"  >_ OpenAI Codex", "■ No saved chat found matching '" + id(1) + "'.", "› Ask Codex to do anything"}
	a := New(Options{})
	if a.ThreadRefusals(lines, id(1)) != 1 || a.ThreadRefusals(lines, id(2)) != 0 || a.ThreadRefusals(lines[2:], id(1)) != 0 {
		t.Error("a refusal was not counted as it should be")
	}
}

func BenchmarkThreads200(b *testing.B) {
	h := newHome(b)
	for n := range 200 {
		h.rollout(day, n, h.cwd, cli, "x", time.Duration(n)*time.Minute)
	}
	for b.Loop() {
		if l := h.threads(200); len(l.Threads) != 200 {
			b.Fatal(len(l.Threads))
		}
	}
}
