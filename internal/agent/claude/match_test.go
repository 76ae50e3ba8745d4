package claude

import (
	"strings"
	"testing"

	"github.com/agent-knock-knock/akk/internal/procinfo"
)

func TestOnlyTheInteractiveProgramIsMatched(t *testing.T) {
	for args, want := range map[string]bool{
		"claude":                           true,
		"/home/u/node_modules/.bin/claude": true,
		"/home/u/node_modules/@anthropic-ai/x/bin/claude.exe":                        true,
		"/home/u/.local/share/claude/versions/2.1.197":                               true,
		"node /usr/lib/node_modules/@anthropic-ai/claude-code/cli.js":                true,
		"node --max-old-space-size=8192 /usr/lib/node_modules/x/claude-code/cli.mjs": true,
		"node /usr/local/bin/claude":                                                 true,
		"claude --model opus":                                                        true,
		"claude --dangerously-skip-permissions":                                      true,
		"claude --session-id 1111 --settings /x/mcp":                                 true,
		"claude --model mcp":                                                         true, // a value, not a subcommand
		"claude fix the doctor":                                                      true, // a first prompt
		"claude -- mcp":                                                              true,
		"claude --resume":                                                            true,
		"claude --resume 11111111-2222-3333-4444-555555555555":                       true,
		"claude -c":                  true,
		"claude -p hi":               false,
		"claude --print":             false,
		"claude --model opus -p":     false,
		"claude --print=true":        false,
		"claude mcp serve":           false,
		"claude --debug mcp":         false,
		"claude doctor":              false,
		"claude --version":           false,
		"claude -v":                  false,
		"claude --help":              false,
		"claude update":              false,
		"claude agents --json --all": false,
		"claude plugin list":         false,
		"claude plugins":             false,
		"claude setup-token":         false,
		"claude --bg do it":          false,
		// what the agents view of 2.1.197 starts behind the pane
		"claude.exe daemon run --origin transient --spawned-by {}":                false,
		"claude.exe --bg-pty-host /tmp/x.sock 200 50 -- claude.exe --bg-spare /y": false,
		"claude.exe --bg-spare /tmp/x.claim.sock":                                 false,
		"node /usr/lib/node_modules/x/claude-code/cli.js -p":                      false,
		"node server.js claude":                                                   false,
		"bash -c claude":                                                          false,
		"vim claude":                                                              false,
		"claude-monitor":                                                          false,
		"codex":                                                                   false,
		"":                                                                        false,
	} {
		var p procinfo.Process
		if args != "" {
			p.Args = strings.Fields(args)
		}
		if got := New(Options{}).Match(p); got != want {
			t.Errorf("%q: %v", args, got)
		}
	}
}

func TestNativeInstallIsMatchedByItsExecutable(t *testing.T) {
	p := procinfo.Process{Exe: "/home/u/.local/share/claude/versions/2.1.197", Args: []string{"cc"}}
	if !New(Options{}).Match(p) {
		t.Error("not matched")
	}
	p.Args = []string{"cc", "-p"}
	if New(Options{}).Match(p) {
		t.Error("print mode matched")
	}
}

// Every row was seen on Claude Code 2.1.197.
func TestProjectSlugIsTheAgentsOwn(t *testing.T) {
	long := "/tmp/akkclb7cn0chl/" + strings.Repeat("a", 200) + "/" + strings.Repeat("a", 60)
	for cwd, want := range map[string]string{
		"/tmp/akkclb7cn0chl/a b":           "-tmp-akkclb7cn0chl-a-b",
		"/tmp/akkclb7cn0chl/dot.ted":       "-tmp-akkclb7cn0chl-dot-ted",
		"/tmp/akkclb7cn0chl/under_score":   "-tmp-akkclb7cn0chl-under-score",
		"/tmp/akkclb7cn0chl/\u00fcn\u00ef": "-tmp-akkclb7cn0chl--n-",
		"/tmp/akkclb7cn0chl/日本":            "-tmp-akkclb7cn0chl---",
		"/tmp/akkclb7cn0chl/CamelCase":     "-tmp-akkclb7cn0chl-CamelCase",
		"/tmp/akkclb7cn0chl/e\u0301dec":    "-tmp-akkclb7cn0chl-e-dec",
		"/tmp/akkclb7cn0chl/emo🙂ji":        "-tmp-akkclb7cn0chl-emo--ji",
		long:                               "-tmp-akkclb7cn0chl-" + strings.Repeat("a", 181) + "-119f0m",
	} {
		if got := projectSlug(cwd); got != want {
			t.Errorf("%q: %q, want %q", cwd, got, want)
		}
	}
}
