package ledgerserver_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/clock"
	"github.com/agent-knock-knock/akk/internal/ledger/coord"
	"github.com/agent-knock-knock/akk/internal/ledger/ledgerserver"
	"github.com/agent-knock-knock/akk/internal/ledger/ledgersql"
	"github.com/agent-knock-knock/akk/internal/store"
)

// hands is a clock that moves when it is told to.
type hands struct {
	clock.System
	mu  sync.Mutex
	now time.Time
}

func (h *hands) Now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

func (h *hands) pass(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = h.now.Add(d)
}

// client calls tools of a server of its own, over JSON-RPC messages.
type client struct {
	t      *testing.T
	server *ledgerserver.Server
	clock  *hands
	ids    int
}

func newClient(t *testing.T) *client {
	t.Helper()
	db, err := store.OpenMemory(t.Context(), store.Options{Sets: []store.Set{ledgersql.Tables()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	h := &hands{now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	return &client{t: t, server: ledgerserver.New(coord.New(db, coord.WithClock(h)), "1.0.0"), clock: h}
}

// answer is the reply to a tool call.
type answer struct {
	t       *testing.T
	what    string
	text    string
	value   map[string]any
	isError bool
	rpc     int
}

type args = map[string]any

func (c *client) message(method string, params any) map[string]any {
	c.t.Helper()
	c.ids++
	raw, err := json.Marshal(args{"jsonrpc": "2.0", "id": c.ids, "method": method, "params": params})
	if err != nil {
		c.t.Fatal(err)
	}
	reply, ok := c.server.HandleMessage(c.t.Context(), raw)
	if !ok {
		c.t.Fatalf("%s has no reply", method)
	}
	var out map[string]any
	if err := json.Unmarshal(reply, &out); err != nil {
		c.t.Fatal(err)
	}
	return out
}

// call calls a tool; every answer must keep the shape of the contract.
func (c *client) call(tool string, a any) answer {
	c.t.Helper()
	out := c.message("tools/call", args{"name": tool, "arguments": a})
	got := answer{t: c.t, what: fmt.Sprintf("%s %v", tool, a)}
	if e, ok := out["error"].(map[string]any); ok {
		got.rpc = int(e["code"].(float64))
		return got
	}
	r := out["result"].(map[string]any)
	got.isError = r["isError"] == true
	got.text = r["content"].([]any)[0].(map[string]any)["text"].(string)
	value, ok := r["structuredContent"].(map[string]any)
	if !ok || got.text == "" {
		c.t.Fatalf("%s: structuredContent is no object or the text is empty: %v", got.what, r)
	}
	got.value = value
	if items, there := value["items"]; there {
		if _, isList := items.([]any); !isList {
			c.t.Fatalf("%s: items is %v", got.what, items)
		}
	}
	if got.isError {
		e, ok := value["error"].(map[string]any)
		if !ok || e["code"] == "" || e["message"] != got.text {
			c.t.Fatalf("%s: the envelope is %v, the text %q", got.what, value["error"], got.text)
		}
	}
	return got
}

// ok calls a tool that must succeed, fails one that must be refused with a code.
func (c *client) ok(tool string, a any) answer {
	c.t.Helper()
	got := c.call(tool, a)
	if got.isError || got.rpc != 0 {
		c.t.Fatalf("%s failed: %s %d", got.what, got.text, got.rpc)
	}
	return got
}

func (c *client) fails(code, tool string, a any) answer {
	c.t.Helper()
	got := c.call(tool, a)
	if !got.isError || got.at("error.code") != code {
		c.t.Fatalf("%s: got %v %q, want %s", got.what, got.value["error"], got.text, code)
	}
	return got
}

// at reads a member by its path, such as claim.id or items.0.id; nil when there is none.
func (a answer) at(path string) any {
	var cur any = a.value
	for part := range strings.SplitSeq(path, ".") {
		switch v := cur.(type) {
		case map[string]any:
			cur = v[part]
		case []any:
			var i int
			if _, err := fmt.Sscan(part, &i); err != nil || i >= len(v) {
				return nil
			}
			cur = v[i]
		default:
			return nil
		}
	}
	return cur
}

func (a answer) id() string { return a.str("id") }

func (a answer) str(path string) string {
	a.t.Helper()
	s, ok := a.at(path).(string)
	if !ok {
		a.t.Fatalf("%s: %s is %v", a.what, path, a.at(path))
	}
	return s
}

// time reads an instant: as text, a whole second would sort after its fractions.
func (a answer) time(path string) time.Time {
	a.t.Helper()
	got, err := time.Parse(time.RFC3339Nano, a.str(path))
	if err != nil {
		a.t.Fatal(err)
	}
	return got
}

func (a answer) n(path string) int {
	a.t.Helper()
	switch v := a.at(path).(type) {
	case float64:
		return int(v)
	case []any:
		return len(v)
	case nil:
		return 0
	default:
		a.t.Fatalf("%s: %s is %v", a.what, path, v)
		return 0
	}
}

// is compares members, given as pairs of a path and a value.
func (a answer) is(pairs ...any) answer {
	a.t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		got := a.at(pairs[i].(string))
		want := pairs[i+1]
		if n, isInt := want.(int); isInt {
			got = a.n(pairs[i].(string))
			want = n
		}
		if got != want {
			a.t.Errorf("%s: %s is %v, want %v", a.what, pairs[i], got, want)
		}
	}
	return a
}

// desk is a project with a role, a work item and a queued assignment.
type desk struct {
	*client
	project, role, work, asgn string
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	c := newClient(t)
	d := &desk{client: c}
	d.project = c.ok("projects.create", args{"name": "P", "description": "for tests"}).id()
	d.role = c.ok("roles.create", args{"project_id": d.project, "name": "Worker", "instructions": "Do it", "default_skill_ids": []string{"review"}}).id()
	d.work = c.ok("work_items.create", args{"project_id": d.project, "title": "W"}).id()
	d.asgn = d.queue()
	return d
}

func (d *desk) queue() string {
	d.t.Helper()
	return d.ok("assignments.create", d.with("work_item_id", d.work, "role_id", d.role)).id()
}

// with builds arguments that name the project.
func (d *desk) with(pairs ...any) args {
	a := args{"project_id": d.project}
	for i := 0; i < len(pairs); i += 2 {
		a[pairs[i].(string)] = pairs[i+1]
	}
	return a
}

func (d *desk) on(pairs ...any) args {
	a := d.with(pairs...)
	a["assignment_id"] = d.asgn
	return a
}

func (d *desk) item(pairs ...any) args {
	a := d.with(pairs...)
	a["work_item_id"] = d.work
	return a
}

func (d *desk) claim() string {
	d.t.Helper()
	return d.ok("assignments.claim", d.on("claimed_by", "w")).str("claim.id")
}

func (d *desk) done(id string) {
	d.t.Helper()
	c := d.ok("assignments.claim", d.with("assignment_id", id, "claimed_by", "w")).str("claim.id")
	d.ok("assignments.complete", d.with("assignment_id", id, "claim_id", c))
}
