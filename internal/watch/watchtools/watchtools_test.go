package watchtools_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/clock"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/outbox"
	"github.com/agent-knock-knock/akk/internal/outbox/outboxsql"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/testkit/tooltest"
	"github.com/agent-knock-knock/akk/internal/toolkit"
	"github.com/agent-knock-knock/akk/internal/turn"
	"github.com/agent-knock-knock/akk/internal/turn/turnsql"
	"github.com/agent-knock-knock/akk/internal/watch"
	"github.com/agent-knock-knock/akk/internal/watch/watcher"
	"github.com/agent-knock-knock/akk/internal/watch/watchsql"
	"github.com/agent-knock-knock/akk/internal/watch/watchtools"
)

// What must be in no result: it is authority, or a place of ours.
const canary = "canary-authority"

// Each state of a Watch has a result that the schema describes and that holds no authority.
func TestEveryStateOfAWatchHasAResultThatItsSchemaDescribes(t *testing.T) { // spec cases 54, 61
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), canary), store.Options{Relaxed: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	route := outbox.Route{Transport: outbox.TransportCommandJSON, ProfileID: "p", ProfileRevision: canary, ProfileFingerprint: canary, SessionDigest: canary}
	service := watcher.New(watcher.Config{DB: db, Bridge: "bridge-a", Monitors: noMonitors{}, Route: route, Enqueued: func() {}, Clock: clock.System{}})
	registry := toolkit.New()
	registry.CheckOutput()
	watchtools.RegisterWatch(registry, service)
	watchtools.RegisterUnwatch(registry, service)
	if err := registry.Verify(); err != nil {
		t.Fatal(err)
	}
	host := tooltest.Start(t, registry)
	host.Initialize()

	prompt := turn.Observation{Kind: turn.ObsPrompt, Prompt: &turn.Prompt{Kind: turn.PromptApproval, Fingerprint: canary, Title: "May I?"}}
	for i, story := range [][]turn.Observation{
		{}, {prompt}, {{Kind: turn.ObsTrouble, Code: "screen_unreadable", Detail: "d"}}, {{Kind: turn.ObsAccepted, ThreadID: "thread"}},
		{{Kind: turn.ObsCompleted, Text: "token=abcdefghijklmnop done", Log: &turn.LogMark{Path: "/" + canary}}}, {prompt, {Kind: turn.ObsFailed, Code: "api_error", Detail: "no"}},
		{{Kind: turn.ObsGone}}, {{Kind: turn.ObsTrouble, Code: "rollout_replaced"}},
	} {
		w := watch.Watch{ID: ids.NewWatch(), Origin: "bridge-a", Mode: []watch.Mode{watch.ModeTask, watch.ModeActivity}[i%2], Agent: "codex",
			Terminal: "terminal:v2:tmux:codex:0:0.0:1", Workspace: "/w\xff", Anchor: turn.Anchor{Log: &turn.LogMark{Path: "/" + canary}}}
		w.CallKey, w.TaskKey = string(w.ID), string(w.ID)
		if err := db.Update(t.Context(), func(tx *store.Tx) (err error) {
			if i == 0 {
				if err := turnsql.PutBridge(tx, turnsql.Bridge{ID: "bridge-a", ProfileID: "p"}); err != nil {
					return err
				}
			}
			if w.Route, err = outboxsql.PutRoute(tx, route); err != nil {
				return err
			}
			w.DeadlineAt = tx.Now.Add(time.Hour)
			_, err = watchsql.Insert(tx, watch.Create(w, tx.Now), "bridge-a")
			return err
		}); err != nil {
			t.Fatal(err)
		}
		for _, o := range story {
			if err := service.Observe(t.Context(), w.ID, o); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 { // the second call changes nothing
			host.Send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"agent_knock_knock_unwatch","arguments":{"watch_id":%q}}}`, 100+i, w.ID))
			r := host.Reply()
			var out tooltest.Outcome
			if r.Error != nil || json.Unmarshal(r.Result, &out) != nil || out.IsError {
				t.Fatalf("story %d: %+v %s", i, r.Error, r.Result)
			}
			if s := string(r.Result); strings.Contains(s, canary) || strings.Contains(s, "abcdefghijklmnop") {
				t.Errorf("story %d leaks: %s", i, s)
			}
		}
	}
	for name, args := range map[string]string{
		"watch":   `{"terminal_id":"terminal:v2:tmux:codex:0:0.0:1","binding_token":"x"}`,
		"unwatch": `{"watch_id":"turn-1"}`,
	} {
		host.Send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"method":"tools/call","params":{"name":"agent_knock_knock_%s","arguments":%s}}`, name, name, args))
		if r := host.Reply(); r.Error == nil || r.Error.Code != -32602 {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// noMonitors run nothing.
type noMonitors struct{}

func (noMonitors) Watch(context.Context, watch.Watch) error { return nil }
func (noMonitors) Forget(ids.WatchID)                       {}
