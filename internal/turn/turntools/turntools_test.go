package turntools_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/clock"
	"github.com/agent-knock-knock/akk/internal/discover"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/outbox"
	"github.com/agent-knock-knock/akk/internal/outbox/outboxsql"
	"github.com/agent-knock-knock/akk/internal/procinfo"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/testkit/faketmux"
	"github.com/agent-knock-knock/akk/internal/testkit/tooltest"
	"github.com/agent-knock-knock/akk/internal/tmux"
	"github.com/agent-knock-knock/akk/internal/toolkit"
	"github.com/agent-knock-knock/akk/internal/turn"
	"github.com/agent-knock-knock/akk/internal/turn/dispatch"
	"github.com/agent-knock-knock/akk/internal/turn/turnsql"
	"github.com/agent-knock-knock/akk/internal/turn/turntools"
)

func TestMain(m *testing.M) {
	faketmux.MaybeRecorder()
	// A round looks at a real pane four times; more rounds: go test -args -rapid.checks=500.
	if err := flag.Set("rapid.checks", "30"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// What must be in no result: it is authority, or a place of ours.
const (
	canaryDigest      = "canary-session-digest"
	canaryFingerprint = "canary-fingerprint"
	canaryRevision    = "canary-revision"
	canaryAnchor      = "/canary-anchor"
	canaryStore       = "canary-store"
)

// adapter shows whatever evidence a round draws.
type adapter struct {
	agent.Adapter
	pid    int
	native agent.Native
	screen agent.Screen
	fails  bool
}

func (*adapter) Kind() string                       { return "codex" }
func (a *adapter) Match(p procinfo.Process) bool    { return p.PID == a.pid }
func (a *adapter) Screen(tmux.Capture) agent.Screen { return a.screen }
func (a *adapter) Identify(context.Context, agent.Ref) (agent.Native, error) {
	if a.fails {
		return agent.Native{}, fmt.Errorf("unreadable")
	}
	return a.native, nil
}

// idleMonitors run nothing.
type idleMonitors struct{}

func (idleMonitors) Watch(context.Context, dispatch.Watch) error          { return nil }
func (idleMonitors) Entered(context.Context, ids.TurnID, time.Time) error { return nil }
func (idleMonitors) Answered(context.Context, ids.TurnID, string) error   { return nil }
func (idleMonitors) Forget(ids.TurnID)                                    {}

// world is a Service on a real Store and a real pane, served to a Host.
type world struct {
	t       *testing.T
	db      *store.DB
	service *dispatch.Service
	agent   *adapter
	term    discover.Terminal
	host    *tooltest.Host
	route   ids.RouteID
	calls   int
}

func newWorld(t *testing.T) *world {
	t.Helper()
	server := faketmux.New(t)
	w := &world{t: t, agent: &adapter{pid: server.Recorder(faketmux.RecorderSpec{Bracketed: true}).PID}}
	var err error
	if w.db, err = store.Open(t.Context(), filepath.Join(t.TempDir(), canaryStore), store.Options{Relaxed: true}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.db.Close() })
	scanner := discover.New([]string{server.Socket()}, w.agent)
	scan, err := scanner.Scan(t.Context(), discover.Options{})
	if err != nil || len(scan.Terminals) != 1 {
		t.Fatalf("%+v %v", scan, err)
	}
	w.term = scan.Terminals[0]
	route := outbox.Route{Transport: outbox.TransportCommandJSON, ProfileID: "p", ProfileRevision: canaryRevision, ProfileFingerprint: canaryFingerprint, SessionDigest: canaryDigest}
	w.update(func(tx *store.Tx) (err error) {
		if err = turnsql.PutBridge(tx, turnsql.Bridge{ID: "bridge-a", ProfileID: "p"}); err != nil {
			return err
		}
		w.route, err = outboxsql.PutRoute(tx, route)
		return err
	})
	w.service = dispatch.New(dispatch.Config{DB: w.db, Bridge: "bridge-a", Scanner: scanner, Monitors: idleMonitors{}, Route: route,
		CheckProfile: func() error { return nil }, Enqueued: func() {}, LockDir: filepath.Join(t.TempDir(), "locks"), Clock: clock.System{}})
	registry := toolkit.New()
	turntools.Register(registry, w.service)
	w.host = tooltest.Start(t, registry)
	w.host.Initialize()
	return w
}

func (w *world) update(f func(*store.Tx) error) {
	w.t.Helper()
	if err := w.db.Update(w.t.Context(), f); err != nil {
		w.t.Fatal(err)
	}
}

// call makes a call with the next id and fails when it is refused or leaks.
func (w *world) call(tool string, args map[string]any) json.RawMessage {
	w.t.Helper()
	out := w.try(tool, args)
	if out.IsError {
		w.t.Fatalf("%s %v: %+v", tool, args, out)
	}
	return out.Structured
}

// try makes a call with the next id, which may be refused, and fails when it leaks.
func (w *world) try(tool string, args map[string]any) tooltest.Outcome {
	w.t.Helper()
	w.calls++
	params, err := json.Marshal(map[string]any{"name": "agent_knock_knock_" + tool, "arguments": args})
	if err != nil {
		w.t.Fatal(err)
	}
	w.host.Send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":%s}`, 1000+w.calls, params))
	r := w.host.Reply()
	var out tooltest.Outcome
	if r.Error != nil || json.Unmarshal(r.Result, &out) != nil {
		w.t.Fatalf("%s %v: %s %v", tool, args, r.Result, r.Error)
	}
	for _, canary := range []string{canaryDigest, canaryFingerprint, canaryRevision, canaryAnchor, canaryStore, string(w.route)} {
		if strings.Contains(string(r.Result), canary) {
			w.t.Fatalf("%s shows %s: %s", tool, canary, r.Result)
		}
	}
	return out
}

// nextCall is the idempotency key of the next call.
func (w *world) nextCall() string {
	return fmt.Sprintf(`host-bridge:["%s",%d]`, tooltest.Instance, 1001+w.calls)
}

// TestEveryStateHasAResultThatItsSchemaDescribes plays random stories of a Turn and random
// evidence of its terminal, and shows each by all three tools; the toolkit checks every
// result against the published schema, and nothing that carries authority is in one.
func TestEveryStateHasAResultThatItsSchemaDescribes(t *testing.T) { // spec parts 2.0, 2.9, 2.10
	w := newWorld(t)
	reached := map[string]bool{}
	rapid.Check(t, func(rt *rapid.T) {
		w.agent.draw(rt)
		id := w.story(rt)
		var s struct {
			Turn struct{ Status, Submission string } `json:"turn"`
		}
		if err := json.Unmarshal(w.call("status", map[string]any{"turn_id": id, "trace": true}), &s); err != nil {
			rt.Fatal(err)
		}
		reached[s.Turn.Status], reached[s.Turn.Submission] = true, true
		w.call("status", map[string]any{"terminal_id": w.term.ID})
		w.call("list", map[string]any{"all": rapid.Bool().Draw(rt, "all")})
		w.lifeCalls(rt, id)
		w.update(func(tx *store.Tx) error { // the same call again: send answers from the record
			_, err := tx.Exec("UPDATE turn SET call_key = ? WHERE turn_id = ?", w.nextCall(), id)
			return err
		})
		w.call("send", map[string]any{"request": "SAY:x", "terminal_id": w.term.ID})
		w.update(func(tx *store.Tx) error { // the stage is free again
			for _, q := range []string{"DELETE FROM outbox", "DELETE FROM turn", "DELETE FROM session"} {
				if _, err := tx.Exec(q); err != nil {
					return err
				}
			}
			return nil
		})
	})
	if len(reached) < 8 {
		t.Errorf("the stories reached %v only", reached)
	}
}

func (a *adapter) draw(t *rapid.T) {
	text := rapid.SampledFrom([]string{"", "reason", "\xff\x00 bad bytes", strings.Repeat("long ", 400)})
	a.fails = rapid.IntRange(0, 9).Draw(t, "fails") == 0
	a.native = agent.Native{
		Version: rapid.SampledFrom([]string{"", "1.2.3"}).Draw(t, "version"), Mode: rapid.SampledFrom([]string{"", "embedded"}).Draw(t, "mode"),
		Channel:  rapid.SampledFrom([]turn.Channel{turn.ChannelKeyboard, turn.ChannelCodexSocket}).Draw(t, "channel"),
		Thread:   rapid.SampledFrom([]agent.ThreadState{agent.ThreadResolved, agent.ThreadVerifiedAbsent, agent.ThreadAmbiguous, agent.ThreadUnavailable}).Draw(t, "thread"),
		ThreadID: rapid.SampledFrom([]string{"", "thread-1"}).Draw(t, "thread id"), LogPath: canaryAnchor,
		Activity: rapid.SampledFrom([]agent.Activity{agent.ActivityIdle, agent.ActivityWorking, agent.ActivityWaiting, agent.ActivityUnknown}).Draw(t, "activity"),
		Reason:   text.Draw(t, "native reason"), Extra: map[string]string{"home": canaryAnchor},
	}
	a.screen = agent.Screen{
		State:    rapid.SampledFrom([]agent.ScreenState{agent.ScreenIdle, agent.ScreenWorking, agent.ScreenApproval, agent.ScreenDialog, agent.ScreenUnknown}).Draw(t, "screen"),
		Composer: rapid.SampledFrom([]agent.ComposerState{agent.ComposerEmpty, agent.ComposerDraft, agent.ComposerAbsent, agent.ComposerUnknown}).Draw(t, "composer"),
		Reason:   text.Draw(t, "screen reason"),
	}
}

// story makes a Turn on the pane or on one that is not there, and lets things happen.
func (w *world) story(t *rapid.T) ids.TurnID {
	endpoint, process := w.term.Ref.Endpoint, w.term.Ref.Process
	if rapid.Bool().Draw(t, "elsewhere") {
		endpoint, process = turn.Endpoint{Socket: "/gone", PaneID: "%7", PanePID: 7}, turn.Incarnation{PID: 7, Birth: "1@b"}
	}
	var row turnsql.Row
	w.update(func(tx *store.Tx) (err error) {
		s := turn.NewSession("codex", "", "/w", turn.Binding{TerminalID: w.term.ID, Endpoint: endpoint, Process: process}, tx.Now)
		if err := turnsql.PutSession(tx, s); err != nil {
			return err
		}
		id := ids.NewTurn(tx.Now)
		row, err = turnsql.Insert(tx, turn.Reserve(turn.Turn{ID: id, SessionID: s.ID, CallKey: string(id), MessageID: "msg-1", Route: w.route, Origin: "bridge-a",
			Agent: "codex", Channel: turn.ChannelKeyboard, Terminal: w.term.ID, Endpoint: endpoint, Process: process, Workspace: "/w\xff",
			RequestHash: ids.TextHash("SAY:x"), RequestSummary: "SAY:x", Anchor: turn.Anchor{Log: &turn.LogMark{Path: canaryAnchor}},
			Inactivity: time.Duration(rapid.IntRange(0, 1).Draw(t, "inactivity")) * time.Hour, Hard: 12 * time.Hour}, tx.Now), "bridge-a")
		return err
	})
	for range rapid.IntRange(0, 12).Draw(t, "steps") {
		w.step(t, row.Turn.ID)
	}
	return row.Turn.ID
}

func (w *world) step(t *rapid.T, id ids.TurnID) {
	kinds := []turn.ObservationKind{turn.ObsAccepted, turn.ObsActivity, turn.ObsCompleted, turn.ObsFailed, turn.ObsInterrupted,
		turn.ObsNotAccepted, turn.ObsPrompt, turn.ObsPromptCleared, turn.ObsGone, turn.ObsTrouble}
	decide := func(f func(turn.Turn, time.Time) (turn.Plan, error)) {
		w.update(func(tx *store.Tx) error {
			row, err := turnsql.Get(tx, id)
			if err != nil {
				return err
			}
			if p, err := f(row.Turn, tx.Now); err == nil {
				return turnsql.Save(tx, row, p)
			}
			return nil
		})
	}
	switch rapid.IntRange(0, 9).Draw(t, "step") {
	case 7:
		decide(func(tt turn.Turn, now time.Time) (turn.Plan, error) {
			return turn.RequestCancel(tt, turn.Cancel{Call: w.nextCall(), Means: "key:Escape", Denies: true}, now)
		})
	case 8:
		state := rapid.SampledFrom([]turn.CancelState{turn.CancelSent, turn.CancelNotSent, turn.CancelUncertain}).Draw(t, "cancel")
		decide(func(tt turn.Turn, now time.Time) (turn.Plan, error) {
			return turn.SettleCancel(tt, state, "why", now), nil
		})
	case 9:
		decide(func(tt turn.Turn, now time.Time) (turn.Plan, error) { return turn.Renew(tt, time.Minute, "c", now) })
	case 0:
		decide(turn.Inject)
	case 1:
		decide(turn.Enter)
	case 2:
		if rapid.IntRange(0, 3).Draw(t, "abort") == 0 {
			decide(func(tt turn.Turn, now time.Time) (turn.Plan, error) { return turn.Abort(tt, "no\nbyte", now) })
		}
	case 3:
		if rapid.IntRange(0, 3).Draw(t, "late") == 0 {
			decide(func(tt turn.Turn, now time.Time) (turn.Plan, error) {
				return turn.CheckDeadlines(tt, now.Add(24*time.Hour)), nil
			})
		}
	default:
		o := turn.Observation{Kind: rapid.SampledFrom(kinds).Draw(t, "kind"), Source: "rollout", NativeTurnID: "n", ThreadID: "thread-1", Code: "code", Detail: "detail\nmore", Text: "answer"}
		if o.Kind == turn.ObsPrompt {
			o.Prompt = &turn.Prompt{Kind: rapid.SampledFrom([]turn.PromptKind{turn.PromptApproval, turn.PromptQuestion, turn.PromptDialog}).Draw(t, "prompt"),
				Fingerprint: canaryFingerprint + rapid.SampledFrom([]string{"1", "2"}).Draw(t, "fingerprint"), Title: "May I?", Detail: "token=abcdefghijkl",
				Options: []turn.PromptOption{{Label: "Yes", Key: "y", OneTime: true}, {Label: "No"}}, RequestID: canaryAnchor}
		}
		if err := w.service.Observe(w.t.Context(), id, o); err != nil {
			t.Fatal(err)
		}
	}
}
