package claude

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/agent-knock-knock/akk/internal/agent/claude/known"
	"github.com/agent-knock-knock/akk/internal/procinfo"
	"github.com/agent-knock-knock/akk/internal/turn"
)

// hooked gives the rig's process a settings file of ours in its arguments, and returns the
// file of its events.
func hooked(r *rig, args ...string) string {
	r.t.Helper()
	dir := r.t.TempDir()
	events := filepath.Join(dir, known.HookEventLog)
	if err := os.WriteFile(events, nil, 0o600); err != nil {
		r.t.Fatal(err)
	}
	if args == nil {
		args = []string{"claude", "--session-id", thread, known.SettingsFlag, filepath.Join(dir, known.HookSettings)}
	}
	r.a.process = func(int) (procinfo.Process, error) { return procinfo.Process{Args: args}, nil }
	return events
}

func TestAHookWakesTheFollowerAndProvesNothing(t *testing.T) {
	r := newRig(t)
	events := hooked(r)
	r.appendTo(events, `{"event":"SessionEnd"}`+"\n") // from before: old news
	u := r.follow(r.anchor("a task"))
	r.append(prompt("u1", "", "a task"))
	u.until("acceptance", func() bool { return u.has(turn.ObsAccepted, "") })
	if u.has(turn.ObsActivity, "SessionEnd") {
		t.Error("an event from before the anchor is news")
	}
	r.appendTo(events, `{"event":"PermissionRequest"}`+"\n")
	u.until("the hook, without the clock", func() bool { return u.has(turn.ObsActivity, "PermissionRequest") })
	r.appendTo(events, `{"event":"Stop"}`+"\n")
	u.until("the hook, without the clock", func() bool { return u.has(turn.ObsActivity, "Stop") })
	u.settled(3)
	u.expect("accepted") // Stop comes before the answer is on disk, and is no completion
	r.append(answer("a1", "u1", "done") + endOf("s1", "a1"))
	if err := u.ended(); err != nil {
		t.Fatal(err)
	}
	u.expect("accepted", "completed done")
}

func TestAnEventsFileThatMakesNoSenseSaysNothing(t *testing.T) {
	r := newRig(t)
	events := hooked(r)
	u := r.follow(r.anchor("a task"))
	for _, line := range []string{"{\"event\":\"RmRf\"}\n", "{\"event\":\"Stop\"", "no json\n", "\n\n", "{\"event\":7}\n"} {
		r.appendTo(events, line)
		u.settled(1)
	}
	if err := os.Remove(events); err != nil {
		t.Fatal(err)
	}
	u.settled(2)
	for _, o := range u.seen() {
		if o.Source == sourceHook {
			t.Errorf("%+v", o)
		}
	}
}

func TestOnlyASettingsFileOfOursNamesAnEventsFile(t *testing.T) {
	r := newRig(t)
	dir := filepath.Dir(hooked(r))
	ours := filepath.Join(dir, known.HookSettings)
	for _, c := range []struct {
		args []string
		want bool
	}{
		{[]string{"claude", "--settings", ours}, true},
		{[]string{"claude", "--settings=" + ours, "go on"}, true},
		{[]string{"claude", "--settings"}, false},
		{[]string{"claude", "--settings", filepath.Join(dir, "settings.json")}, false},
		{[]string{"claude", "--settings", known.HookSettings}, false},
		{[]string{"claude", "--settings", filepath.Join(t.TempDir(), known.HookSettings)}, false}, // no events beside it
		{[]string{"claude", ours}, false},
		{nil, false},
	} {
		r.a.process = func(int) (procinfo.Process, error) { return procinfo.Process{Args: c.args}, nil }
		if got := r.identify().Extra[extraEvents]; (got != "") != c.want {
			t.Errorf("%q: %q", c.args, got)
		}
	}
}
