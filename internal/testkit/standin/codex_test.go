package standin

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func startCodex(t *testing.T, modes ...string) *pane {
	t.Helper()
	s := New(t, Codex, modes...)
	s.ThreadTitle(t)
	p := start(t, s)
	p.wait("ready", 1)
	p.until("the composer is drawn", func() bool { return strings.Contains(p.screen(), "› Ask Codex to do anything") })
	return p
}

func TestCodexShowsItsComposerAsTheRealScreenDoes(t *testing.T) {
	p := startCodex(t)
	if got := p.format("#{cursor_flag} #{cursor_x} #{cursor_y} #{alternate_on} #{pane_current_command}"); got != "1 2 26 1 codex" {
		t.Errorf("cursor flag, x, y, alternate screen, command: %q", got)
	}
	if title := p.format("#{pane_title}"); !strings.HasPrefix(title, "Ready | 0") || !strings.HasSuffix(title, "...") {
		t.Errorf("title %q", title)
	}
	styled := p.tmux("capture-pane", "-p", "-e", "-t", "s")
	if !strings.Contains(styled, "\x1b[2mAsk Codex to do anything") {
		t.Error("the placeholder is not dim")
	}
}

func TestCodexHoldsItsWriterLockFromTheStartAndItsRolloutFromTheFirstPromptOn(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("open files are listed by /proc, which only Linux has")
	}
	p := startCodex(t)
	files := func() (locks, rollouts int) {
		fds, err := filepath.Glob("/proc/" + p.format("#{pane_pid}") + "/fd/*")
		if err != nil || len(fds) == 0 {
			t.Fatalf("the stand-in's open files cannot be listed: %v", err)
		}
		for _, fd := range fds {
			target, _ := os.Readlink(fd)
			switch {
			case strings.Contains(target, "/thread-writer-locks/"):
				locks++
			case strings.Contains(target, "/rollout-"):
				rollouts++
			}
		}
		return locks, rollouts
	}
	if l, r := files(); l != 1 || r != 0 {
		t.Fatalf("before the first prompt: %d locks, %d rollouts", l, r)
	}
	p.submit("SAY:hello")
	p.wait("end", 1)
	if l, r := files(); l != 1 || r != 1 {
		t.Fatalf("after the first prompt: %d locks, %d rollouts", l, r)
	}
}

// The order is that of the recorded rollout of Codex 0.171.
func TestCodexRecordsATurnWithAnApprovedCommandInTheRealOrder(t *testing.T) {
	p := startCodex(t)
	p.submit("RUN:touch made.txt ;; SAY:demo finished")
	p.until("the dialog is open", func() bool { return strings.Contains(p.screen(), "Press enter to confirm or esc to cancel") })
	if got := p.format("#{cursor_flag} #{pane_title}"); !strings.HasPrefix(got, "0 [ ! ] Action Required | ") {
		t.Errorf("in the dialog: %q", got)
	}
	p.key("y")
	p.wait("end", 1)
	want := []string{"session_meta", "event_msg/task_started", "response_item/message", "response_item/message", "world_state",
		"turn_context", "event_msg/thread_settings_applied", "response_item/message", "event_msg/item_completed/UserMessage",
		"response_item/function_call", "token_usage_record", "event_msg/item_completed/CommandExecution",
		"response_item/function_call_output", "event_msg/token_count", "event_msg/item_completed/AgentMessage",
		"response_item/message", "token_usage_record", "event_msg/token_count", "event_msg/task_complete"}
	if d := cmp.Diff(want, kinds(p.records())); d != "" {
		t.Error(d)
	}
	last := p.records()[len(want)-1]["payload"].(map[string]any)
	if last["last_agent_message"] != "demo finished" || last["error"] != nil {
		t.Errorf("end of the turn: %v", last)
	}
	if _, err := os.Stat(filepath.Join(p.Cwd, "made.txt")); err != nil {
		t.Error("the approved touch did nothing")
	}
	p.until("the screen is done", func() bool { return strings.Contains(p.screen(), "Worked for") })
}

func TestCodexLosesAPasteIntoADialogAndEnterApproves(t *testing.T) {
	p := startCodex(t)
	p.submit("RUN:touch made.txt ;; SAY:done1")
	p.until("the dialog is open", func() bool { return strings.Contains(p.screen(), "Press enter to confirm") })
	p.submit("SAY:lost")
	p.wait("approve", 1)
	p.wait("end", 1)
	for _, e := range p.EventLog(t) {
		if e.Text == "SAY:lost" {
			t.Errorf("the paste into the dialog became %v", e)
		}
	}
}

func TestCodexEndsARefusedATakenBackAndAFailedTurnAsTheRealOneDoes(t *testing.T) {
	p := startCodex(t)
	tail := func(n int) []string { k := kinds(p.records()); return k[max(0, len(k)-n):] }

	p.submit("RUN:touch no.txt")
	p.until("the dialog is open", func() bool { return strings.Contains(p.screen(), "Press enter to confirm") })
	p.key("Escape")
	p.wait("decline", 1)
	p.until("turn_aborted", func() bool { return tail(1)[0] == "event_msg/turn_aborted" })
	if d := cmp.Diff([]string{"response_item/function_call_output", "event_msg/token_count", "response_item/message", "event_msg/turn_aborted"}, tail(4)); d != "" {
		t.Error(d)
	}

	p.submit("GATE:never")
	p.wait("submit", 2)
	p.until("it works", func() bool { return strings.Contains(p.screen(), "esc to interrupt") })
	p.key("Escape")
	p.wait("interrupt", 1)
	p.until("interrupted", func() bool { return strings.Contains(p.format("#{pane_title}"), "Ready") })
	if got := tail(1)[0]; got != "event_msg/turn_aborted" {
		t.Errorf("after Escape: %s", got)
	}

	p.submit("FAIL:500")
	p.wait("fail", 1)
	records := p.records()
	last := records[len(records)-1]["payload"].(map[string]any)
	if last["type"] != "task_complete" || last["last_agent_message"] != nil || last["error"].(map[string]any)["codex_error_info"] != "internal_server_error" {
		t.Errorf("a failed turn ends with %v", last)
	}
}

func TestCodexSteersOnEnterAndQueuesOnTab(t *testing.T) {
	p := startCodex(t)
	p.submit("GATE:never ;; SAY:first")
	p.wait("submit", 1)
	p.submit("SAY:second")
	p.wait("steer", 1)
	p.wait("end", 1)
	turns := map[any]bool{}
	var texts []string
	for _, r := range p.records() {
		pl := r["payload"].(map[string]any)
		if it, ok := pl["item"].(map[string]any); ok && it["type"] == "UserMessage" {
			turns[pl["turn_id"]] = true
			texts = append(texts, it["content"].([]any)[0].(map[string]any)["text"].(string))
		}
	}
	if len(turns) != 1 || len(texts) != 2 {
		t.Errorf("steering made turns %v with messages %v", turns, texts)
	}

	p.submit("GATE:tab ;; SAY:third")
	p.wait("submit", 2)
	p.paste("SAY:fourth")
	p.until("the draft is shown", func() bool { return strings.Contains(p.screen(), "tab to queue message") })
	p.key("Tab")
	p.wait("queue", 1)
	p.Release(t, "tab")
	p.wait("end", 3)
}

func TestCodexTakesShellAndSlashCommandsForWhatTheyAre(t *testing.T) {
	p := startCodex(t)
	p.submit("!echo hi")
	p.wait("shell", 1)
	p.untilRecords("session_meta", "event_msg/task_started", "event_msg/item_completed/CommandExecution", "response_item/message", "event_msg/task_complete")
	p.submit("/nosuch x")
	p.wait("slash", 1)
	p.until("the text stays", func() bool { return strings.Contains(p.screen(), "› /nosuch x") })
	p.key("C-c")
	p.submit(" !echo plain")
	if e := p.wait("submit", 1); e.Text != "!echo plain" {
		t.Errorf("a leading blank should make it plain text: %q", e.Text)
	}
}

// T01: Enter right after fast typing is text for Codex.
func TestCodexTakesEnterAfterFastTypingForANewline(t *testing.T) {
	p := startCodex(t)
	p.tmux("send-keys", "-t", "s", "-l", "SAY:typed", ";", "send-keys", "-t", "s", "Enter")
	p.until("the draft is shown", func() bool { return strings.Contains(p.screen(), "› SAY:typed") })
	for _, e := range p.EventLog(t) {
		if e.Ev == "submit" {
			t.Fatal("it was submitted")
		}
	}
}

func TestLongPastesAreFoldedAndArriveWhole(t *testing.T) {
	p := startCodex(t)
	text := "SAY:got it\n" + strings.Repeat("line with ünïcode 日本\n", 1000) + "end"
	p.submit(text)
	if e := p.wait("submit", 1); e.Text != text {
		t.Errorf("%d bytes arrived, want %d", len(e.Text), len(text))
	}
	p.wait("end", 1)
}

// T18, T11: what is dropped or ignored is never a submission.
func TestBadModesNeverSubmit(t *testing.T) {
	for _, mode := range []string{"drop-input", "ignore-enter", "queued-forever"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			p := startCodex(t, mode)
			p.submit("SAY:x")
			p.until("Enter is read", func() bool { return p.Input(t).Enters == 1 })
			if len(p.Logs()) != 0 {
				t.Error("there is a rollout")
			}
			for _, e := range p.EventLog(t) {
				if e.Ev == "submit" {
					t.Error("it was submitted")
				}
			}
		})
	}
}

// H8: the final record comes after the screen has turned idle, in two parts.
func TestLateFlushWritesTheFinalRecordInTwoParts(t *testing.T) {
	p := startCodex(t, "late-flush=4s+1s") // wide enough for a busy machine to look into
	p.submit("SAY:late answer")
	p.wait("end", 1)
	p.until("the screen is idle", func() bool { return strings.Contains(p.format("#{pane_title}"), "Ready") })
	if got := kinds(p.records()); got[len(got)-1] != "event_msg/item_completed/UserMessage" {
		t.Errorf("the screen is idle and the records hold %v", got)
	}
	p.until("the first part", func() bool {
		b, _ := os.ReadFile(p.Logs()[0])
		return len(b) > 0 && b[len(b)-1] != '\n'
	})
	p.until("the rest", func() bool { k := kinds(p.records()); return k[len(k)-1] == "event_msg/task_complete" })
}

func TestDyingLeavesExactlyTheRecordsUpToThatPoint(t *testing.T) {
	for point, last := range map[string]string{
		"accepted": "event_msg/item_completed/UserMessage", "final": "event_msg/token_count", "end": "event_msg/task_complete",
	} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			s := New(t, Codex, "die="+point)
			p := start(t, s)
			pid := p.wait("ready", 1).PID
			p.tmux("set-option", "-g", "exit-empty", "off")
			p.submit("SAY:x")
			p.until("it is dead", func() bool { return dead(pid) })
			if got := kinds(p.records()); got[len(got)-1] != last {
				t.Errorf("last record %s, want %s", got[len(got)-1], last)
			}
		})
	}
}

func TestASlowStartLosesWhatWasTypedBefore(t *testing.T) {
	s := New(t, Codex, "slow-start=1s")
	p := start(t, s)
	p.tmux("send-keys", "-t", "s", "-l", "too early")
	p.wait("ready", 1)
	p.submit("SAY:x")
	if e := p.wait("submit", 1); e.Text != "SAY:x" {
		t.Errorf("submitted %q", e.Text)
	}
}

func TestCodexGoesOnWithAThreadOnResume(t *testing.T) {
	p := startCodex(t)
	p.submit("SAY:one")
	p.wait("end", 1)
	id := strings.TrimSuffix(filepath.Base(p.Logs()[0])[len("rollout-2006-01-02T15-04-05-"):], ".jsonl")
	p.tmux("set-option", "-g", "exit-empty", "off")
	p.key("C-c")
	p.wait("exit", 1)
	p.tmux("new-session", "-d", "-s", "s", "-x", "100", "-y", "30", p.Command("resume", id))
	p.wait("ready", 2)
	p.submit("SAY:two")
	p.wait("end", 2)
	if n := len(p.Logs()); n != 1 {
		t.Fatalf("%d rollouts", n)
	}
	k := strings.Join(kinds(p.records()), " ")
	if strings.Count(k, "task_complete") != 2 || strings.Count(k, "session_meta") != 1 {
		t.Error(k)
	}
}
