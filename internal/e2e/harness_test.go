// Package e2e runs the real binaries, with real tmux, real SQLite and real processes,
// against the stand-in agents and the stand-in Host. With the build tag e2e it also runs
// the real Codex and Claude Code against a scripted model.
package e2e

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/testkit/fakehost"
	"github.com/agent-knock-knock/akk/internal/testkit/faketmux"
	"github.com/agent-knock-knock/akk/internal/testkit/gobuild"
	"github.com/agent-knock-knock/akk/internal/testkit/standin"
)

// The bounds of this package's waits. They are generous: a loaded machine must not fail a
// test, a broken product must not hang one.
const (
	settle  = 30 * time.Second // for anything that should happen in well under a second
	goneIn  = 2 * time.Second  // the promise: nothing of ours outlives the Bridge longer
	slowest = 60 * time.Second
)

const module = "github.com/agent-knock-knock/akk/"

// install puts the three binaries into one folder, as make install does.
func install(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for pkg, name := range map[string]string{"bridge": "agent-knock-knock", "monitor": "akk-monitor", "worker": "akk-callback"} {
		if err := os.Link(gobuild.Program(t, module+pkg), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "agent-knock-knock")
}

// world is one Host, one private tmux server and one installed Bridge.
type world struct {
	t    testing.TB
	host *fakehost.Host
	tmux *faketmux.Server
	bin  string
}

func newWorld(t testing.TB, opts *fakehost.ProfileOptions) *world {
	t.Helper()
	return &world{t: t, host: fakehost.New(t, opts), tmux: faketmux.New(t), bin: install(t)}
}

// bridge is the command line of a Bridge that sees only this world's tmux server.
func (w *world) bridge(args ...string) fakehost.Bridge {
	return w.host.Bridge(w.bin, append([]string{"--tmux-socket", w.tmux.Socket()}, args...)...)
}

func (w *world) start(args ...string) *fakehost.Client {
	w.t.Helper()
	return fakehost.Start(w.t, w.bridge(args...))
}

// agent starts a stand-in and waits until it takes input.
func (w *world) agent(kind string, modes ...string) *pane {
	w.t.Helper()
	s := standin.New(w.t, kind, modes...)
	p := &pane{t: w.t, Setup: s}
	p.Pane = w.tmux.Run(faketmux.Spec{Argv: []string{"sh", "-c", s.Command()}})
	if len(modes) == 0 {
		s.WaitEvent(w.t, "ready", 1, settle)
	}
	return p
}

type pane struct {
	t testing.TB
	*standin.Setup
	*faketmux.Pane
}

// row is what the tests read of a terminal.
type row struct {
	TerminalID string `json:"terminal_id"`
	Agent      string `json:"agent"`
	Version    string `json:"agent_version"`
	State      string `json:"activity_state"`
	Target     string `json:"target"`
	Reason     string `json:"activity_reason"`
	Screen     string `json:"screen_state"`
	Channel    string `json:"channel"`
	Mode       string `json:"mode"`
	Thread     string `json:"native_thread_id"`
	Workspace  string `json:"workspace"`
	Actions    map[string]struct {
		Tool      string         `json:"tool"`
		Arguments map[string]any `json:"arguments"`
	} `json:"available_actions"`
	Current *turnRow `json:"current_turn"`
}

type turnRow struct {
	TurnID     string `json:"turn_id"`
	Status     string `json:"status"`
	Submission string `json:"submission"`
	Reason     string `json:"reason"`
}

type listing struct {
	Terminals   []row     `json:"terminals"`
	Unavailable []turnRow `json:"unavailable_managed_turns"`
	Store       struct {
		Writable bool   `json:"writable"`
		Reason   string `json:"reason"`
	} `json:"store"`
}

type sent struct {
	TurnID     string `json:"turn_id"`
	Status     string `json:"status"`
	TurnStatus string `json:"turn_status"`
	Submission string `json:"submission"`
	Replayed   bool   `json:"replayed"`
	DoNotRetry bool   `json:"do_not_retry"`
	Reason     string `json:"reason"`
}

type status struct {
	Turn struct {
		turnRow
		Evidence string `json:"evidence"`
		Prompt   *struct {
			Title  string `json:"title"`
			Detail string `json:"detail"`
		} `json:"prompt"`
	} `json:"turn"`
	Callbacks []struct {
		Message   string `json:"message_id"`
		Kind      string `json:"kind"`
		Status    string `json:"status"`
		Attempts  int    `json:"attempts"`
		LastError string `json:"last_error"`
	} `json:"callback_delivery"`
	Events []struct {
		Kind string `json:"kind"`
		Note string `json:"note"`
	} `json:"recent_events"`
	Screen      string   `json:"terminal_screen"`
	Limitations []string `json:"limitations"`
}

func list(t testing.TB, c *fakehost.Client) listing {
	t.Helper()
	var l listing
	c.MustCall("agent_knock_knock_list", map[string]any{}).Decode(t, &l)
	return l
}

// idle waits until the only terminal can take a task, and returns it.
func idle(t testing.TB, c *fakehost.Client) row {
	t.Helper()
	var last listing
	faketmux.Wait(t, "one idle terminal", func() bool {
		last = list(t, c)
		return len(last.Terminals) == 1 && last.Terminals[0].Actions["send"].Tool != ""
	}, func() string { return dump(last) })
	return last.Terminals[0]
}

func send(t testing.TB, c *fakehost.Client, terminal, request string) sent {
	t.Helper()
	var s sent
	c.MustCall("agent_knock_knock_send", map[string]any{"terminal_id": terminal, "request": request}).Decode(t, &s)
	return s
}

func statusOf(t testing.TB, c *fakehost.Client, turn string) status {
	t.Helper()
	var s status
	c.MustCall("agent_knock_knock_status", map[string]any{"turn_id": turn}).Decode(t, &s)
	return s
}

// waitStatus waits until a Turn has the status.
func waitStatus(t testing.TB, c *fakehost.Client, turn, want string) status {
	t.Helper()
	var s status
	faketmux.Wait(t, "turn "+want, func() bool {
		s = statusOf(t, c, turn)
		return s.Turn.Status == want
	}, func() string { return dump(s) })
	return s
}

// waitCallback waits until the newest delivery of a Turn has the status.
func waitCallback(t testing.TB, c *fakehost.Client, turn, want string) status {
	t.Helper()
	var s status
	faketmux.Wait(t, "callback "+want, func() bool {
		s = statusOf(t, c, turn)
		return len(s.Callbacks) > 0 && s.Callbacks[len(s.Callbacks)-1].Status == want
	}, func() string { return dump(s) })
	return s
}

// submits counts the tasks that the agent took.
func (p *pane) submits() int {
	n := 0
	for _, e := range p.EventLog(p.t) {
		if e.Ev == "submit" {
			n++
		}
	}
	return n
}

// typedOnce fails unless the agent read exactly one paste of text and one Enter.
func (p *pane) typedOnce(text string) {
	p.t.Helper()
	in := p.Input(p.t)
	if len(in.Pastes) != 1 || strings.TrimSpace(in.Pastes[0]) != strings.TrimSpace(text) || in.Enters != 1 || in.Typed != "" {
		p.t.Errorf("the agent read %d pastes, %d Enters and %q; want one paste of %q and one Enter", len(in.Pastes), in.Enters, in.Typed, text)
	}
}

// untouched fails if the agent read anything at all.
func (p *pane) untouched() {
	p.t.Helper()
	if raw := p.Input(p.t).Raw; len(raw) != 0 {
		p.t.Errorf("the agent read %q; want nothing", raw)
	}
}

func readAll(t testing.TB, r io.Reader) string {
	t.Helper()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func dump(v any) string {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err.Error()
	}
	return string(b)
}
