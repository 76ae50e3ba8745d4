//go:build e2e && compat

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/testkit/compat"
	"github.com/agent-knock-knock/akk/internal/testkit/fakemodel"
	"github.com/agent-knock-knock/akk/internal/testkit/realagent"
)

// The environment of this test, which `make compat` sets.
const (
	envCompatAgent    = "AKK_COMPAT_AGENT"    // codex, claude
	envCompatVersions = "AKK_COMPAT_VERSIONS" // blank-separated; exact, or latest
	envCompatOut      = "AKK_COMPAT_OUT"      // the document; its section of the agent is replaced
)

const installRelease = 10 * time.Minute

// ways are how an agent is started: as a person does with our command, and without.
var ways = []string{"pane", "by hand"}

// TestCompatibility drives several versions of one agent through the same scenario and
// writes what worked. A version on which something does not work is no failure of this
// test: it is its result. Only a run that finds no agent at all is.
func TestCompatibility(t *testing.T) {
	kind, versions := os.Getenv(envCompatAgent), strings.Fields(os.Getenv(envCompatVersions))
	if kind == "" || len(versions) == 0 {
		t.Skipf("set %s and %s, as `make compat` does", envCompatAgent, envCompatVersions)
	}
	releases := make([]realagent.Release, len(versions))
	for i, v := range versions {
		ctx, cancel := context.WithTimeout(t.Context(), installRelease)
		r, err := realagent.InstallRelease(ctx, kind, v)
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		releases[i] = r
	}
	runs := make([]compat.Run, len(releases)*len(ways))
	t.Run("versions", func(t *testing.T) {
		for i, release := range releases {
			for k, how := range ways {
				t.Run(release.Version+" "+how, func(t *testing.T) {
					t.Parallel()
					runs[i*len(ways)+k] = scenario(t, release, how)
				})
			}
		}
	})
	section := compat.Section{Agent: kind, Date: time.Now(), Capabilities: capabilities(), Runs: runs}
	t.Log("\n" + section.Render())
	if out := os.Getenv(envCompatOut); out != "" {
		if err := compat.Put(out, section); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.ContainsFunc(runs, func(r compat.Run) bool { return r.Cells["completed"].State == compat.Yes }) {
		t.Error("no version completed a task: the run itself is broken")
	}
}

func capabilities() []string {
	var out []string
	for _, s := range compatSteps {
		out = append(out, s.name)
	}
	return out
}

// scenario is one version in one way through all steps.
func scenario(t *testing.T, release realagent.Release, how string) compat.Run {
	run := compat.Run{Version: release.Version, How: how, Cells: map[string]compat.Cell{}}
	p := &probe{TB: t}
	c := &compatRun{release: release, how: how}
	if cell := p.try(func() { c.bringUp(p) }); cell.State == compat.No {
		run.Cells[compatSteps[0].name] = cell
		return run
	}
	if a := c.real.agent; a.Launcher != "" {
		t.Logf("started as %s; notes %q", a.Launched.Commands, a.Launched.Notes)
	}
	for i, s := range compatSteps {
		cell := p.try(func() {
			for _, tool := range s.tools {
				if !slices.Contains(c.tools, "agent_knock_knock_"+tool) {
					p.untried("tool " + tool + " not in this build")
				}
			}
			s.do(c)
		})
		run.Cells[s.name] = cell
		t.Logf("%s: %s %s", s.name, cell.State, cell.Why)
		if i == 0 {
			run.Mode = c.mode
		}
		if rest := p.try(c.rest); rest.State == compat.No {
			t.Logf("the agent does not come to rest; screen:\n%s", c.real.screen())
			for _, later := range compatSteps[i+1:] {
				run.Cells[later.name] = compat.Cell{State: compat.Untried, Why: "the step before it left the agent busy"}
			}
			break
		}
	}
	return run
}

// compatRun is one agent of one version with its Bridge.
type compatRun struct {
	release realagent.Release
	how     string
	real    *real
	p       *probe
	tools   []string
	mode    string
}

func (c *compatRun) bringUp(p *probe) {
	c.p = p
	w := newWorld(p, nil)
	r := &real{world: w, t: p, model: fakemodel.Start(p)}
	o := realagent.Options{Bin: c.release.Bin, Session: c.release.Kind}
	mode := realagent.ClaudePlain
	if c.release.Kind == "codex" {
		mode = realagent.CodexEmbedded
	}
	switch {
	case c.how == "pane":
		o.Launcher = w.bin
		if c.release.Kind == "claude" {
			o.LaunchFlags = []string{"--hooks"}
		}
	case c.release.Kind == "codex":
		mode, o.PlainTitle = realagent.CodexDaemon, true // Codex's own defaults, where it knows them
	}
	r.agent = realagent.Start(p, w.tmux.Socket(), mode, r.model.URL(), &o)
	r.c = r.start()
	c.real = r
	res, err := r.c.Session().ListTools(p.Context(), nil)
	if err != nil {
		p.Fatal(err)
	}
	for _, tool := range res.Tools {
		c.tools = append(c.tools, tool.Name)
	}
}

// has reports whether the build has a tool.
func (c *compatRun) has(tool string) bool {
	return slices.Contains(c.tools, "agent_knock_knock_"+tool)
}

// rest brings the agent back to where a task can be sent: what a person would press.
func (c *compatRun) rest() {
	r := c.real
	for _, key := range []string{"", "Escape", "Escape", "C-u"} {
		if key != "" {
			r.keys(key)
		}
		for end := time.Now().Add(compatRest); time.Now().Before(end); <-time.After(200 * time.Millisecond) {
			if r.row().Actions["send"].Tool != "" {
				return
			}
		}
	}
	c.p.Fatalf("the agent takes no task any more: %s", c.why())
}

const compatRest = 12 * time.Second

func (c *compatRun) why() string {
	row := c.real.row()
	return fmt.Sprintf("state %s, screen %s, %s", row.State, row.Screen, row.Reason)
}

// probe is a test that takes failures as results.
type probe struct {
	testing.TB
	mu   sync.Mutex
	cell compat.Cell
}

// try runs one step and returns its verdict.
func (p *probe) try(step func()) compat.Cell {
	p.mu.Lock()
	p.cell = compat.Cell{State: compat.Yes}
	p.mu.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		step()
	}()
	<-done
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cell
}

func (p *probe) say(s compat.State, why string) {
	why, _, _ = strings.Cut(why, "; last seen:")
	why, _, _ = strings.Cut(why, ` {"`)
	why = strings.Replace(why, fmt.Sprintf("waited %v in vain for ", patience), "never came: ", 1)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.TB.Logf("%s: %s", s, why)
	if p.cell.State != compat.No {
		p.cell = compat.Cell{State: s, Why: strings.Trim(why, "\n")}
	}
}

func (p *probe) untried(why string) {
	p.say(compat.Untried, why)
	goexit()
}

func (p *probe) degraded(format string, args ...any) {
	p.say(compat.Degraded, fmt.Sprintf(format, args...))
}

func (p *probe) Error(args ...any)                 { p.degraded("%s", fmt.Sprint(args...)) }
func (p *probe) Errorf(format string, args ...any) { p.degraded(format, args...) }
func (p *probe) Fatal(args ...any)                 { p.say(compat.No, fmt.Sprint(args...)); goexit() }
func (p *probe) Fatalf(format string, args ...any) {
	p.say(compat.No, fmt.Sprintf(format, args...))
	goexit()
}
func (p *probe) FailNow()                         { p.say(compat.No, "failed"); goexit() }
func (p *probe) Fail()                            { p.degraded("failed") }
func (p *probe) Skip(args ...any)                 { p.untried(fmt.Sprint(args...)) }
func (p *probe) Skipf(format string, args ...any) { p.untried(fmt.Sprintf(format, args...)) }

func (c *compatRun) path(name string) string { return filepath.Join(c.real.agent.Cwd, name) }
