package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/agent-knock-knock/akk/internal/cli"
	"github.com/agent-knock-knock/akk/internal/profile"
)

// refused proves a failure: exit 1, no stdout, one line on stderr with the code.
func refused(t *testing.T, r result, code string) {
	t.Helper()
	if r.exit != 1 || r.stdout != "" {
		t.Errorf("exit %d, stdout %q", r.exit, r.stdout)
	}
	if !strings.HasPrefix(r.stderr, "agent-knock-knock: "+code+": ") || strings.Count(r.stderr, "\n") != 1 || !strings.HasSuffix(r.stderr, ")\n") {
		t.Errorf("stderr is not one line with code %s and a hint: %q", code, r.stderr)
	}
}

func TestCase02TheExampleAsAFileValidatesAndTheListIsEmpty(t *testing.T) {
	w := newWorld(t)
	example := w.run(t, "host-profile", "example")
	if example.exit != 0 || example.stderr != "" || example.stdout != string(profile.Starter()) {
		t.Fatalf("example: %+v", example)
	}
	w.file(t, "my-agent.json", []byte(example.stdout))
	r := w.run(t, "host-profile", "validate", "./my-agent.json", "--host", "my-agent", "--host-version", "1.8.0")
	var v map[string]any
	if err := json.Unmarshal([]byte(r.stdout), &v); err != nil || r.exit != 0 || r.stderr != "" {
		t.Fatalf("validate: %+v %v", r, err)
	}
	if v["ok"] != true || v["compatibility_checked"] != true || v["selection"] != filepath.Join(w.dir, "my-agent.json") {
		t.Errorf("validate says %v", v)
	}
	list := w.run(t, "host-profile", "list")
	var l struct {
		Schema   string
		Version  int
		Profiles []any
	}
	if err := json.Unmarshal([]byte(list.stdout), &l); err != nil || list.exit != 0 || l.Profiles == nil || len(l.Profiles) != 0 || l.Schema != "agent-knock-knock/host-profile-list" || l.Version != 1 {
		t.Errorf("list: %+v %v", list, err)
	}
}

func TestCase03AnIncompleteOrAmbiguousCommandLineIsRefused(t *testing.T) {
	w := newWorld(t)
	w.starter(t, "p.json")
	for _, line := range []string{
		"host-profile validate p.json --host my-agent",
		"host-profile validate p.json --host-version 1.8.0",
		"host-profile validate p.json p.json",
		"host-profile validate p.json --host my-agent --host my-agent --host-version 1.8.0",
		"host-profile validate",
		"host-profile",
		"host-profile validat p.json",
		"host-profile list p.json",
		"host-profile example p.json",
		"host-profile validate p.json --hots my-agent",
		"doctor --host-profile p.json --host my-agent",
		"doctor --host-profile p.json --host-version 1.8.0",
		"doctor --host my-agent --host-version 1.8.0",
		"doctor",
		"doctor p.json --host-profile p.json --host my-agent --host-version 1.8.0",
		"host-bridge --profile p.json --host my-agent",
		"host-bridge --host my-agent --host-version 1.8.0",
		"host-bridge --profile p.json --host my-agent --host-version",
		"host-bridge --profile p.json --profile p.json --host my-agent --host-version 1.8.0",
		"host-bridge --profile p.json --host my-agent --host-version 1.8.0 --log-level loud",
		"version now",
		"help nothing",
		"nothing",
		"",
	} {
		t.Run(line, func(t *testing.T) { refused(t, w.run(t, strings.Fields(line)...), "usage") })
	}
}

func TestCase14DoctorExitsOneWithItsReportAndNeverTheSession(t *testing.T) {
	w := newWorld(t)
	w.starter(t, "p.json")
	args := []string{"doctor", "--host-profile", "p.json", "--host", "my-agent", "--host-version", "1.8.0"}
	r := w.run(t, args...)
	if r.exit != 1 || !strings.Contains(r.stdout, `"ok": false`) || !strings.HasPrefix(r.stderr, "agent-knock-knock: doctor_failed: 1 of 4 checks failed: controller_context") {
		t.Errorf("session unset: %+v", r)
	}
	for value, exit := range map[string]int{"canary-session": 0, " canary-session": 1} {
		w.env["MY_AGENT_SESSION_ID"], w.env["MY_AGENT_TOKEN"] = value, "canary-token"
		r := w.run(t, args...)
		if r.exit != exit || strings.Contains(r.stdout+r.stderr, "canary") {
			t.Errorf("session %q: %+v", value, r)
		}
		w.env["TEST_TTY"] = ""
		if r := w.run(t, args...); r.exit != exit || strings.Contains(r.stdout+r.stderr, "canary") {
			t.Errorf("session %q on a terminal: %+v", value, r)
		}
		delete(w.env, "TEST_TTY")
	}
}

func TestCase15ARouteBoundProfileValidatesAndTheBridgeRefusesIt(t *testing.T) {
	w := newWorld(t)
	w.env["MY_AGENT_SESSION_ID"] = "canary-session"
	w.starter(t, "p.json", `"driver": "environment_v1"`, `"driver": "environment_v1", "scope": "route_bound_v1"`)
	r := w.run(t, "host-profile", "validate", "p.json")
	if r.exit != 0 || !strings.Contains(r.stdout, `"standalone_bridge_compatible": false`) || !strings.Contains(r.stdout, `"controller_context_scope": "route_bound_v1"`) {
		t.Errorf("validate: %+v", r)
	}
	r = w.run(t, "doctor", "--host-profile", "p.json", "--host", "my-agent", "--host-version", "1.8.0")
	if r.exit != 1 || !strings.Contains(r.stdout, `"name": "standalone_bridge_scope"`) {
		t.Errorf("doctor: %+v", r)
	}
	r = w.run(t, "host-bridge", "--profile", "p.json", "--host", "my-agent", "--host-version", "1.8.0")
	refused(t, r, string(profile.CodeScope))
	if !strings.Contains(r.stderr, "route_bound_v1") || !strings.Contains(r.stderr, "Host-native connector") {
		t.Errorf("host-bridge: %q", r.stderr)
	}
}

func TestTheBridgeStartsOnlyAfterEveryCheck(t *testing.T) {
	good := "host-bridge --profile p.json --host my-agent --host-version 1.8.0"
	cases := []struct {
		name, line, code string
		edit             []string
		session          string
	}{
		{"no such profile", "host-bridge --profile q.json --host my-agent --host-version 1.8.0", "profile_unreadable", nil, "s"},
		{"unknown built-in", "host-bridge --profile builtin-q --host my-agent --host-version 1.8.0", "profile_unknown", nil, "s"},
		{"invalid profile", good, "profile_invalid", []string{`"version": 1`, `"version": 2`}, "s"},
		{"another host", "host-bridge --profile p.json --host other --host-version 1.8.0", "host_incompatible", nil, "s"},
		{"another version", "host-bridge --profile p.json --host my-agent --host-version 2.0.0", "host_incompatible", nil, "s"},
		{"no session", good, "controller_session", nil, ""},
		{"no program", good, "callback_not_ready", []string{"bin/my-agent", "bin/absent"}, "s"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.starter(t, "p.json")
			if c.edit != nil {
				data, err := os.ReadFile("p.json")
				if err != nil {
					t.Fatal(err)
				}
				w.file(t, "p.json", []byte(strings.NewReplacer(c.edit...).Replace(string(data))))
			}
			if c.session != "" {
				w.env["MY_AGENT_SESSION_ID"] = c.session
			}
			refused(t, w.run(t, strings.Fields(c.line)...), c.code)
		})
	}
}

func TestEveryCommandHasHelpWithAnExample(t *testing.T) {
	w := newWorld(t)
	var visit func(cmd *cobra.Command, path []string)
	visit = func(cmd *cobra.Command, path []string) {
		if cmd.Example == "" || cmd.Short == "" {
			t.Errorf("%s has no example or no summary", cmd.CommandPath())
		}
		r := w.run(t, append(path, "--help")...)
		if r.exit != 0 || r.stderr != "" || !strings.Contains(r.stdout, "Examples:") {
			t.Errorf("%v --help: %+v", path, r)
		}
		if again := w.run(t, append([]string{"help"}, path...)...); again.stdout != r.stdout || again.exit != 0 {
			t.Errorf("help %v differs from --help: %+v", path, again)
		}
		for _, sub := range cmd.Commands() {
			visit(sub, append(append([]string{}, path...), sub.Name()))
		}
	}
	visit(cli.New(cli.Deps{}), nil)
	for _, name := range []string{"host-bridge", "list"} {
		if r := w.run(t, name, "--help"); r.exit != 0 || !strings.Contains(r.stdout, "Examples:") {
			t.Errorf("%s --help: %+v", name, r)
		}
	}
}

// brokenPipe is a stdout that nobody reads.
type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, os.ErrClosed }

func TestAStdoutThatCannotBeWrittenIsAFailure(t *testing.T) {
	for _, args := range [][]string{{"version"}, {"version", "--json"}, {"host-profile", "example"}, {"host-profile", "list"}} {
		var stderr strings.Builder
		if exit := cli.Main(t.Context(), args, strings.NewReader(""), brokenPipe{}, &stderr, cli.Deps{}); exit != 1 || !strings.HasPrefix(stderr.String(), "agent-knock-knock: unavailable: ") {
			t.Errorf("%v: exit %d, stderr %q", args, exit, stderr.String())
		}
	}
}
