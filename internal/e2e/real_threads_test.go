//go:build e2e

package e2e

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/agent/claude"
	"github.com/agent-knock-knock/akk/internal/agent/codex"
	"github.com/agent-knock-knock/akk/internal/clock"
	"github.com/agent-knock-knock/akk/internal/discover"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/keyboard"
	"github.com/agent-knock-knock/akk/internal/native"
	"github.com/agent-knock-knock/akk/internal/native/threads"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/testkit/fakemodel"
	"github.com/agent-knock-knock/akk/internal/testkit/faketmux"
	"github.com/agent-knock-knock/akk/internal/testkit/realagent"
	"github.com/agent-knock-knock/akk/internal/tmux"
	"github.com/agent-knock-knock/akk/internal/turn"
	"github.com/agent-knock-knock/akk/internal/turn/turnsql"
)

// talk is one real agent and the use cases of threads on it, in this process.
type talk struct {
	*threads.Service
	t     *testing.T
	tmux  *faketmux.Server
	model *fakemodel.Server
	agent *realagent.Agent
	scan  *discover.Scanner
	db    *store.DB
	calls int
}

func newTalk(t *testing.T, mode realagent.Mode, more *realagent.Options) *talk {
	t.Helper()
	realagent.Need(t)
	k := &talk{t: t, tmux: faketmux.New(t), model: fakemodel.Start(t)}
	k.agent = realagent.Start(t, k.tmux.Socket(), mode, k.model.URL(), more)
	k.scan = discover.New([]string{k.tmux.Socket()}, codex.New(codex.Options{}), claude.New(claude.Options{}))
	var err error
	if k.db, err = store.Open(t.Context(), filepath.Join(t.TempDir(), "store"), store.Options{Relaxed: true}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.db.Close() })
	if err := k.db.Update(t.Context(), func(tx *store.Tx) error {
		return turnsql.PutBridge(tx, turnsql.Bridge{ID: "bridge-a", ProfileID: "p"})
	}); err != nil {
		t.Fatal(err)
	}
	k.Service = threads.New(threads.Config{DB: k.db, Bridge: "bridge-a", Scanner: k.scan, CheckProfile: func() error { return nil }, Clock: clock.System{},
		Desk: keyboard.Desk{Finder: k.scan, LockDir: filepath.Join(t.TempDir(), "locks"), Clock: clock.System{}}})
	return k
}

// idle waits until the agent's pane is idle with an empty composer and knows its thread.
func (k *talk) idle() discover.Terminal {
	k.t.Helper()
	var last discover.Terminal
	for end := time.Now().Add(patience); ; <-time.After(100 * time.Millisecond) {
		scan, err := k.scan.Scan(k.t.Context(), discover.Options{Screens: true})
		if err != nil {
			k.t.Fatal(err)
		}
		for _, t := range scan.Terminals {
			if last = t; t.Pane.ID != k.agent.PaneID {
				continue
			}
			if state, _ := discover.Combine(t.Native, t.Screen); state == discover.Idle && t.Screen.Composer == agent.ComposerEmpty && t.Native.Thread == agent.ThreadResolved {
				return t
			}
		}
		if time.Now().After(end) {
			k.t.Fatalf("waited in vain for an idle agent; last %+v %+v\n%s", last.Native, last.Screen, strings.Join(last.Lines, "\n"))
		}
	}
}

// say is what a person types; it returns when the agent has answered.
func (k *talk) say(text string) {
	k.t.Helper()
	adapter := k.idle().Adapter
	p := faketmux.Pane{Server: k.tmux, ID: k.agent.PaneID, PID: k.agent.PanePID}
	if err := k.tmux.Client().Paste(k.t.Context(), p.Target(), []byte("SAY:"+text)); err != nil {
		k.t.Fatal(err)
	}
	p.WaitText("SAY:" + text)
	for end := time.Now().Add(patience); ; { // an Enter right behind a paste may be swallowed
		k.tmux.Tmux("send-keys", "-t", k.agent.PaneID, "Enter")
		<-time.After(2 * time.Second)
		c, err := k.tmux.Client().Capture(k.t.Context(), p.ID, tmux.CaptureOptions{})
		if err != nil || time.Now().After(end) {
			k.t.Fatal("the agent takes no prompt", err)
		}
		if adapter.Screen(c).Composer != agent.ComposerDraft {
			break
		}
	}
	p.WaitScreen(func(c tmux.Capture) bool {
		for _, l := range c.Lines {
			if strings.HasSuffix(strings.TrimSpace(l), text) && !strings.Contains(l, "SAY:") {
				return true
			}
		}
		return false
	})
	k.idle()
}

func (k *talk) in(thread string) threads.ChangeInput {
	k.calls++
	return threads.ChangeInput{CallID: "call-" + string(rune('a'+k.calls)), TerminalID: k.idle().ID, ThreadID: thread}
}

// committed fails unless the change is committed, and waits for the agent's rest.
func (k *talk) committed(r threads.ChangeResult, err error) native.Transition {
	k.t.Helper()
	if err != nil || r.Transition.Status != native.Committed {
		k.t.Fatalf("%+v %v\n%s", r, err, k.tmux.Tmux("capture-pane", "-p", "-t", k.agent.PaneID))
	}
	if now := k.idle().Native.ThreadID; now != r.Transition.ThreadID {
		k.t.Errorf("the pane shows %s, committed %s", now, r.Transition.ThreadID)
	}
	return r.Transition
}

func (k *talk) list() map[string]threads.ThreadRow {
	k.t.Helper()
	l, err := k.ListResumable(k.t.Context(), k.idle().ID, 0)
	if err != nil {
		k.t.Fatal(err)
	}
	out := map[string]threads.ThreadRow{}
	for _, r := range l.Rows {
		out[r.Thread.ID] = r
	}
	return out
}

func (k *talk) session(id ids.SessionID) (s turn.Session) {
	k.t.Helper()
	if err := k.db.View(k.t.Context(), func(tx *store.Tx) (err error) { s, err = turnsql.GetSession(tx, id); return err }); err != nil {
		k.t.Fatal(err)
	}
	return s
}

// TestRealThreadsBeginAndResume: spec 2.4, 2.6, 2.8 and case 59 on the agents themselves.
func TestRealThreadsBeginAndResume(t *testing.T) {
	for _, mode := range []realagent.Mode{realagent.CodexEmbedded, realagent.CodexDaemon, realagent.CodexRemote, realagent.ClaudePlain} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			k := newTalk(t, mode, nil)
			k.say("alpha")
			one := k.idle().Native.ThreadID
			began := k.committed(k.NewThread(t.Context(), k.in("")))
			two := began.ThreadID
			if began.FromThread != one || two == one || began.Generation != 1 || began.FromSession != "" {
				t.Errorf("%+v", began)
			}
			k.say("beta")
			rows := k.list()
			if r := rows[one]; !r.Resumable() || r.Thread.Preview != "SAY:alpha" {
				t.Errorf("the first thread: %+v", r)
			}
			if r := rows[two]; r.Unavailable != threads.ReasonActive || r.Managed != began.SessionID {
				t.Errorf("the second thread: %+v", r)
			}
			resumed := k.committed(k.ResumeThread(t.Context(), k.in(one)))
			if resumed.ThreadID != one || resumed.Generation != 1 || resumed.FromSession != began.SessionID {
				t.Errorf("%+v", resumed)
			}
			if s := k.session(began.SessionID); s.Status != turn.SessionDetached {
				t.Errorf("the old Session is %s", s.Status)
			}
			// Without a listing of what is shown now nothing is typed.
			if _, err := k.ResumeThread(t.Context(), k.in(two)); !fault.Is(err, threads.CodeNotListed) {
				t.Errorf("resume without a listing: %v", err)
			}
			k.list()
			again := k.committed(k.ResumeThread(t.Context(), k.in(two)))
			if again.SessionID != began.SessionID || again.Generation != 2 {
				t.Errorf("the thread's own Session was not bound again: %+v", again)
			}
			if r, err := k.ResumeThread(t.Context(), k.in(two)); err != nil || !r.AlreadyActive || r.SessionID != began.SessionID {
				t.Errorf("already there: %+v %v", r, err)
			}
			for _, q := range k.model.Requests() {
				if q.Kind == "main" && (strings.Contains(q.User, "/clear") || strings.Contains(q.User, "/resume")) {
					t.Errorf("a command reached the model as a prompt: %q", q.User)
				}
			}
		})
	}
}

// TestRealThreadOpenElsewhereIsRefused: two panes of one home; what one shows, the other
// may not resume, and nothing is typed.
func TestRealThreadOpenElsewhereIsRefused(t *testing.T) {
	for _, mode := range []realagent.Mode{realagent.CodexEmbedded, realagent.CodexDaemon, realagent.ClaudePlain} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			k := newTalk(t, mode, nil)
			k.say("alpha")
			one := k.idle().Native.ThreadID
			other := realagent.Start(t, k.tmux.Socket(), mode, k.model.URL(), &realagent.Options{Session: "other", Beside: k.agent, CaseID: k.agent.CaseID})
			first := k.agent
			k.agent = other
			k.say("beta")
			if r := k.list()[one]; r.Unavailable != threads.ReasonElsewhere {
				t.Errorf("%+v", r)
			}
			before := k.tmux.Tmux("capture-pane", "-p", "-t", other.PaneID)
			if _, err := k.ResumeThread(t.Context(), k.in(one)); !fault.Is(err, threads.CodeUnresumable) {
				t.Errorf("%v", err)
			}
			if after := k.tmux.Tmux("capture-pane", "-p", "-t", other.PaneID); after != before {
				t.Errorf("the refused resume changed the screen:\n%s", after)
			}
			k.agent = first
		})
	}
}
