package hosttools_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/agent-knock-knock/akk/internal/agent/claude"
	"github.com/agent-knock-knock/akk/internal/agent/codex"
	"github.com/agent-knock-knock/akk/internal/catalogue/hosttools"
	"github.com/agent-knock-knock/akk/internal/clock"
	"github.com/agent-knock-knock/akk/internal/discover"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/keyboard"
	"github.com/agent-knock-knock/akk/internal/native/panels"
	"github.com/agent-knock-knock/akk/internal/native/threads"
	"github.com/agent-knock-knock/akk/internal/outbox"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/toolkit"
	"github.com/agent-knock-knock/akk/internal/turn/dispatch"
	"github.com/agent-knock-knock/akk/internal/turn/turnsql"
	"github.com/agent-knock-knock/akk/internal/watch"
	"github.com/agent-knock-knock/akk/internal/watch/watcher"
)

// noMonitors are the monitors of a Bridge that sees no terminal: none is ever started.
type noMonitors struct{ *testing.F }

func (m noMonitors) fail() error { return fault.New(fault.Internal, "test", "a monitor was wanted") }

func (m noMonitors) Watch(context.Context, dispatch.Watch) error          { return m.fail() }
func (m noMonitors) Entered(context.Context, ids.TurnID, time.Time) error { return m.fail() }
func (m noMonitors) Answered(context.Context, ids.TurnID, string) error   { return m.fail() }
func (m noMonitors) Forget(ids.TurnID)                                    {}

type noWatches struct{ noMonitors }

func (m noWatches) Watch(context.Context, watch.Watch) error { return m.fail() }
func (m noWatches) Forget(ids.WatchID)                       {}

// real is the whole table over real use cases, on a machine without a terminal.
func real(f *testing.F) *toolkit.Registry {
	f.Helper()
	db, err := store.Open(f.Context(), f.TempDir(), store.Options{Relaxed: true})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { db.Close() })
	id, log := ids.NewBridge(), slog.New(slog.DiscardHandler)
	if err := db.Update(f.Context(), func(tx *store.Tx) error { return turnsql.PutBridge(tx, turnsql.Bridge{ID: id}) }); err != nil {
		f.Fatal(err)
	}
	scanner := discover.New([]string{filepath.Join(f.TempDir(), "no-server")}, codex.New(codex.Options{}), claude.New(claude.Options{}))
	desk := keyboard.Desk{Finder: scanner, LockDir: f.TempDir(), Clock: clock.System{}}
	route := outbox.Route{Transport: outbox.TransportCommandJSON, ProfileID: "p", ProfileRevision: "1", ProfileFingerprint: "f", SessionDigest: "d"}
	fine, quiet := func() error { return nil }, func() {}
	var s hosttools.Services
	s.Watches = watcher.New(watcher.Config{DB: db, Bridge: id, Scanner: scanner, Monitors: noWatches{}, Route: route, CheckProfile: fine, Enqueued: quiet, Clock: clock.System{}, Log: log})
	s.Threads = threads.New(threads.Config{DB: db, Bridge: id, Scanner: scanner, Desk: desk, CheckProfile: fine, Clock: clock.System{}, Log: log})
	s.Turns = dispatch.New(dispatch.Config{DB: db, Bridge: id, Scanner: scanner, Watches: s.Watches, Transitions: s.Threads, Monitors: noMonitors{}, Route: route,
		CheckProfile: fine, Enqueued: quiet, LockDir: f.TempDir(), Clock: clock.System{}, Log: log})
	s.Panels = panels.New(panels.Config{DB: db, Desk: desk, Sender: s.Turns, Clock: clock.System{}, Extended: true, Log: log})
	r := toolkit.New()
	if err := hosttools.Register(r, s, true); err != nil {
		f.Fatal(err)
	}
	return r
}

// FuzzToolInput gives any bytes to any tool as its arguments. What is let through fits the
// published schema and holds no key twice; nothing panics; every refusal is one short line;
// and on a machine without a terminal no call can have had an effect.
func FuzzToolInput(f *testing.F) {
	r := real(f)
	tools := r.Tools()
	schemas := make([]*jsonschema.Resolved, len(tools))
	for i, tool := range tools {
		var s jsonschema.Schema
		if err := json.Unmarshal(tool.Input, &s); err != nil {
			f.Fatal(err)
		}
		var err error
		if schemas[i], err = s.Resolve(nil); err != nil {
			f.Fatal(err)
		}
		for _, seed := range []string{`{}`, ``, `null`, `[]`, `{"unknown":1}`, `{"terminal_id":"t","terminal_id":"u"}`, example(s)} {
			f.Add(uint8(i), []byte(seed))
		}
	}
	session := r.Open(ids.NewBridge(), slog.New(slog.DiscardHandler))
	calls := 0
	f.Fuzz(func(t *testing.T, n uint8, args []byte) {
		i := int(n) % len(tools)
		calls++
		ticket := session.Arrive(toolkit.Arrival{ID: json.RawMessage(fmt.Sprint(calls)), Tool: tools[i].Name})
		res, err := ticket.Run(t.Context(), args)
		if err != nil {
			if text := err.Error(); !fault.Is(err, toolkit.BadCall) || len(text) > 4096 || strings.ContainsAny(text, "\n\r\x00\x1b") || !utf8.ValidString(text) {
				t.Errorf("%s refused %q with %q", tools[i].Name, args, text)
			}
			return
		}
		if len(bytes.TrimSpace(args)) > 0 {
			var v any
			if err := json.Unmarshal(args, &v); err != nil {
				t.Errorf("%s took %q, which is no JSON", tools[i].Name, args)
			} else if err := schemas[i].Validate(v); err != nil && v != nil {
				t.Errorf("%s took %q against its schema: %v", tools[i].Name, args, err)
			}
		}
		if strings.Contains(string(res.Structured), "unexpectedly") || strings.Contains(res.Text, "unexpectedly") {
			t.Errorf("%s panicked on %q: %s", tools[i].Name, args, res.Text)
		}
		if !res.IsError && !strings.HasSuffix(tools[i].Name, "_list") {
			t.Errorf("%s did something with %q where there is no terminal: %s", tools[i].Name, args, res.Text)
		}
	})
}

// example is arguments that fit most of a schema.
func example(s jsonschema.Schema) string {
	out := map[string]any{}
	for name, p := range s.Properties {
		switch {
		case len(p.Enum) > 0:
			out[name] = p.Enum[0]
		case p.Type == "integer" || p.Type == "number":
			out[name] = 1
		case p.Type == "boolean":
			out[name] = true
		case p.Type == "array":
			out[name] = []string{"x"}
		case strings.HasPrefix(name, "turn"):
			out[name] = string(ids.NewTurn(time.Unix(1, 0)))
		default:
			out[name] = "x"
		}
	}
	b, err := json.Marshal(out)
	if err != nil {
		return "{}"
	}
	return string(b)
}
