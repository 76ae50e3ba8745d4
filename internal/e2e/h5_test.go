package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agent-knock-knock/akk/internal/testkit/fakehost"
	"github.com/agent-knock-knock/akk/internal/testkit/faketmux"
	"github.com/agent-knock-knock/akk/internal/testkit/standin"
)

// h5Texts are the texts of case H5. None may lose a byte, press a key or become two tasks.
var h5Texts = []string{
	"one line", "l1\nl2", "l1\nl2\n", "Enter", "C-c", "-l", "semi;", "  two  spaces\n\tTab", "héllo 日本 ✻ ❯",
	strings.Repeat("x", 200), strings.Repeat("twenty kilobytes\n", 20<<10/17), strings.Repeat("three hundred kilobytes\n", 300<<10/24), "/clear now",
}

// h5Pane is a pane in one of the states of case H5, with what was read before.
type h5Pane struct {
	*pane
	w        *world
	unframed bool // the program asks for no bracketed paste
	read     int  // bytes of the recording that belong to earlier texts
}

// h5Start starts a stand-in with a Spec and a workspace of its own.
func h5Start(w *world, kind string, spec faketmux.Spec, cwd string, modes ...string) *h5Pane {
	w.t.Helper()
	s := standin.New(w.t, kind, modes...)
	if cwd != "" {
		s.Cwd = filepath.Join(w.t.TempDir(), cwd)
		if err := os.MkdirAll(s.Cwd, 0o755); err != nil {
			w.t.Fatal(err)
		}
	}
	spec.Argv = []string{"sh", "-c", s.Command()}
	return &h5Pane{w: w, pane: &pane{t: w.t, Setup: s, Pane: w.tmux.Run(spec)}}
}

// deliver sends one text and proves that it came as exactly one submission, or that not
// one byte came and the Host was told so.
func (p *h5Pane) deliver(c *fakehost.Client, terminal, text string) (accepted bool) {
	t := p.t
	t.Helper()
	res, err := c.Call(t.Context(), "agent_knock_knock_send", map[string]any{"terminal_id": terminal, "request": text})
	if err != nil {
		t.Fatalf("%.40q: %v", text, err)
	}
	raw := p.Input(t).Raw
	got := standin.ParseInput(raw[p.read:])
	p.read = len(raw)
	if res.IsError {
		if len(got.Raw) != 0 || res.Code() == "" {
			t.Errorf("%.40q was refused (%s), and yet the agent read %.80q", text, res.Text, got.Raw)
		}
		return false
	}
	var s sent
	res.Decode(t, &s)
	if s.Status != "async_pending" {
		t.Errorf("%.40q: %+v, the agent read %.80q", text, s, got.Raw)
	}
	// Codex takes no blanks at the ends of a task, so it is sent without them.
	pastes, typed := []string{strings.TrimSpace(text)}, ""
	if p.unframed { // LF is no Enter to a program in raw mode: it is one task all the same
		pastes, typed = nil, pastes[0]
	}
	if !slices.EqualFunc(got.Pastes, pastes, func(a, b string) bool { return strings.TrimSpace(lf(a)) == b }) || got.Enters != 1 || strings.TrimSpace(got.Typed) != typed {
		t.Errorf("%.40q: the agent read %d pastes (%.40q), %d Enters and %q", text, len(got.Pastes), got.Pastes, got.Enters, got.Typed)
	}
	if !slices.ContainsFunc(p.EventLog(t), func(e standin.Event) bool { return e.Ev == "submit" && words(e.Text) == words(text) }) {
		t.Errorf("%.40q is called accepted, and the agent has not taken it", text)
	}
	return true
}

// words is a text without the blanks that an agent may rewrite: Claude Code makes blanks
// of a tab.
func words(text string) string { return strings.Join(strings.Fields(text), " ") }

// onlySubmits fails if any text did something else than being a task.
func (p *h5Pane) onlySubmits() {
	p.t.Helper()
	for _, e := range p.EventLog(p.t) {
		if !slices.Contains([]string{"start", "ready", "submit", "answer", "end"}, e.Ev) {
			p.t.Errorf("the agent saw %s %.40q", e.Ev, e.Text)
		}
	}
}

// slash reports a text that would be a command to the agent.
func slash(text string) bool { return strings.HasPrefix(text, "/") }

func TestH5OnePromptIsOneSubmissionOrNothing(t *testing.T) { // H5, T02, T03, T06, T18, T19, T21
	for name, tc := range map[string]struct {
		spec  faketmux.Spec
		cwd   string
		modes []string
		// before brings the pane into its state before each text, after back out of it.
		before, after func(p *h5Pane)
		refuses       func(text string) bool // what must be refused here; nil: slash commands only
	}{
		"1 normal":                   {},
		"2 without bracketed paste":  {modes: []string{"no-bracketed-paste"}},
		"3 scrolled back by a human": {before: copyMode, after: leaveMode, refuses: func(string) bool { return true }},
		"5 forty columns wide":       {spec: faketmux.Spec{Width: 40}},
		"6 a strange workspace":      {cwd: "a b_c:d/日本"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			panes := []*h5Pane{h5Start(w, standin.Codex, tc.spec, tc.cwd, tc.modes...), h5Start(w, standin.Claude, tc.spec, tc.cwd, tc.modes...)}
			c := w.start()
			if tc.refuses == nil {
				tc.refuses = slash
			}
			for i, text := range h5Texts {
				for j, p := range panes {
					if name != "1 normal" && (i+j)%2 == 1 {
						continue // every second text, so that both agents see long and short ones
					}
					if p.unframed = tc.modes != nil; p.unframed && (strings.Contains(text, "\t") || len(text) > 100<<10) {
						continue // see below
					}
					term := readyPane(t, c, p.pane)
					if tc.before != nil {
						tc.before(p)
					}
					if accepted := p.deliver(c, term, text); accepted == tc.refuses(text) {
						t.Errorf("%s: %.40q accepted: %v", p.Agent, text, accepted)
					}
					if tc.after != nil {
						tc.after(p)
					}
				}
			}
			for _, p := range panes {
				p.onlySubmits()
			}
		})
	}
}

// Without a frame a Tab is a key, and a very long text is no folded paste that the screen
// can prove; tmux before 3.7 does not tell that there is no frame. What the agent has then
// may not be what was sent, so it must not be called accepted.
func TestH5WhatCannotBeProvedIsNeverCalledAccepted(t *testing.T) { // H5 state 2
	for _, kind := range []string{standin.Codex, standin.Claude} {
		for name, text := range map[string]string{"a tab": "a\tb", "300 KB": h5Texts[11]} {
			t.Run(kind+" "+name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, nil)
				p := h5Start(w, kind, faketmux.Spec{}, "", "no-bracketed-paste")
				c := w.start()
				res, err := c.Call(t.Context(), "agent_knock_knock_send", map[string]any{"terminal_id": readyPane(t, c, p.pane), "request": text})
				if err != nil {
					t.Fatal(err)
				}
				var s sent
				if !res.IsError {
					res.Decode(t, &s)
				}
				in := p.Input(t)
				// Blanks at the ends are no part of a task to Codex, here as in deliver.
				taken := slices.ContainsFunc(p.EventLog(t), func(e standin.Event) bool { return e.Ev == "submit" && e.Text == strings.TrimSpace(text) })
				if (s.Status == "async_pending" && !taken) || in.Enters > 1 || (res.IsError && len(in.Raw) > 0) || (!res.IsError && !s.DoNotRetry) {
					t.Errorf("%+v %s, the agent read %.80q", s, res.Text, in.Raw)
				}
			})
		}
	}
}

func copyMode(p *h5Pane)  { p.w.tmux.Tmux("copy-mode", "-t", p.ID) }
func leaveMode(p *h5Pane) { p.w.tmux.Tmux("send-keys", "-t", p.ID, "-X", "cancel") }

// The process is there and nobody reads yet: what is typed now, the terminal throws away.
func TestH5AnAgentThatDoesNotReadYetGetsNothing(t *testing.T) { // H5 state 4
	for _, kind := range []string{standin.Codex, standin.Claude} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			c := w.start()
			p := h5Start(w, kind, faketmux.Spec{}, "", "slow-start=2s")
			p.WaitEvent(t, "start", 1, settle)
			refused := 0
			for early := true; early; {
				l := list(t, c)
				early = !slices.ContainsFunc(p.EventLog(t), func(e standin.Event) bool { return e.Ev == "ready" })
				for _, r := range l.Terminals {
					if !early {
						break
					}
					res, err := c.Call(t.Context(), "agent_knock_knock_send", map[string]any{"terminal_id": r.TerminalID, "request": fmt.Sprintf("early %d", refused)})
					if err != nil {
						t.Fatal(err)
					}
					if res.IsError {
						refused++
						if n := len(p.Input(t).Raw); n != 0 {
							t.Fatalf("refused (%s), and yet %d bytes were typed", res.Text, n)
						}
						continue
					}
					p.WaitEvent(t, "submit", 1, settle) // it was ready by then
					early = false
				}
			}
			if refused == 0 {
				t.Log("no send fell into the start; the machine is slow")
			}
			term := readyPane(t, c, p.pane)
			p.read = len(p.Input(t).Raw)
			if !p.deliver(c, term, "SAY:now") {
				t.Error("refused when it reads")
			}
		})
	}
}
