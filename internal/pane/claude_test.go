package pane

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/agent-knock-knock/akk/internal/agent/claude/known"
	"github.com/agent-knock-knock/akk/internal/fault"
)

func itoa(n int) string { return strconv.Itoa(n) }

func TestClaudeHasASessionThatIsKnownInAdvance(t *testing.T) {
	d := newDesk(t, Claude)
	r := d.start()
	if starts := d.starts(); r.Mode != ModeInteractive || len(r.ThreadID) != 36 || !slices.Equal(starts[0].Args, []string{"--session-id", r.ThreadID}) {
		t.Errorf("%+v, %+v", r, starts)
	}
}

type hookFile struct {
	Hooks map[string][]struct {
		Hooks []struct{ Type, Command string }
	}
}

// run runs the hook of an event as the agent does, and fails if it says anything: what a
// PermissionRequest hook prints may decide.
func (h hookFile) run(t *testing.T, event string) {
	t.Helper()
	cmd := exec.Command("sh", "-c", h.Hooks[event][0].Hooks[0].Command)
	cmd.Stdin = strings.NewReader(`{"hook_event_name":"` + event + `","prompt":"a secret"}`)
	if out, err := cmd.CombinedOutput(); err != nil || len(out) != 0 {
		t.Errorf("%s: %v, said %q", event, err, out)
	}
}

func TestHooksWriteOneShortLineEachAndDecideNothing(t *testing.T) {
	d := newDesk(t, Claude)
	d.req.Hooks = true
	r := d.start()
	args := d.starts()[0].Args
	if len(args) != 4 || args[2] != "--settings" || filepath.Base(args[3]) != known.HookSettings {
		t.Fatalf("%q", args)
	}
	dir := filepath.Dir(args[3])
	for path, mode := range map[string]os.FileMode{dir: 0o700, args[3]: 0o600, filepath.Join(dir, known.HookEventLog): 0o600} {
		if st, err := os.Stat(path); err != nil || st.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", path, st, err)
		}
	}
	b, err := os.ReadFile(args[3])
	var h hookFile
	if err == nil {
		err = json.Unmarshal(b, &h)
	}
	if err != nil || len(h.Hooks) != len(known.HookEvents) {
		t.Fatalf("%v: %s", err, b)
	}
	events := func() string {
		b, err := os.ReadFile(filepath.Join(dir, known.HookEventLog))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for _, e := range []string{"UserPromptSubmit", "PermissionRequest", "Stop"} {
		h.run(t, e)
	}
	if got := events(); got != `{"event":"UserPromptSubmit"}`+"\n"+`{"event":"PermissionRequest"}`+"\n"+`{"event":"Stop"}`+"\n" {
		t.Errorf("%q", got)
	}
	h.run(t, "UserPromptSubmit") // a new turn begins the file anew
	if got := events(); got != `{"event":"UserPromptSubmit"}`+"\n" {
		t.Errorf("%q", got)
	}
	family := d.family(r.PaneID)
	d.tmux.Tmux("kill-pane", "-t", r.PaneID)
	d.gone(family)
	h.run(t, "Stop") // also when the directory is gone: a hook fails nothing
}

func TestSettingsOfThePersonAndHooksExcludeEachOther(t *testing.T) {
	d := newDesk(t, Claude)
	d.req.Hooks, d.req.Args = true, []string{"--settings", "mine.json"}
	if _, err := Start(t.Context(), d.req); !fault.Is(err, fault.Invalid) {
		t.Errorf("%v", err)
	}
	for _, args := range [][]string{{"-p", "hi"}, {"--print"}, {"mcp", "list"}, {"--model", "x", "--print"}} {
		d.req.Hooks, d.req.Args = false, args
		if _, err := Start(t.Context(), d.req); !fault.Is(err, fault.Invalid) {
			t.Errorf("%q: %v", args, err)
		}
	}
	if s := d.starts(); len(s) != 0 {
		t.Errorf("something ran: %+v", s)
	}
}

func TestAShellLineIsTheArgvAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.StringMatching(`[ -~\n\t\x{e9}'"$!*=~-]{0,12}`), 1, 4).Draw(t, "words")
		out, err := exec.Command("sh", "-c", shell(append([]string{"printf", `%s\0`}, words...)...)).Output()
		if err != nil || string(out) != strings.Join(words, "\x00")+"\x00" {
			t.Fatalf("%q became %q: %v", words, out, err)
		}
	})
}
