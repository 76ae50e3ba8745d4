package claude

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/agent/claude/known"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/procinfo"
	"github.com/agent-knock-knock/akk/internal/turn"
)

func (r *rig) identify() agent.Native {
	r.t.Helper()
	n, err := r.a.Identify(r.t.Context(), r.ref)
	if err != nil {
		r.t.Fatal(err)
	}
	return n
}

func TestVirginSessionHasAThreadAndNoLog(t *testing.T) {
	r := newRig(t)
	n := r.identify()
	if n.Thread != agent.ThreadResolved || n.ThreadID != thread || n.LogPath != "" || n.Version != "2.1.197" ||
		n.Mode != "interactive" || n.Channel != turn.ChannelKeyboard || n.Activity != agent.ActivityIdle {
		t.Errorf("got %+v", n)
	}
	r.append(prompt("u", "", "x"))
	if n := r.identify(); n.LogPath != r.log() {
		t.Errorf("log %q, want %q", n.LogPath, r.log())
	}
}

func TestStatusIsTranslatedAndUnknownStaysUnknown(t *testing.T) {
	r := newRig(t)
	for s, want := range map[string]agent.Activity{
		"idle": agent.ActivityIdle, "shell": agent.ActivityIdle, "busy": agent.ActivityWorking,
		"waiting": agent.ActivityWaiting, "dreaming": agent.ActivityUnknown, "": agent.ActivityUnknown,
	} {
		r.say(s, "")
		n := r.identify()
		if n.Activity != want || n.Thread != agent.ThreadResolved {
			t.Errorf("%q: %s, %s", s, n.Activity, n.Thread)
		}
		if want == agent.ActivityUnknown && n.Reason == "" {
			t.Errorf("%q: unknown without a reason", s)
		}
	}
}

func TestStatusFileOfAnotherStartOrProcessIsNotBelieved(t *testing.T) {
	for name, change := range map[string]func(map[string]any){
		"stale after kill -9": func(m map[string]any) { m["procStart"] = "776" },
		"another pid":         func(m map[string]any) { m["pid"] = agentPID + 1 },
		"not interactive":     func(m map[string]any) { m["kind"] = "background" },
		"no session":          func(m map[string]any) { delete(m, "sessionId") },
		"a path for an id":    func(m map[string]any) { m["sessionId"] = "../../../../etc/passwd" },
	} {
		r := newRig(t)
		r.say("idle", "", change)
		n := r.identify()
		if n.Thread != agent.ThreadUnavailable || n.ThreadID != "" || n.Reason == "" {
			t.Errorf("%s: %+v", name, n)
		}
	}
}

func TestMissingStatusFileLeavesTheProjectDirectory(t *testing.T) {
	r := newRig(t)
	if err := os.Remove(r.statusPath()); err != nil {
		t.Fatal(err)
	}
	r.a.process = func(int) (procinfo.Process, error) {
		return procinfo.Process{Exe: "/home/u/.local/share/claude/versions/2.9.1"}, nil
	}
	n := r.identify()
	if n.Thread != agent.ThreadUnavailable || n.Activity != agent.ActivityUnknown || n.Version != "2.9.1" || n.Extra[extraProjectDir] == "" {
		t.Errorf("got %+v", n)
	}
}

func TestTornStatusFileIsReadAgain(t *testing.T) {
	r := newRig(t)
	b, err := os.ReadFile(r.statusPath())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(r.statusPath(), b[:40], 0o600); err != nil {
		t.Fatal(err)
	}
	got := make(chan agent.Native, 1)
	go func() {
		n, _ := r.a.Identify(r.t.Context(), r.ref)
		got <- n
	}()
	u := &run{r: r}
	u.until("the first, torn reading", func() bool {
		r.clock.mu.Lock()
		defer r.clock.mu.Unlock()
		return len(r.clock.timers) > 0
	})
	if err := os.WriteFile(r.statusPath(), b, 0o600); err != nil {
		t.Fatal(err)
	}
	r.clock.tick(known.StatusRetry)
	if n := <-got; n.Thread != agent.ThreadResolved {
		t.Errorf("got %+v", n)
	}
}

func TestHugeStatusFileIsNotRead(t *testing.T) {
	r := newRig(t)
	if err := os.WriteFile(r.statusPath(), []byte(`{"pid":1,"x":"`+strings.Repeat("x", known.MaxStatusFile)+`"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readStatus(r.statusPath()); !fault.Is(err, fault.Unavailable) {
		t.Errorf("got %v", err)
	}
}

func TestConfigDirComesFromTheProcessNotFromUs(t *testing.T) {
	env := map[string]string{}
	var fail error
	a := New(Options{Env: func(_ int, name string) (string, bool, error) {
		v, ok := env[name]
		return v, ok, fail
	}})
	t.Setenv(known.ConfigDirEnv, "/ours")
	env["HOME"] = "/home/them"
	if d, err := a.configDir(1); err != nil || d != "/home/them/.claude" {
		t.Errorf("%q, %v", d, err)
	}
	env[known.ConfigDirEnv] = "/srv/claude/"
	if d, err := a.configDir(1); err != nil || d != "/srv/claude" {
		t.Errorf("%q, %v", d, err)
	}
	env[known.ConfigDirEnv] = "relative"
	if _, err := a.configDir(1); !fault.Is(err, fault.Unavailable) {
		t.Errorf("relative: %v", err)
	}
	delete(env, known.ConfigDirEnv)
	delete(env, "HOME")
	if _, err := a.configDir(1); !fault.Is(err, fault.Unavailable) {
		t.Errorf("no HOME: %v", err)
	}
	fail = errors.New("denied")
	if _, err := a.Identify(t.Context(), agent.Ref{}); !fault.Is(err, fault.Unavailable) {
		t.Errorf("unreadable: %v", err)
	}
}

func TestTranscriptOfAMovedSessionIsFoundByItsIDOnlyWhenItIsUnique(t *testing.T) {
	r := newRig(t)
	elsewhere := filepath.Join(r.dir, known.ProjectsDir, "-old-place", thread+known.TranscriptExt)
	r.appendTo(elsewhere, prompt("u", "", "x"))
	if n := r.identify(); n.LogPath != elsewhere {
		t.Errorf("log %q", n.LogPath)
	}
	r.appendTo(filepath.Join(r.dir, known.ProjectsDir, "-third-place", thread+known.TranscriptExt), "x\n")
	if n := r.identify(); n.LogPath != "" {
		t.Errorf("two files: %q", n.LogPath)
	}
}

func TestAnchorStandsAfterTheLastWholeRecord(t *testing.T) {
	r := newRig(t)
	whole := prompt("u", "", "x")
	r.append(whole + `{"half`)
	an := r.anchor("  !the request\t")
	if an.Log == nil || an.Log.Offset != int64(len(whole)) || an.Log.Inode == 0 || an.Log.Path != r.log() {
		t.Errorf("log %+v", an.Log)
	}
	if an.Agent != "claude" || an.Channel != turn.ChannelKeyboard || an.ThreadID != thread || an.ClientID != "msg-1" ||
		an.RequestHash != ids.TextHash("  !the request\t") || an.Extra[extraConfigDir] != r.dir || an.Extra[extraStatus] != r.statusPath() {
		t.Errorf("anchor %+v", an)
	}
	for k, v := range an.Extra {
		if strings.Contains(v, "request") {
			t.Errorf("the anchor holds the request's text in %s", k)
		}
	}
}

func TestAnchorRefusesATranscriptThatOthersMayWrite(t *testing.T) {
	r := newRig(t)
	r.append(prompt("u", "", "x"))
	if err := os.Chmod(r.log(), 0o622); err != nil {
		t.Fatal(err)
	}
	if _, err := r.a.Anchor(t.Context(), r.ref, r.identify(), "x", "m"); !fault.Is(err, fault.Unavailable) {
		t.Errorf("got %v", err)
	}
}

func TestAnchorWithoutIdentityIsRefused(t *testing.T) {
	if _, err := newRig(t).a.Anchor(t.Context(), agent.Ref{}, agent.Native{}, "x", "m"); !fault.Is(err, fault.Invalid) {
		t.Errorf("got %v", err)
	}
}

// E10: an old transcript of any size costs nothing.
func TestOnlyBytesAfterTheAnchorAreReadE10(t *testing.T) {
	r := newRig(t)
	r.append("")
	if err := os.Truncate(r.log(), 300<<20); err != nil { // a sparse file: one endless "line"
		t.Fatal(err)
	}
	r.append("\n")
	u := r.follow(r.anchor("hello"))
	r.append(prompt("u1", "", "hello") + answer("a1", "u1", "hi") + endOf("s1", "a1"))
	if err := u.ended(); err != nil {
		t.Fatal(err)
	}
	u.expect("accepted", "completed hi")
}
