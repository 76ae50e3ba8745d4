package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-knock-knock/akk/internal/testkit/fakehost"
	"github.com/agent-knock-knock/akk/internal/testkit/faketmux"
	"github.com/agent-knock-knock/akk/internal/testkit/standin"
)

// refused calls send and expects an error of the code with a next step, and no byte typed.
func refused(t *testing.T, c *fakehost.Client, args map[string]any, code string, panes ...*pane) fakehost.Result {
	t.Helper()
	res, err := c.Call(t.Context(), "agent_knock_knock_send", args)
	if err != nil || res.Code() != code {
		t.Fatalf("%v: error %v, code %q, text %q; want %s", args, err, res.Code(), res.Text, code)
	}
	if strings.Contains(res.Text, "\n") || len(res.Text) > 1024 {
		t.Errorf("the refusal is not one short line: %q", res.Text)
	}
	for _, p := range panes {
		p.untouched()
	}
	return res
}

func TestSlashCommandsAndControlBytesAreRefused(t *testing.T) { // spec case 41
	w := newWorld(t, nil)
	p := w.agent(standin.Codex)
	c := w.start()
	term := idle(t, c).TerminalID
	for _, text := range []string{"/clear", "/clear now", "   ", "a\x1b[201~rm -rf /\r", "a\x03", "bell\a"} {
		refused(t, c, map[string]any{"terminal_id": term, "request": text}, "invalid", p)
	}
}

func TestWithTwoReadyTerminalsATargetIsNeeded(t *testing.T) { // spec case 17
	w := newWorld(t, nil)
	a, b := w.agent(standin.Codex), w.agent(standin.Claude)
	c := w.start()
	faketmux.Wait(t, "two idle terminals", func() bool {
		n := 0
		for _, r := range list(t, c).Terminals {
			if r.Actions["send"].Tool != "" {
				n++
			}
		}
		return n == 2
	}, func() string { return dump(list(t, c)) })
	res := refused(t, c, map[string]any{"request": "SAY:x"}, "ambiguous", a, b)
	if strings.Count(res.Text, "terminal:v2:") != 2 {
		t.Errorf("no candidates in %q", res.Text)
	}
	for name, args := range map[string]map[string]any{
		"both targets":  {"request": "x", "terminal_id": "terminal:v2:tmux:codex:a:0.0:1", "session_id": "session-20260101T000000-00000000"},
		"unknown field": {"request": "x", "profile": "/etc/passwd"},
		"no request":    {},
		"wrong type":    {"request": 7},
	} {
		if _, err := c.Call(t.Context(), "agent_knock_knock_send", args); err == nil {
			t.Errorf("%s: no protocol error", name)
		}
	}
	a.untouched()
	b.untouched()
}

func TestATerminalThatIsNotThereOrChangedHandsGetsNothing(t *testing.T) { // spec case 42
	w := newWorld(t, nil)
	p := w.agent(standin.Codex)
	c := w.start()
	term := idle(t, c).TerminalID
	refused(t, c, map[string]any{"terminal_id": term + "9", "request": "SAY:x"}, "not_found", p)
	w.tmux.Tmux("respawn-pane", "-k", "-t", p.ID, p.Command()) // another process in the same pane
	p.WaitEvent(t, "ready", 2, settle)
	refused(t, c, map[string]any{"terminal_id": term, "request": "SAY:x"}, "not_found", p)
}

func TestAPaneThatIsNotProvablyIdleGetsNothing(t *testing.T) { // H5 states 3 and 4, T12, T14, T16, spec case 44
	for name, modes := range map[string][]string{"trust dialog": {"trust-dialog"}, "unknown screen": {"onboarding"}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			p := w.agent(standin.Codex, modes...)
			c := w.start()
			var l listing
			faketmux.Wait(t, "the terminal in the list", func() bool { l = list(t, c); return len(l.Terminals) == 1 }, func() string { return dump(l) })
			if _, ok := l.Terminals[0].Actions["send"]; ok {
				t.Errorf("send is offered: %s", dump(l))
			}
			refused(t, c, map[string]any{"terminal_id": l.Terminals[0].TerminalID, "request": "SAY:x"}, "terminal_unusable", p)
		})
	}
	t.Run("copy mode", func(t *testing.T) { // T03
		w := newWorld(t, nil)
		p := w.agent(standin.Codex)
		c := w.start()
		term := idle(t, c).TerminalID
		w.tmux.Tmux("copy-mode", "-t", p.ID)
		refused(t, c, map[string]any{"terminal_id": term, "request": "l1\nl2"}, "terminal_unusable", p)
	})
	t.Run("a human's draft", func(t *testing.T) {
		w := newWorld(t, nil)
		p := w.agent(standin.Claude)
		c := w.start()
		term := idle(t, c).TerminalID
		w.tmux.Tmux("send-keys", "-l", "-t", p.ID, "half a thought")
		p.WaitText("half a thought")
		refused(t, c, map[string]any{"terminal_id": term, "request": "SAY:x"}, "terminal_unusable")
		if in := p.Input(t); in.Typed != "half a thought" || in.Enters != 0 || len(in.Pastes) != 0 {
			t.Errorf("the draft was touched: %+v", in)
		}
	})
}

func TestAnIgnoredEnterIsReportedAndNeverPressedAgain(t *testing.T) { // T11, T18, spec case 40
	w := newWorld(t, nil)
	p := w.agent(standin.Codex, "ignore-enter")
	p.WaitEvent(t, "ready", 1, settle)
	c := w.start()
	task := "SAY:x"
	got := send(t, c, idle(t, c).TerminalID, task)
	if got.Status != "submission_not_accepted" || !got.DoNotRetry {
		t.Errorf("%+v", got)
	}
	waitCallback(t, c, got.TurnID, "delivered")
	p.typedOnce(task)
	if code := c.Close(settle); code != 0 {
		t.Errorf("exit %d", code)
	}
	again := w.start() // a new Bridge types nothing either
	waitStatus(t, again, got.TurnID, "stalled")
	p.typedOnce(task)
}

func TestADroppedInputIsNeverCalledAccepted(t *testing.T) { // T18
	w := newWorld(t, nil)
	p := w.agent(standin.Codex, "drop-input")
	p.WaitEvent(t, "ready", 1, settle)
	c := w.start()
	got := send(t, c, idle(t, c).TerminalID, "SAY:x")
	if got.Status != "submission_uncertain" || !got.DoNotRetry {
		t.Errorf("%+v", got)
	}
	if in := p.Input(t); in.Enters != 0 {
		t.Errorf("Enter was pressed without a proved draft: %+v", in)
	}
}

func TestAChangedProfileFailsClosed(t *testing.T) { // spec case 19
	w := newWorld(t, nil)
	p := w.agent(standin.Codex)
	c := w.start()
	term := idle(t, c).TerminalID
	doc, err := os.ReadFile(w.host.Profile)
	if err != nil {
		t.Fatal(err)
	}
	write := func(text string) {
		if err := os.WriteFile(w.host.Profile, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(strings.Replace(string(doc), `"revision": "1"`, `"revision": "2"`, 1))
	res := refused(t, c, map[string]any{"terminal_id": term, "request": "SAY:x"}, "profile_drift", p)
	if !strings.Contains(res.Text, "restart") {
		t.Errorf("no next step in %q", res.Text)
	}
	write(string(doc) + "\n\n") // white space only
	if got := send(t, c, term, "SAY:x"); got.Status != "async_pending" {
		t.Errorf("%+v", got)
	}
}

func TestStartErrorsExitOneWithOneLineAndAnEmptyStdout(t *testing.T) { // spec cases 14, 15
	w := newWorld(t, nil)
	good := w.bridge()
	with := func(f func(*fakehost.Bridge)) fakehost.Bridge { b := good; f(&b); return b }
	noProfile := filepath.Join(w.host.Dir, "none.json")
	routeBound := fakehost.WriteProfile(t, t.TempDir(), w.host.Callback, &fakehost.ProfileOptions{Scope: "route_bound_v1"})
	shell := fakehost.WriteProfile(t, t.TempDir(), w.host.Callback, &fakehost.ProfileOptions{Executable: "/bin/sh"})
	missing := fakehost.WriteProfile(t, t.TempDir(), w.host.Callback, &fakehost.ProfileOptions{Executable: "/nonexistent/callback"})
	otherHost := fakehost.WriteProfile(t, t.TempDir(), w.host.Callback, &fakehost.ProfileOptions{Range: ">=9.0.0"})
	for name, tc := range map[string]struct {
		b    fakehost.Bridge
		want string
	}{
		"no Profile":         {with(func(b *fakehost.Bridge) { b.Profile = noProfile }), "none.json"},
		"route-bound scope":  {with(func(b *fakehost.Bridge) { b.Profile = routeBound }), "route_bound_v1"},
		"shell":              {with(func(b *fakehost.Bridge) { b.Profile = shell }), "executable"},
		"missing executable": {with(func(b *fakehost.Bridge) { b.Profile = missing }), "executable"},
		"version":            {with(func(b *fakehost.Bridge) { b.Profile = otherHost }), "9.0.0"},
		"no session":         {with(func(b *fakehost.Bridge) { b.Env = []string{fakehost.EnvSession + "="} }), fakehost.EnvSession},
		"Store":              {with(func(b *fakehost.Bridge) { b.StoreDir = "/proc/akk" }), "--store-dir"},
	} {
		t.Run(name, func(t *testing.T) {
			p := fakehost.Spawn(t, tc.b)
			p.Stdin.Close()
			out := readAll(t, p.Stdout)
			if code := p.WaitExit(settle); code != 1 || out != "" {
				t.Errorf("exit %d, stdout %q", code, out)
			}
			line := strings.TrimSuffix(p.Stderr(), "\n")
			if strings.Contains(line, "\n") || !strings.Contains(line, tc.want) || strings.Contains(line, w.host.Session) {
				t.Errorf("stderr %q; want one line with %q", line, tc.want)
			}
		})
	}
}
