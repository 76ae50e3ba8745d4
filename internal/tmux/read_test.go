package tmux_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/testkit/faketmux"
	"github.com/agent-knock-knock/akk/internal/tmux"
)

// T21: no directory and no title may shift a field or hide or forge a pane.
func TestPanesSurviveAnyPathAndTitle(t *testing.T) {
	server := faketmux.New(t)
	base := faketmux.ShortDir(t)
	names := []string{
		"a b_c:d", "日本", "tab\there", "new\nline", "back\\slash \\033 \\t", "esc\x1b[31m", "quote'\"#{pane_id}%0,;$(x)`",
		"x\n%77=1234=0=0", strings.Repeat("n", 200),
	}
	want := map[string]string{}
	for i, name := range names {
		dir := filepath.Join(base, name)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		title := fmt.Sprintf("✻ t%d #{q:x} %%1 '\"\\;<<=>>", i)
		r := server.Recorder(faketmux.RecorderSpec{Print: "\x1b]2;" + title + "\x07", Spec: faketmux.Spec{Dir: dir}})
		r.WaitScreen(func(c tmux.Capture) bool { return c.Pane.Title == title })
		want[r.ID] = dir
	}
	panes, err := server.Client().Panes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(panes) != len(want) {
		t.Errorf("%d panes, want %d", len(panes), len(want))
	}
	for _, p := range panes {
		if p.Path != want[p.ID] {
			t.Errorf("%s: path %q, want %q", p.ID, p.Path, want[p.ID])
		}
		if p.Socket != server.Socket() || p.ServerPID != server.PID() || p.PID == 0 || p.Version == "" || p.Width != 120 || p.Height != 40 {
			t.Errorf("%+v", p)
		}
	}
}

func TestAPaneOfALinkedWindowIsListedOnce(t *testing.T) {
	server := faketmux.New(t)
	p := server.Run(faketmux.Spec{Name: "one"})
	server.Tmux("new-session", "-d", "-t", "one", "-s", "group")
	panes, err := server.Client().Panes(t.Context())
	if err != nil || len(panes) != 1 || panes[0].ID != p.ID {
		t.Errorf("%+v, %v", panes, err)
	}
}

func TestPaneTellsDeathModeAndAbsence(t *testing.T) {
	server := faketmux.New(t)
	p := server.Run(faketmux.Spec{Dir: "/tmp"})
	c := server.Client()
	server.Tmux("copy-mode", "-t", p.ID)
	got, err := c.Pane(t.Context(), p.ID)
	if err != nil || !got.InMode || got.Dead || got.PID != p.PID || got.Target() != p.Target() {
		t.Errorf("%+v, %v", got, err)
	}
	dead := server.Run(faketmux.Spec{Argv: []string{"true"}, Remain: true})
	dead.WaitScreen(func(c tmux.Capture) bool { return c.Pane.Dead })
	if _, err := c.Pane(t.Context(), "%99"); !fault.Is(err, fault.NotFound) {
		t.Errorf("a pane that is gone: %v", err)
	}
	if _, err := c.Capture(t.Context(), "%99", tmux.CaptureOptions{}); !fault.Is(err, fault.NotFound) {
		t.Errorf("capture of a pane that is gone: %v", err)
	}
	if _, err := c.Pane(t.Context(), "0"); !fault.Is(err, fault.Invalid) {
		t.Errorf("no pane id: %v", err)
	}
	server.Kill()
	if _, err := c.Pane(t.Context(), p.ID); !fault.Is(err, fault.Unavailable) {
		t.Errorf("without a server: %v", err)
	}
}

func TestCaptureGivesPlainAndStyledRowsOfOneMoment(t *testing.T) {
	server := faketmux.New(t)
	r := server.Recorder(faketmux.RecorderSpec{
		Print: "one\r\n\x1b[1;31mred 日本\x1b[0m   \r\n\x1b[?25l",
		Spec:  faketmux.Spec{Width: 60, Height: 20},
	})
	c := r.WaitText("READY")
	if len(c.Lines) != 20 || len(c.Styled) != 20 || c.FirstRow != 0 {
		t.Fatalf("%d and %d rows from %d", len(c.Lines), len(c.Styled), c.FirstRow)
	}
	if c.Lines[0] != "one" || c.Lines[1] != "red 日本" || c.Lines[2] != "READY" || c.Lines[3] != "" {
		t.Errorf("plain %q", c.Lines[:4])
	}
	if !strings.Contains(c.Styled[1], "\x1b[") || !strings.Contains(c.Styled[1], "red 日本") {
		t.Errorf("styled %q", c.Styled[1])
	}
	if c.Pane.CursorFlag || c.Pane.CursorY != 3 || c.Pane.CursorX != 0 || c.Pane.ID != r.ID {
		t.Errorf("pane %+v", c.Pane)
	}
}

func TestCaptureIsBoundedAndCountsRowsFromTheScreen(t *testing.T) {
	server := faketmux.New(t)
	var many strings.Builder
	for i := range 400 {
		fmt.Fprintf(&many, "line %d\r\n", i)
	}
	r := server.Recorder(faketmux.RecorderSpec{Print: many.String(), Spec: faketmux.Spec{Height: 20}})
	c, err := server.Client().Capture(t.Context(), r.ID, tmux.CaptureOptions{Scrollback: 1000})
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Lines) != tmux.MaxCaptureLines || c.FirstRow != 20-tmux.MaxCaptureLines {
		t.Errorf("%d rows from %d", len(c.Lines), c.FirstRow)
	}
	i := slices.Index(c.Lines, "READY")
	if i < 0 || i+c.FirstRow != c.Pane.CursorY-1 || c.Lines[i-1] != "line 399" {
		t.Errorf("READY in row %d, first row %d, cursor %d", i, c.FirstRow, c.Pane.CursorY)
	}
	high := server.Recorder(faketmux.RecorderSpec{Spec: faketmux.Spec{Height: 300}})
	if c := high.WaitText("READY"); c.Pane.Height != 300 || len(c.Lines) != tmux.MaxCaptureLines || c.FirstRow != 0 {
		t.Errorf("at the top: %d rows from %d", len(c.Lines), c.FirstRow)
	}
	low := server.Recorder(faketmux.RecorderSpec{Print: "\x1b[300;1H", Spec: faketmux.Spec{Height: 300}})
	if c := low.WaitText("READY"); len(c.Lines) != tmux.MaxCaptureLines || c.FirstRow != 60 {
		t.Errorf("at the bottom: %d rows from %d", len(c.Lines), c.FirstRow)
	}
}

// T19: the terminal's own wrapping can be taken back.
func TestCaptureJoinsWrappedRowsOnDemand(t *testing.T) {
	server := faketmux.New(t)
	long := strings.Repeat("0123456789", 10)
	r := server.Recorder(faketmux.RecorderSpec{Print: long + "\r\n", Spec: faketmux.Spec{Width: 40}})
	r.WaitText("READY")
	for join, want := range map[bool]string{false: long[:40], true: long} {
		c, err := server.Client().Capture(t.Context(), r.ID, tmux.CaptureOptions{Join: join})
		if err != nil || c.Lines[0] != want {
			t.Errorf("join %v: %q, %v", join, c.Lines[0], err)
		}
	}
}

// T26: one server that hangs delays the others by nothing and the whole by its bound.
func TestAHangingServerIsReportedAndHidesNoOther(t *testing.T) {
	good, bad := faketmux.New(t), faketmux.New(t)
	p := good.Run(faketmux.Spec{})
	bad.Run(faketmux.Spec{})
	pause(t, bad)
	start := time.Now()
	all := tmux.Inventory(t.Context(), []tmux.Server{bad.Client(), good.Client(), tmux.At("/nonexistent/s")})
	took := time.Since(start)
	if !fault.Is(all[0].Err, fault.Timeout) || !fault.Is(all[2].Err, fault.Unavailable) {
		t.Errorf("hanging: %v; absent: %v", all[0].Err, all[2].Err)
	}
	if all[1].Err != nil || len(all[1].Panes) != 1 || all[1].Panes[0].ID != p.ID {
		t.Errorf("good: %+v", all[1])
	}
	if took > 6*time.Second { // the bound is 1.5 s; the rest is a loaded machine
		t.Errorf("took %v", took)
	}
}

// T25: nothing private of ours reaches a server, and no command of ours starts one.
func TestNoServerIsStartedAndNoSecretIsHandedOver(t *testing.T) {
	t.Setenv("AKK_SECRET_CANARY", "canary-value")
	socket := filepath.Join(faketmux.ShortDir(t), "s")
	s := tmux.At(socket)
	to := tmux.Target{Socket: socket, PaneID: "%0", PanePID: os.Getpid()}
	s.Panes(t.Context())
	s.Pane(t.Context(), "%0")
	s.Capture(t.Context(), "%0", tmux.CaptureOptions{})
	bothInputs(t, s, to, "no tmux server runs")
	if _, err := os.Lstat(socket); !os.IsNotExist(err) {
		t.Errorf("a socket was made: %v", err)
	}

	dump := filepath.Join(t.TempDir(), "env")
	shim := filepath.Join(t.TempDir(), "tmux")
	if err := os.WriteFile(shim, []byte("#!/bin/sh\n/usr/bin/env >"+dump+"; pwd >>"+dump+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	tmux.WithPrograms(s, shim).Panes(t.Context())
	b, err := os.ReadFile(dump)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), "=")
		if !slices.Contains([]string{"PATH", "HOME", "LANG", "TERM", "PWD", "SHLVL", "_", "OLDPWD", "/"}, name) {
			t.Errorf("the client got %q", line)
		}
	}
}

// T24: we do not start servers; that our own directory was deleted must not matter either.
func TestADeletedWorkingDirectoryDoesNotMatter(t *testing.T) {
	server := faketmux.New(t)
	server.Run(faketmux.Spec{})
	dir, err := os.MkdirTemp("", "akk")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	os.Remove(dir)
	if panes, err := server.Client().Panes(t.Context()); err != nil || len(panes) != 1 {
		t.Errorf("%v, %v", panes, err)
	}
}

func BenchmarkPanes20(b *testing.B) {
	server := faketmux.New(b)
	for range 20 {
		server.Run(faketmux.Spec{})
	}
	for b.Loop() {
		if panes, err := server.Client().Panes(b.Context()); err != nil || len(panes) != 20 {
			b.Fatal(len(panes), err)
		}
	}
}

func BenchmarkDiscoverAndPanes20(b *testing.B) {
	server := faketmux.New(b)
	for range 20 {
		server.Run(faketmux.Spec{})
	}
	getenv := func(name string) string {
		if name == "AKK_TMUX_SOCKET" {
			return server.Socket()
		}
		return ""
	}
	for b.Loop() {
		servers, err := tmux.Discover(b.Context(), getenv)
		if err != nil {
			b.Fatal(err)
		}
		i := slices.IndexFunc(servers, func(s tmux.Server) bool { return s.Socket == server.Socket() })
		if all := tmux.Inventory(b.Context(), servers[i:i+1]); len(all[0].Panes) != 20 {
			b.Fatal(all[0].Err)
		}
	}
}
