package compat

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func section(agent, version string) Section {
	return Section{Agent: agent, Date: time.Date(2026, 12, 2, 3, 4, 5, 0, time.UTC), Capabilities: []string{"found", "send", "watch"},
		Runs: []Run{
			{version, "pane", "remote, codex_socket", map[string]Cell{"found": {Yes, ""}, "send": {Degraded, "slow | very"}, "watch": {Untried, "no tool"}}},
			{version, "by hand", "embedded, keyboard", map[string]Cell{"found": {No, "not\nseen"}, "send": {Degraded, "slow | very"}}},
		}}
}

const want = `## codex

Run on 2026-12-02.

|  | 0.1.0 pane | 0.1.0 by hand |
| --- | --- | --- |
| mode, channel | remote, codex_socket | embedded, keyboard |
| found | yes | no (1) |
| send | degraded (2) | degraded (2) |
| watch | – (3) | – (4) |

1. not seen
2. slow \| very
3. no tool
4. this run ended before
`

func TestATableNamesEveryReasonOnce(t *testing.T) {
	if got := section("codex", "0.1.0").Render(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestARunOfOneAgentReplacesItsOwnSectionOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "docs", "C.md")
	for _, s := range []Section{section("codex", "0.1.0"), section("claude", "2.0.0"), section("codex", "0.2.0"), section("codex", "0.1.0")} {
		if err := Put(path, s); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(b); got != intro+"\n"+want+"\n"+section("claude", "2.0.0").Render() || strings.Contains(got, "0.2.0") {
		t.Errorf("got\n%s", got)
	}
}
