package profile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-knock-knock/akk/internal/fault"
)

func lookupOf(env map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		v, ok := env[name]
		return v, ok
	}
}

func TestTheTrustedSessionIsTakenOnlyWhenItIsClean(t *testing.T) {
	p := mustParse(t, nil)
	const name = "MY_AGENT_SESSION_ID"
	good := []string{"s", "session id with blanks", "sité-7", strings.Repeat("é", 1024)}
	for _, value := range good {
		got, err := ResolveSession(p, lookupOf(map[string]string{name: value}))
		if err != nil || got != value {
			t.Errorf("%.20q: %v", value, err)
		}
	}
	bad := []string{"", " canary", "canary ", "canary\n", "\tcanary", "can\x00ary", "can\x1bary", "can\u0085ary", "canary\xff", strings.Repeat("canary", 171)}
	for _, value := range bad {
		_, err := ResolveSession(p, lookupOf(map[string]string{name: value}))
		if fault.CodeOf(err) != CodeSession || strings.Contains(err.Error(), "canary") || !strings.Contains(err.Error(), name) {
			t.Errorf("%.20q: %v", value, err)
		}
	}
	if _, err := ResolveSession(p, lookupOf(nil)); fault.CodeOf(err) != CodeSession {
		t.Errorf("unset: %v", err)
	}
}

// program writes an executable file and returns its path.
func program(t *testing.T, dir, name, text string, mode os.FileMode) string {
	t.Helper()
	path := write(t, filepath.Join(dir, name), []byte(text))
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTheCallbackProgramIsReadyOnlyIfItCanBeStartedWithoutAShell(t *testing.T) {
	dir := realDir(t)
	native := program(t, dir, "native", "\x7fELF", 0o700)
	program(t, dir, "sh", "\x7fELF", 0o700)
	program(t, dir, "env-script", "#!/usr/bin/env node\n", 0o700)
	program(t, dir, "env-blanks", "#! \t/usr/bin/env -S node\n", 0o700)
	program(t, dir, "env-only", "#!/usr/bin/env", 0o700)
	program(t, dir, "absolute-script", "#!/usr/bin/envoy x\n/usr/bin/env", 0o700)
	program(t, dir, "empty", "", 0o700)
	program(t, dir, "plain", "\x7fELF", 0o600)
	if err := os.Mkdir(filepath.Join(dir, "applets"), 0o700); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{"applets/sh": "../native", "applet": "applets/sh", "link": "native", "shell-link": "sh", "link2": "shell-link", "dangling": "nowhere", "bin-sh": "/bin/sh"} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name  string
		path  bool // PATH in the allowlist
		ready bool
	}{
		{"native", false, true}, {"link", false, true}, {"absolute-script", false, true}, {"empty", false, true},
		{"env-script", true, true}, {"env-script", false, false},
		{"env-blanks", true, true}, {"env-blanks", false, false},
		{"env-only", true, true}, {"env-only", false, false},
		{"plain", true, false}, {"folder", true, false}, {"absent", true, false}, {"dangling", true, false},
		{"applet", true, false}, // a link named sh to a program of another name
		{"shell-link", true, false}, {"link2", true, false}, {"bin-sh", true, false}, {"native/x", true, false},
	}
	for _, c := range cases {
		t.Run(fmt.Sprintf("%s PATH %v", strings.ReplaceAll(c.name, "/", "_"), c.path), func(t *testing.T) {
			allow := []any{"X"}
			if c.path {
				allow = append(allow, "PATH")
			}
			p := mustParse(t, map[string]any{"callback/executable": filepath.Join(dir, c.name), "callback/environment/allow": allow})
			err := CheckExecutable(p)
			if c.ready != (err == nil) || err != nil && fault.CodeOf(err) != CodeExecutable {
				t.Errorf("ready %v, want %v: %v", err == nil, c.ready, err)
			}
		})
	}
	p := mustParse(t, map[string]any{"callback/executable": native})
	p.Callback.Executable = "/bin/sh" // a caller that built the value by hand
	if err := CheckExecutable(p); fault.CodeOf(err) != CodeInvalid {
		t.Errorf("a hand-made Profile must not pass: %v", err)
	}
}

func TestAdmitChecksInOrderAndNeverFormatsTheSession(t *testing.T) {
	dir := realDir(t)
	ready := program(t, dir, "agent", "\x7fELF", 0o700)
	load := func(edits map[string]any) string { return write(t, filepath.Join(dir, "p.json"), edited(t, edits)) }
	env := lookupOf(map[string]string{"MY_AGENT_SESSION_ID": "canary-session"})

	admitted, err := Admit(load(map[string]any{"callback/executable": ready}), "my-agent", "1.8.0", env)
	if err != nil || admitted.Session != "canary-session" {
		t.Fatalf("%v", err)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		if text := fmt.Sprintf(verb, admitted); strings.Contains(text, "canary") || !strings.Contains(text, "my-agent-command") {
			t.Errorf("%s shows %q", verb, text)
		}
	}
	// Each step leaves every later check broken, so the order is proved.
	broken := map[string]any{"callback/executable": filepath.Join(dir, "absent"), "controllerContext/scope": ScopeRouteBound}
	steps := []struct {
		name, host string
		edits      map[string]any
		lookup     func(string) (string, bool)
		want       fault.Code
	}{
		{"profile", "other", map[string]any{"version": 2}, lookupOf(nil), CodeInvalid},
		{"host", "other", broken, lookupOf(nil), CodeIncompatible},
		{"scope", "my-agent", broken, lookupOf(nil), CodeScope},
		{"session", "my-agent", map[string]any{"callback/executable": filepath.Join(dir, "absent")}, lookupOf(nil), CodeSession},
		{"executable", "my-agent", map[string]any{"callback/executable": filepath.Join(dir, "absent")}, env, CodeExecutable},
	}
	for _, s := range steps {
		if _, err := Admit(load(s.edits), s.host, "1.8.0", s.lookup); fault.CodeOf(err) != s.want {
			t.Errorf("%s: code %q, want %q", s.name, fault.CodeOf(err), s.want)
		}
	}
}

func TestARouteBoundScopeNamesTheConnectorAsTheWayOut(t *testing.T) {
	p := mustParse(t, map[string]any{"controllerContext/scope": ScopeRouteBound})
	_, msg, hint := fault.Public(p.CheckStandalone())
	if !strings.Contains(msg, ScopeRouteBound) || !strings.Contains(msg, "not supported") || !strings.Contains(hint, "Host-native connector") {
		t.Errorf("%q (%q)", msg, hint)
	}
}
