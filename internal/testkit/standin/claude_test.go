package standin

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func startClaude(t *testing.T, modes ...string) *pane {
	t.Helper()
	p := start(t, New(t, Claude, modes...))
	p.wait("ready", 1)
	p.until("the composer is drawn", func() bool { return strings.Contains(p.screen(), "❯\u00a0\n") })
	return p
}

type claudeStatus struct {
	PID                                                          int
	SessionID, Cwd, ProcStart, Version, Kind, Status, WaitingFor string
}

func (p *pane) claudeStatus() claudeStatus {
	p.t.Helper()
	b, err := os.ReadFile(filepath.Join(p.AgentHome(), "sessions", p.format("#{pane_pid}")+".json"))
	if err != nil {
		p.t.Fatal(err)
	}
	var s claudeStatus
	json.Unmarshal(b, &s) // a torn file is the zero status
	return s
}

func (p *pane) untilStatus(want, waitingFor string) {
	p.t.Helper()
	p.until("status "+want, func() bool { s := p.claudeStatus(); return s.Status == want && s.WaitingFor == waitingFor })
}

func (p *pane) untilRecords(want ...string) {
	p.t.Helper()
	var got []string
	p.until(fmt.Sprint("records ", want), func() bool {
		got = kinds(p.records())
		return len(got) >= len(want) && cmp.Equal(got[len(got)-len(want):], want)
	})
}

func TestClaudeShowsItsComposerAndItsStatusFileFromTheStart(t *testing.T) {
	p := startClaude(t)
	if got := p.format("#{cursor_flag} #{cursor_x} #{cursor_y} #{alternate_on} #{pane_title}"); got != "0 2 6 0 ✳ Claude Code" {
		t.Errorf("cursor flag, x, y, alternate screen, title: %q", got)
	}
	s := p.claudeStatus()
	if s.Status != "idle" || s.Kind != "interactive" || s.Cwd != p.Cwd || s.Version != ClaudeVersion || fmt.Sprint(s.PID) != p.format("#{pane_pid}") {
		t.Errorf("%+v", s)
	}
	if len(p.Logs()) != 0 {
		t.Error("there is a transcript before the first prompt")
	}
}

func TestClaudeRecordsATurnWithAnApprovedCommandInTheRealOrder(t *testing.T) {
	p := startClaude(t)
	p.submit("RUN:touch made.txt ;; SAY:demo finished")
	p.untilStatus("waiting", "permission prompt")
	p.until("the dialog is open", func() bool { return strings.Contains(p.screen(), "❯ 1. Yes\n") })
	p.untilRecords("user", "attachment", "assistant")
	p.key("1")
	p.wait("end", 1)
	p.untilStatus("idle", "")
	p.untilRecords("mode", "permission-mode", "file-history-snapshot", "user", "attachment", "assistant", "user", "assistant",
		"system/turn_duration", "ai-title")
	var parent any
	for i, r := range p.records() {
		if _, chained := r["parentUuid"]; !chained {
			continue
		}
		if r["parentUuid"] != parent {
			t.Errorf("record %d follows %v, not %v", i, r["parentUuid"], parent)
		}
		parent = r["uuid"]
	}
	if _, err := os.Stat(filepath.Join(p.Cwd, "made.txt")); err != nil {
		t.Error("the approved touch did nothing")
	}
	want := filepath.Join(p.AgentHome(), "projects", slug(p.Cwd), p.claudeStatus().SessionID+".jsonl")
	if got := p.Logs()[0]; got != want {
		t.Errorf("transcript %s, want %s", got, want)
	}
}

func TestClaudeEndsARefusedAnInterruptedAndAFailedTurnAsTheRealOneDoes(t *testing.T) {
	p := startClaude(t)
	p.submit("RUN:touch no.txt")
	p.untilStatus("waiting", "permission prompt")
	p.key("Escape")
	p.wait("decline", 1)
	p.untilRecords("assistant", "user", "user")
	last := p.records()[len(p.records())-1]
	if b, _ := json.Marshal(last["message"]); !strings.Contains(string(b), "[Request interrupted by user for tool use]") {
		t.Errorf("%s", b)
	}

	p.submit("STREAM:500@50")
	p.until("it streams", func() bool { return strings.Contains(p.screen(), "chunk 2 of 500") })
	p.key("Escape")
	p.wait("interrupt", 1)
	p.untilRecords("user", "assistant", "user")
	records := p.records()
	if m := records[len(records)-2]["message"].(map[string]any); m["model"] != "<synthetic>" {
		t.Errorf("%v", m)
	}

	p.submit("FAIL:400")
	p.wait("fail", 1)
	p.untilRecords("user", "assistant", "system/turn_duration")
	records = p.records()
	if r := records[len(records)-2]; r["isApiErrorMessage"] != true || r["apiErrorStatus"] != 400.0 {
		t.Errorf("%v", r)
	}
}

func TestClaudeGivesThePromptBackWhenItIsInterruptedBeforeTheFirstWord(t *testing.T) {
	p := startClaude(t)
	p.submit("SAY:one")
	p.wait("end", 1)
	p.untilRecords("system/turn_duration", "ai-title")
	p.submit("GATE:never ;; SAY:two")
	p.untilStatus("busy", "")
	p.untilRecords("file-history-snapshot", "user")
	p.key("Escape")
	p.wait("interrupt", 1)
	p.until("the prompt is back", func() bool { return strings.Contains(p.screen(), "❯\u00a0GATE:never ;; SAY:two") })
	before := len(p.records())
	p.submit("!")
	if n := len(p.records()); n != before {
		t.Errorf("%d records after the interruption", n-before)
	}
}

func TestClaudeQueuesWhatIsTypedWhileItWorks(t *testing.T) {
	p := startClaude(t)
	p.submit("GATE:g ;; SAY:first")
	p.untilStatus("busy", "")
	p.submit("SAY:second")
	p.wait("queue", 1)
	p.until("it is shown", func() bool { return strings.Contains(p.screen(), "❯\u00a0Press up to edit queued messages") })
	p.Release(t, "g")
	p.wait("end", 2)
	p.untilRecords("queue-operation", "file-history-snapshot", "user", "assistant", "system/turn_duration")
	var sources []any
	for _, r := range p.records() {
		if s := r["promptSource"]; s != nil {
			sources = append(sources, s)
		}
	}
	if d := cmp.Diff([]any{"typed", "queued"}, sources); d != "" {
		t.Error(d)
	}
}

func TestClaudeTakesExitShellAndSlashForWhatTheyAre(t *testing.T) {
	p := startClaude(t)
	p.submit("!echo hi")
	p.wait("shell", 1)
	p.untilRecords("user", "user", "assistant", "system/turn_duration")
	p.submit("/nosuch")
	p.wait("slash", 1)
	p.untilRecords("system/informational")
	p.submit("exit")
	p.wait("exit", 1)
	if _, err := os.Stat(filepath.Join(p.AgentHome(), "sessions", fmt.Sprint(p.wait("exit", 1).PID)+".json")); !os.IsNotExist(err) {
		t.Errorf("the status file after the end: %v", err)
	}
}

func TestClaudeAsksForTrustBeforeItHasAnyRecord(t *testing.T) {
	p := start(t, New(t, Claude, "trust-dialog"))
	p.until("the dialog is open", func() bool { return strings.Contains(p.screen(), "❯ 1. Yes, I trust this folder") })
	if found, _ := filepath.Glob(filepath.Join(p.AgentHome(), "sessions", "*")); len(found) != 0 {
		t.Errorf("status files %v", found)
	}
	p.key("Enter")
	p.wait("ready", 1)
}

// H8: after the answer comes an answer that is none.
func TestClaudeWritesASidechainAndABrokenRecordWhenToldTo(t *testing.T) {
	p := startClaude(t, "sidechain", "broken-record")
	p.submit("SAY:mine")
	p.wait("end", 1)
	p.untilRecords("assistant", "system/turn_duration", "assistant", "ai-title")
	b, err := os.ReadFile(p.Logs()[0])
	if err != nil || !strings.Contains(string(b), "{\"timestamp\":\"broken\n") {
		t.Errorf("no broken record: %v", err)
	}
}

func TestLongPastesAreFoldedByClaudeToo(t *testing.T) {
	p := startClaude(t)
	text := "SAY:ok\n" + strings.Repeat("one more line\n", 600) + "end"
	p.paste(text)
	p.until("it is folded", func() bool { return strings.Contains(p.screen(), "❯\u00a0[Pasted text #1 +601 lines]") })
	p.key("Enter")
	if e := p.wait("submit", 1); e.Text != text {
		t.Errorf("%d bytes arrived, want %d", len(e.Text), len(text))
	}
}
