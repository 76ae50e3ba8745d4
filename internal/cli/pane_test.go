package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/agent-knock-knock/akk/internal/cli"
	"github.com/agent-knock-knock/akk/internal/pane"
)

// paneRun is one command line of pane with a starter that starts nothing.
type paneRun struct {
	result
	asked    []pane.Request
	attached [][]string
}

func runPane(t *testing.T, tty bool, args ...string) paneRun {
	t.Helper()
	var r paneRun
	var stdout, stderr bytes.Buffer
	deps := cli.Deps{
		IsTerminal: func(io.Writer) bool { return tty },
		Pane: func(_ context.Context, q pane.Request) (pane.Report, error) {
			r.asked = append(r.asked, q)
			return pane.Report{Agent: q.Agent, Version: "1.2.3", Mode: "remote", Session: "codex", Workspace: "/w", Commands: []string{"tmux new", "codex app-server"},
				Notes: []string{"less than it could be"}, Attach: "tmux attach-session -t '=codex'", AttachArg: []string{"tmux", "attach"}}, nil
		},
		Attach: func(_ context.Context, argv []string) error { r.attached = append(r.attached, argv); return nil },
	}
	exit := cli.Main(t.Context(), append([]string{"pane"}, args...), strings.NewReader(""), &stdout, &stderr, deps)
	r.result = result{stdout.String(), stderr.String(), exit}
	return r
}

func TestPaneTellsAPersonWhatWasRunAndHowToAttach(t *testing.T) {
	r := runPane(t, true, "codex", "--name", "n", "--dir", "/d", "--tmux-socket", "/s", "--", "-m", "x", "--", "hi")
	want := "codex 1.2.3 runs in the tmux session codex, mode remote, in /w\nnote: less than it could be\n\n" +
		"What was run:\n  tmux new\n    codex app-server\n\nAttach:\n  tmux attach-session -t '=codex'\n"
	if r.exit != 0 || r.stderr != "" || r.stdout != want || len(r.attached) != 0 {
		t.Errorf("%+v", r)
	}
	q := r.asked[0]
	if q.Agent != "codex" || q.Name != "n" || q.Dir != "/d" || q.Socket != "/s" || !slices.Equal(q.Args, []string{"-m", "x", "--", "hi"}) || q.Self == "" || len(q.Env) == 0 || q.Hooks {
		t.Errorf("asked for %+v", q)
	}
}

func TestPaneIsOneDocumentForAProgram(t *testing.T) {
	for _, r := range []paneRun{runPane(t, false, "claude", "--hooks"), runPane(t, true, "claude", "--hooks", "--json")} {
		var doc map[string]any
		if err := json.Unmarshal([]byte(r.stdout), &doc); err != nil || r.exit != 0 || doc["schema"] != "agent-knock-knock/pane" || doc["agent"] != "claude" || !r.asked[0].Hooks {
			t.Errorf("%v: %+v", err, r)
		}
	}
}

func TestPaneAttachesWhenAsked(t *testing.T) {
	if r := runPane(t, true, "codex", "--attach"); r.exit != 0 || len(r.attached) != 1 {
		t.Errorf("%+v", r)
	}
}

func TestPaneRefusesAWrongCommandLineBeforeAnythingStarts(t *testing.T) {
	for _, line := range []string{"", "gemini", "codex claude", "codex --name a --name b", "codex --dir=", "codex --attach", "-- codex", "codex -m x"} {
		r := runPane(t, false, strings.Fields(line)...)
		refused(t, r.result, "usage")
		if len(r.asked) != 0 {
			t.Errorf("%q: asked for %+v", line, r.asked)
		}
	}
}

func TestPaneHelpHasExamples(t *testing.T) {
	r := runPane(t, true, "--help")
	if r.exit != 0 || !strings.Contains(r.stdout, "agent-knock-knock pane claude --name review --hooks") {
		t.Errorf("%+v", r)
	}
}
