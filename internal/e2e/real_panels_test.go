//go:build e2e

package e2e

import (
	"encoding/json"
	"path/filepath"
	"slices"
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
	"github.com/agent-knock-knock/akk/internal/native/panels"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/testkit/fakemodel"
	"github.com/agent-knock-knock/akk/internal/testkit/faketmux"
	"github.com/agent-knock-knock/akk/internal/testkit/realagent"
)

// paneled is a real agent and the use cases of its panels, in this process.
type paneled struct {
	t       *testing.T
	tmux    *faketmux.Server
	agent   *realagent.Agent
	scanner *discover.Scanner
	db      *store.DB
	lockDir string
	service *panels.Service
}

func newPaneled(t *testing.T, mode realagent.Mode) *paneled {
	t.Helper()
	realagent.Need(t)
	p := &paneled{t: t, tmux: faketmux.New(t), lockDir: filepath.Join(t.TempDir(), "locks")}
	model := fakemodel.Start(t)
	p.agent = realagent.Start(t, p.tmux.Socket(), mode, model.URL(), nil)
	p.scanner = discover.New([]string{p.tmux.Socket()}, codex.New(codex.Options{}), claude.New(claude.Options{}))
	db, err := store.Open(t.Context(), t.TempDir(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	p.db = db
	p.service = panels.New(panels.Config{
		DB: db, Desk: keyboard.Desk{Finder: p.scanner, LockDir: p.lockDir, Clock: clock.System{}, DraftLimit: patience}, Clock: clock.System{},
		Extended: true, Budget: patience,
	})
	return p
}

// idle waits until the agent's terminal is idle, and returns it.
func (p *paneled) idle() discover.Terminal {
	p.t.Helper()
	var last discover.Terminal
	for end := time.Now().Add(patience); time.Now().Before(end); <-time.After(50 * time.Millisecond) {
		scan, err := p.scanner.Scan(p.t.Context(), discover.Options{Screens: true})
		if err != nil {
			p.t.Fatal(err)
		}
		for _, t := range scan.Terminals {
			last = t
			if discover.Ready(t) == nil && t.Screen.Composer == agent.ComposerEmpty {
				return t
			}
		}
	}
	p.t.Fatalf("the agent is not idle: %+v\nscreen:\n%s", last, p.screen())
	return last
}

func (p *paneled) id() ids.TerminalID { p.t.Helper(); return p.idle().ID }

func (p *paneled) screen() string {
	out, err := p.tmux.Try("capture-pane", "-p", "-t", p.agent.PaneID)
	if err != nil {
		return err.Error()
	}
	return out
}

// calm fails unless the terminal is idle with an empty composer at once: an operation has
// proved that before it returned.
func (p *paneled) calm() {
	p.t.Helper()
	t, err := p.scanner.Find(p.t.Context(), p.idle().ID)
	if err != nil {
		p.t.Fatal(err)
	}
	if _, _, err := panels.Fit(t, true); err != nil {
		p.t.Errorf("after the operation: %v\nscreen:\n%s", err, p.screen())
	}
}

func shownJSON(v any) string {
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func TestRealPanelsOfCodexEmbedded(t *testing.T) { realPanels(t, realagent.CodexEmbedded) }
func TestRealPanelsOfCodexDaemon(t *testing.T)   { realPanels(t, realagent.CodexDaemon) }
func TestRealPanelsOfClaude(t *testing.T)        { realPanels(t, realagent.ClaudePlain) }

func realPanels(t *testing.T, mode realagent.Mode) {
	p := newPaneled(t, mode)
	ctx := t.Context()
	thread := p.idle().Native.ThreadID

	for round := range 3 { // an old panel stands above the new one
		began := time.Now()
		got, err := p.service.Inspect(ctx, p.id(), panels.InspectStatus)
		if err != nil || got.Status != "observed" || got.ThreadID != thread || len(got.Native.Fields) < 5 || got.Submission.Enters != 1 {
			t.Fatalf("round %d: thread %s, err %v, got %s\nscreen:\n%s", round, thread, err, shownJSON(got), p.screen())
		}
		p.calm()
		t.Logf("inspected in %v: %s", time.Since(began), shownJSON(got.Native.Fields))
	}

	// Case 60: no choice without options that were shown.
	before := p.screen()
	if _, err := p.service.SetModel(ctx, p.id(), agent.Setting{Model: "sonnet", Effort: "low"}); fault.CodeOf(err) != panels.CodeNoOffer {
		t.Fatalf("without an offer: %v", err)
	}
	if p.screen() != before {
		t.Errorf("the refused choice changed the screen:\n%s", p.screen())
	}

	began := time.Now()
	options, err := p.service.ModelOptions(ctx, p.id())
	if err != nil || options.Status != "observed" || len(options.Models) < 2 || options.Effective == nil {
		t.Fatalf("err %v, got %s\nscreen:\n%s", err, shownJSON(options), p.screen())
	}
	t.Logf("options in %v: %s", time.Since(began), shownJSON(options))
	p.calm()
	p.choose(options)

	perms, err := p.service.PermissionOptions(ctx, p.id())
	if err != nil || perms.Status != "observed" || perms.Current == "" || len(perms.Choices) < 3 {
		t.Fatalf("err %v, got %s\nscreen:\n%s", err, shownJSON(perms), p.screen())
	}
	p.calm()
	i := slices.IndexFunc(perms.Choices, func(c agent.Permission) bool { return c.ID != perms.Current && !c.NeedsPerson })
	mode2 := perms.Choices[i].ID
	changed, err := p.service.SetPermissions(ctx, p.id(), mode2)
	if err != nil || changed.Outcome != panels.Changed || changed.Effective != mode2 {
		t.Fatalf("err %v, got %s of %s\nscreen:\n%s", err, shownJSON(changed), shownJSON(perms), p.screen())
	}
	p.calm()

	who, err := p.service.IdentifyForeground(ctx, p.id())
	if err != nil || who.ThreadID != thread || who.Agrees == nil || !*who.Agrees {
		t.Fatalf("err %v, got %s", err, shownJSON(who))
	}
}

// choose changes the model twice and proves what is said of it.
func (p *paneled) choose(options panels.ModelOptions) {
	t, ctx := p.t, p.t.Context()
	t.Helper()
	var want agent.Setting
	for _, m := range options.Models {
		if m.ID != options.Effective.Model && slices.Contains(m.Efforts, "max") { // Codex has it in a list of its own
			want = agent.Setting{Model: m.ID, Effort: "max"}
		}
	}
	if _, err := p.service.SetModel(ctx, p.id(), agent.Setting{Model: "no-such-model", Effort: "low"}); fault.CodeOf(err) != fault.Invalid {
		t.Fatalf("an unknown model: %v", err)
	}
	began := time.Now()
	got, err := p.service.SetModel(ctx, p.id(), want)
	if err != nil || got.Outcome != panels.Changed || got.Effective == nil || *got.Effective != want || got.DefaultsChanged == nil {
		t.Fatalf("want %v, err %v, got %s\nscreen:\n%s", want, err, shownJSON(got), p.screen())
	}
	t.Logf("set in %v: %s", time.Since(began), shownJSON(got))
	p.calm()
	if _, err := p.service.SetModel(ctx, p.id(), want); fault.CodeOf(err) != panels.CodeNoOffer {
		t.Fatalf("a used offer: %v", err)
	}
	again, err := p.service.ModelOptions(ctx, p.id())
	if err != nil || again.Effective == nil || *again.Effective != want {
		t.Fatalf("err %v, got %s\nscreen:\n%s", err, shownJSON(again), p.screen())
	}
	for i := range options.Models {
		if !slices.Equal(options.Models[i].Efforts, again.Models[i].Efforts) || options.Models[i].ID != again.Models[i].ID {
			t.Errorf("read twice: %v and %v", options.Models[i], again.Models[i])
		}
	}
	same, err := p.service.SetModel(ctx, p.id(), want)
	if err != nil || same.Outcome != panels.AlreadyEffective || same.DefaultsChanged == nil || *same.DefaultsChanged {
		t.Fatalf("err %v, got %s\nscreen:\n%s", err, shownJSON(same), p.screen())
	}
	p.calm()
	if _, err := p.service.ModelOptions(ctx, p.id()); err != nil {
		t.Fatal(err)
	}
	want = agent.Setting{Model: options.Models[0].ID, Effort: "xhigh"} // "Extra high" in one of the pickers
	last, err := p.service.SetModel(ctx, p.id(), want)
	if err != nil || last.Outcome != panels.Changed || *last.Effective != want || last.Defaults == nil {
		t.Fatalf("err %v, got %s\nscreen:\n%s", err, shownJSON(last), p.screen())
	}
	// Claude Code keeps this effort for new sessions too, which the evidence must say.
	if *last.DefaultsChanged != (last.Defaults.Effort == "xhigh") {
		t.Errorf("%s", shownJSON(last))
	}
	p.calm()
}
