package codex

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/agent/codex/appserver"
	"github.com/agent-knock-knock/akk/internal/agent/codex/rollout"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/procinfo"
	"github.com/agent-knock-knock/akk/internal/turn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// following is one running Follow.
type following struct {
	t    *testing.T
	gone chan struct{}
	stop context.CancelFunc
	done chan error

	mu  sync.Mutex
	obs []turn.Observation
}

func follow(t *testing.T, a *Adapter, ref agent.Ref, anc turn.Anchor) *following {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	f := &following{t: t, gone: make(chan struct{}), stop: cancel, done: make(chan error, 1)}
	go func() {
		f.done <- a.Follow(ctx, ref, anc, f.gone, func(o turn.Observation) error {
			f.mu.Lock()
			defer f.mu.Unlock()
			if o.Kind != turn.ObsActivity {
				f.obs = append(f.obs, o)
			}
			return nil
		})
	}()
	t.Cleanup(cancel)
	eventually(t, "armed first", func() bool { return strings.HasPrefix(f.shown(), "armed") })
	return f
}

func (f *following) shown() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return show(f.obs)
}

// until waits until the observations are what want says.
func (f *following) until(want string) {
	f.t.Helper()
	last := ""
	deadline := time.Now().Add(15 * time.Second)
	for time.Now().Before(deadline) {
		if last = f.shown(); last == want {
			return
		}
		select {
		case err := <-f.done:
			f.done <- err
			if last = f.shown(); last != want {
				f.t.Fatalf("Follow ended (%v) with %s\nwant %s", err, last, want)
			}
			return
		case <-time.After(5 * time.Millisecond):
		}
	}
	f.t.Fatalf("got  %s\nwant %s", last, want)
}

// ends waits for the end of Follow.
func (f *following) ends(want string) {
	f.t.Helper()
	select {
	case err := <-f.done:
		if err != nil {
			f.t.Fatal(err)
		}
	case <-time.After(15 * time.Second):
		f.t.Fatalf("Follow did not end: %s", f.shown())
	}
	if got := f.shown(); got != want {
		f.t.Fatalf("got  %s\nwant %s", got, want)
	}
}

func add(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

func rolloutPath(home string) string {
	return filepath.Join(rollout.DayDirs(home, testThread)[0], "rollout-2026-12-01T22-49-46-"+testThread+".jsonl")
}

// resolved is an embedded thread with a rollout that holds old, and its anchor for text.
func resolved(t *testing.T, a *Adapter, old, text string) (path string, anc turn.Anchor) {
	t.Helper()
	home := t.TempDir()
	path = rolloutPath(home)
	add(t, path, old)
	anc, err := a.Anchor(context.Background(), agent.Ref{}, agent.Native{Channel: turn.ChannelKeyboard, Thread: agent.ThreadResolved,
		ThreadID: testThread, LogPath: path, Extra: map[string]string{extraHome: home}}, text, "msg-1")
	if err != nil {
		t.Fatal(err)
	}
	return path, anc
}

func record(lines ...string) string { return strings.Join(lines, "\n") + "\n" }

// Case 47, E01, H8 a: the same prompt before the anchor is nothing; a record in two
// writes counts when it is whole.
func TestFollowTakesThisTurnOnlyAndWholeRecordsOnly(t *testing.T) {
	a := New(Options{})
	path, anc := resolved(t, a, record(started("O"), user("O", "x", "do it"), complete("O", "old")), "do it")
	f := follow(t, a, agent.Ref{}, anc)
	add(t, path, record(started("T"), user("T", "x", "do it")))
	f.until(`armed; accepted`)
	end := complete("T", "new 日本") + "\n"
	add(t, path, end[:60])
	add(t, path, end[60:])
	f.ends(`armed; accepted; completed "new 日本"`)
	again := follow(t, a, agent.Ref{}, anc) // a monitor that starts again sees the same
	again.ends(`armed; accepted; completed "new 日本"`)
}

// Case E05: a thread that was never prompted; its folders and file appear later.
func TestAVirginThreadsRolloutIsFoundWhenItAppears(t *testing.T) {
	a := New(Options{})
	home := t.TempDir()
	anc, err := a.Anchor(context.Background(), agent.Ref{}, agent.Native{Thread: agent.ThreadResolved, ThreadID: testThread, Extra: map[string]string{extraHome: home}}, "do it", "")
	if err != nil || anc.Log != nil {
		t.Fatal(anc, err)
	}
	f := follow(t, a, agent.Ref{}, anc)
	add(t, rolloutPath(home), record(started("T"), user("T", "x", "do it"), complete("T", "hi")))
	f.ends(`armed; accepted; completed "hi"`)
}

// An old version has no thread id before the first prompt: the file that exactly this
// process opens is taken, but not an old one that it resumed.
func TestAnUnknownThreadIsBoundByTheProcessThatWritesIt(t *testing.T) {
	home := t.TempDir()
	var mu sync.Mutex
	var files []procinfo.File
	a := New(Options{OpenFiles: func(context.Context, int) ([]procinfo.File, error) {
		mu.Lock()
		defer mu.Unlock()
		return files, nil
	}})
	anc, err := a.Anchor(context.Background(), agent.Ref{}, agent.Native{Thread: agent.ThreadVerifiedAbsent, Extra: map[string]string{extraHome: home}}, "do it", "")
	if err != nil {
		t.Fatal(err)
	}
	f := follow(t, a, agent.Ref{}, anc)
	put := func(id, at string) {
		day := filepath.Join(home, "sessions", time.Now().Format("2006/01/02"))
		p := filepath.Join(day, "rollout-2026-12-01T22-49-46-"+id+".jsonl")
		meta, _ := json.Marshal(map[string]any{"timestamp": at, "type": "session_meta", "payload": map[string]any{"id": id}})
		mu.Lock()
		files = append(files, procinfo.File{Path: p})
		mu.Unlock()
		add(t, p, record(string(meta), started("T"), event("user_message", "message", "do it"), complete("T", "from "+id[:8])))
	}
	put("01a10000-bf4a-78b1-8502-31e12f25fe95", "2020-01-01T00:00:00Z")
	put("01a20000-bf4a-78b1-8502-31e12f25fe95", time.Now().Add(time.Second).UTC().Format(time.RFC3339Nano))
	f.ends(`armed; accepted; completed "from 01a20000"`)
}

// Case E09, H8 e: an end that was written wins over the death; without one it is gone.
func TestAGoneProcessIsReportedOnlyWhenTheRecordsHaveNoEnd(t *testing.T) {
	a := New(Options{})
	path, anc := resolved(t, a, "", "do it")
	add(t, path, record(started("T"), user("T", "x", "do it")))
	f := follow(t, a, agent.Ref{}, anc)
	add(t, path, complete("T", "hi")) // no line end: not complete
	close(f.gone)
	f.ends(`armed; accepted; gone`)
	add(t, path, "\n")
	f = follow(t, a, agent.Ref{}, anc)
	close(f.gone)
	f.ends(`armed; accepted; completed "hi"`)
}

func TestAReplacedRolloutIsTroubleAndNothingIsReadFromIt(t *testing.T) {
	a := New(Options{})
	path, anc := resolved(t, a, record(started("O")), "do it")
	f := follow(t, a, agent.Ref{}, anc)
	other := path + ".new"
	add(t, other, record(started("O"), started("T"), user("T", "x", "do it"), complete("T", "forged")))
	if err := os.Rename(other, path); err != nil {
		t.Fatal(err)
	}
	f.until(`armed; trouble "rollout_replaced"`)
	f.stop()
	if err := <-f.done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// Case E06: of several possible threads the one that takes the request is bound.
func TestAmongCandidatesTheThreadThatTakesTheRequestIsBound(t *testing.T) {
	a := New(Options{})
	p1, anc := resolved(t, a, record(started("O")), "do it")
	p2 := p1 + "2"
	add(t, p2, record(started("O")))
	m1, m2 := *anc.Log, *anc.Log
	m2.Path, m2.Inode = p2, 0
	anc.Log, anc.ThreadID, anc.Candidates = nil, "", []turn.LogMark{m1, m2}
	f := follow(t, a, agent.Ref{}, anc)
	add(t, p1, record(aborted("O"), started("S"), user("S", "x", "other work"), complete("S", "no")))
	add(t, p2, record(aborted("O"), started("T"), user("T", "x", "do it"), complete("T", "yes")))
	f.ends(`armed; accepted; completed "yes"`)
}

func TestAnErrorOfEmitEndsFollow(t *testing.T) {
	a := New(Options{})
	_, anc := resolved(t, a, "", "do it")
	boom := fault.New(fault.Internal, "test", "boom")
	err := a.Follow(context.Background(), agent.Ref{}, anc, nil, func(turn.Observation) error { return boom })
	if !errors.Is(err, boom) {
		t.Error(err)
	}
}

// ── with a server ─────────────────────────────────────────────────────────────────────

func served(t *testing.T, status string) (*scripted, *Adapter, string, turn.Anchor) {
	t.Helper()
	home := t.TempDir()
	s := newScripted(t, appserver.Thread{ID: testThread, Cwd: "/tmp", Path: rolloutPath(home), Status: appserver.Status{Type: status}})
	a := New(Options{})
	anc, err := a.Anchor(context.Background(), agent.Ref{}, agent.Native{Channel: turn.ChannelCodexSocket, Thread: agent.ThreadResolved, ThreadID: testThread,
		Extra: map[string]string{extraHome: home, extraSocket: s.socket, extraRollout: rolloutPath(home)}}, "do it", "msg-1")
	if err != nil {
		t.Fatal(err)
	}
	return s, a, rolloutPath(home), anc
}

func userItem(turnID string) map[string]any {
	return map[string]any{"threadId": testThread, "turnId": turnID, "item": map[string]any{"type": "userMessage", "clientId": "msg-1",
		"content": []any{map[string]any{"type": "text", "text": "do it"}}}}
}

func turnEnd(turnID, status string, items ...any) map[string]any {
	return map[string]any{"threadId": testThread, "turn": map[string]any{"id": turnID, "status": status, "items": items}}
}

func TestTheServerProvesATurnAndTheFileDoesNotRepeatIt(t *testing.T) {
	s, a, path, anc := served(t, "idle")
	f := follow(t, a, agent.Ref{}, anc)
	eventually(t, "subscribed", func() bool { return s.subscribers() == 1 })
	s.setStatus("active")
	s.tell(false, "item/completed", userItem("T"))
	f.until(`armed; accepted`)
	add(t, path, record(started("T"), user("T", "msg-1", "do it")))
	s.ask("0", "item/commandExecution/requestApproval", map[string]any{"threadId": testThread, "turnId": "T", "itemId": "c", "command": "date", "availableDecisions": []any{"accept", map[string]any{"acceptWithExecpolicyAmendment": 1}, "cancel"}})
	s.ask("1", "item/commandExecution/requestApproval", map[string]any{"threadId": testThread, "turnId": "OTHER", "itemId": "d"})
	f.until(`armed; accepted; prompt`)
	f.mu.Lock()
	p := f.obs[2].Prompt
	f.mu.Unlock()
	if !p.Approvable || p.RequestID != "0" || len(p.Options) != 3 || p.Options[0].Key != "accept" || !p.Options[0].OneTime || p.Options[1].Key != "" || !p.Options[2].Reject {
		t.Errorf("%+v", p)
	}
	s.tell(false, "serverRequest/resolved", map[string]any{"threadId": testThread, "requestId": 0})
	f.until(`armed; accepted; prompt; prompt_cleared`)
	s.tell(false, "turn/completed", map[string]any{"threadId": "01a2ffff-0000-7000-8000-000000000000", "turn": map[string]any{"id": "X", "status": "completed"}})
	s.tell(false, "turn/completed", turnEnd("T", "completed", map[string]any{"type": "agentMessage", "text": "hi"}))
	f.ends(`armed; accepted; prompt; prompt_cleared; completed "hi"`)
}

// What a real 0.171 daemon sent, in its own order.
func TestRecordedServerMessagesProveATurn(t *testing.T) {
	for _, tc := range []struct{ file, thread, client, want string }{
		{"server-approval.jsonl", "01a2336b-6565-7ec3-b7dd-1feb03bcaa8f", "c234014f-3f29-4234-8b5c-1c6a76cd4698", `accepted; prompt; prompt_cleared; completed "external approved"`},
		{"server-failure.jsonl", "01a23370-fd8a-7830-b620-934beba058c4", "req-0002", `accepted; failed "internal_server_error"`},
	} {
		anc := turn.Anchor{Channel: turn.ChannelCodexSocket, ThreadID: tc.thread, ClientID: tc.client}
		f := &follower{anc: anc, t: newTracker(anc)}
		for _, l := range fixture(t, tc.file) {
			var m appserver.Message
			if err := json.Unmarshal([]byte(l), &m); err != nil {
				t.Fatal(err)
			}
			if f.t.end == nil {
				f.notice(m)
			}
		}
		if f.t.end == nil {
			t.Fatalf("%s: no end after %s", tc.file, show(f.t.out))
		}
		for _, o := range f.t.out {
			if o.Prompt != nil && (!o.Prompt.Approvable || o.Prompt.RequestID != "4") {
				t.Errorf("%+v", o.Prompt)
			}
		}
		expect(t, append(f.t.out, *f.t.end), tc.want)
	}
}

func TestAnEndWithoutTextWaitsForTheFile(t *testing.T) {
	s, a, path, anc := served(t, "idle")
	f := follow(t, a, agent.Ref{}, anc)
	eventually(t, "subscribed", func() bool { return s.subscribers() == 1 })
	s.tell(false, "item/started", userItem("T"))
	f.until(`armed; accepted`)
	s.tell(false, "turn/completed", turnEnd("T", "completed"))
	add(t, path, record(started("T"), user("T", "msg-1", "do it"), complete("T", "from the file")))
	f.ends(`armed; accepted; completed "from the file"`)
}

func TestFailureAndInterruptComeFromTheServer(t *testing.T) {
	for status, want := range map[string]string{"failed": `armed; accepted; failed "internal_server_error"`, "interrupted": `armed; accepted; interrupted "interrupted"`} {
		s, a, _, anc := served(t, "idle")
		f := follow(t, a, agent.Ref{}, anc)
		eventually(t, "subscribed", func() bool { return s.subscribers() == 1 })
		s.tell(false, "item/started", userItem("T"))
		end := turnEnd("T", status)
		end["turn"].(map[string]any)["error"] = map[string]any{"message": "busy", "codexErrorInfo": "internalServerError"}
		s.tell(false, "turn/completed", end)
		f.ends(want)
	}
}

// A virgin thread cannot be subscribed to; after its first prompt it can.
func TestAVirginThreadIsSubscribedAfterItsFirstPrompt(t *testing.T) {
	s, a, path, anc := served(t, "idle")
	s.mu.Lock()
	s.virgin = true
	s.mu.Unlock()
	f := follow(t, a, agent.Ref{}, anc)
	eventually(t, "a first try", func() bool { return s.seen("thread/resume") == 1 })
	s.mu.Lock()
	s.virgin = false
	s.mu.Unlock()
	// The request and even the end may be replayed before the file shows the acceptance.
	s.ask("0", "item/commandExecution/requestApproval", map[string]any{"threadId": testThread, "turnId": "T", "itemId": "c", "command": "date"})
	eventually(t, "subscribed", func() bool { s.setStatus("active"); return s.subscribers() == 1 })
	s.tell(false, "turn/completed", turnEnd("T", "interrupted"))
	add(t, path, record(started("T"), user("T", "msg-1", "do it")))
	f.ends(`armed; accepted; prompt; interrupted "interrupted"`)
}

// The pane dies and the turn goes on in the server (agents-live 0.4).
func TestATurnOnAServerOutlivesThePane(t *testing.T) {
	s, a, path, anc := served(t, "idle")
	f := follow(t, a, agent.Ref{}, anc)
	eventually(t, "subscribed", func() bool { return s.subscribers() == 1 })
	s.setStatus("active")
	s.tell(false, "item/started", userItem("T"))
	f.until(`armed; accepted`)
	close(f.gone)
	add(t, path, record(started("T"), user("T", "msg-1", "do it"), complete("T", "survived")))
	f.ends(`armed; accepted; completed "survived"`)
}

func TestALostServerIsTroubleAndTheFileIsFollowedOn(t *testing.T) {
	s, a, path, anc := served(t, "idle")
	f := follow(t, a, agent.Ref{}, anc)
	eventually(t, "subscribed", func() bool { return s.subscribers() == 1 })
	s.setStatus("active")
	s.tell(false, "item/started", userItem("T"))
	f.until(`armed; accepted`)
	s.hangUp()
	f.until(`armed; accepted; trouble "server_lost"`)
	s.setStatus("idle") // it comes back and knows nothing of the turn
	f.until(`armed; accepted; trouble "server_lost"; trouble "turn_lost"`)
	add(t, path, record(started("T"), user("T", "msg-1", "do it"), aborted("T")))
	f.ends(`armed; accepted; trouble "server_lost"; trouble "turn_lost"; interrupted "interrupted"`)
}
