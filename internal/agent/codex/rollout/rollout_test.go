package rollout

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/turn"
)

func never() bool { return false }

func write(t testing.TB, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

// Cases 47, H8, E02: however the bytes arrive, the complete lines come out once, in
// order, each with the offset where it begins; a partial last line is pending.
func TestCompleteLinesComeOutOnceHoweverTheyAreWritten(t *testing.T) {
	dir := t.TempDir()
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		path := filepath.Join(dir, fmt.Sprint(n))
		lines := rapid.SliceOfN(rapid.StringMatching(`[a-z]{1,20}`), 1, 12).Draw(rt, "lines")
		whole := strings.Join(lines, "\n") + "\n" + "partial"
		write(t, path, "")
		tail, err := OpenTail(turn.LogMark{Path: path})
		if err != nil {
			rt.Fatal(err)
		}
		defer tail.Close()
		var got []string
		for len(whole) > 0 {
			k := rapid.IntRange(1, len(whole)).Draw(rt, "bytes")
			write(t, path, whole[:k])
			whole = whole[k:]
			err := tail.Drain(never, func(line []byte, at turn.LogMark) bool {
				if want := int64(len(strings.Join(got, ""))); at.Offset != want {
					rt.Fatalf("line %q begins at %d, reported %d", line, want, at.Offset)
				}
				got = append(got, string(line)+"\n")
				return true
			})
			if err != nil {
				rt.Fatal(err)
			}
		}
		if strings.Join(got, "") != strings.Join(lines, "\n")+"\n" {
			rt.Fatalf("got %q", got)
		}
	})
}

func TestAnAnchorInsideALineSkipsTheRestOfIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r")
	write(t, path, "half")
	mark, err := MarkNow(path)
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, " done\nnext\n")
	tail, err := OpenTail(*mark)
	if err != nil {
		t.Fatal(err)
	}
	defer tail.Close()
	var got []string
	if err := tail.Drain(never, func(l []byte, _ turn.LogMark) bool { got = append(got, string(l)); return true }); err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || got[0] != "next" {
		t.Errorf("%q", got)
	}
}

func TestAFileThatIsNotTheAnchoredOneIsRefused(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "r")
	write(t, path, "one\ntwo\n")
	mark, err := MarkNow(path)
	if err != nil {
		t.Fatal(err)
	}
	check := func(name string, want fault.Code) {
		t.Helper()
		tail, err := OpenTail(*mark)
		if err == nil {
			tail.Close()
		}
		if fault.CodeOf(err) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	check("unchanged", "")
	if err := os.Chmod(path, 0o602); err != nil {
		t.Fatal(err)
	}
	check("writable by others", CodeInsecure)
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	tail, err := OpenTail(*mark)
	if err != nil {
		t.Fatal(err)
	}
	defer tail.Close()
	if err := os.Truncate(path, 3); err != nil {
		t.Fatal(err)
	}
	check("cut", CodeReplaced)
	write(t, filepath.Join(dir, "other"), "one\ntwo\nthree\n")
	if err := os.Rename(filepath.Join(dir, "other"), path); err != nil {
		t.Fatal(err)
	}
	check("replaced", CodeReplaced)
	if err := tail.Same(); fault.CodeOf(err) != CodeReplaced {
		t.Errorf("an open file that was replaced: %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	check("removed", CodeUnreadable)
}

// Case E10: of a 300 MB rollout only what follows the anchor is read.
func TestAHugeRolloutIsReadFromTheAnchorOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r")
	write(t, path, "")
	if err := os.Truncate(path, 300<<20); err != nil { // sparse
		t.Fatal(err)
	}
	write(t, path, "\n")
	mark, err := MarkNow(path)
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, "ours\n")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	tail, err := OpenTail(*mark)
	if err != nil {
		t.Fatal(err)
	}
	defer tail.Close()
	got := ""
	if err := tail.Drain(never, func(l []byte, _ turn.LogMark) bool { got += string(l); return true }); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; got != "ours" || used > 1<<20 {
		t.Errorf("read %q with %d bytes of memory", got, used)
	}
	if a := LastActivity(path, time.Time{}); a.Activity != agent.ActivityUnknown {
		t.Errorf("a tail without a turn is %s", a.Activity)
	}
}

func TestARecordLongerThanTheLimitIsTrouble(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r")
	write(t, path, "")
	if err := os.Truncate(path, maxLine+readChunk); err != nil {
		t.Fatal(err)
	}
	tail, err := OpenTail(turn.LogMark{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer tail.Close()
	err = tail.Drain(never, func([]byte, turn.LogMark) bool { t.Error("a line came out"); return true })
	if fault.CodeOf(err) != CodeTooLong {
		t.Error(err)
	}
}

func TestTheLastTurnRecordTellsTheActivity(t *testing.T) {
	line := func(at, kind string) string {
		return fmt.Sprintf(`{"timestamp":%q,"type":"event_msg","payload":{"type":%q,"turn_id":"T"}}`+"\n", at, kind)
	}
	noise := strings.Repeat(`{"type":"response_item","payload":{"type":"function_call_output","output":"`+strings.Repeat("x", 1000)+`"}}`+"\n", 600)
	const noon = "2026-12-01T12:00:00Z"
	born, _ := time.Parse(time.RFC3339, "2026-12-01T11:00:00Z")
	for _, tc := range []struct {
		name, text string
		born       time.Time
		want       agent.Activity
	}{
		{"running", line(noon, "task_started"), born, agent.ActivityWorking},
		{"running under 600 KB of output", line(noon, "task_started") + noise, born, agent.ActivityWorking},
		{"ended", line(noon, "task_started") + line(noon, "task_complete"), born, agent.ActivityIdle},
		{"aborted", line(noon, "task_started") + line(noon, "turn_aborted"), born, agent.ActivityIdle},
		{"open turn of a killed process, resumed", line(noon, "task_started"), born.Add(2 * time.Hour), agent.ActivityIdle},
		{"0.98 has no turn records", noise, born, agent.ActivityUnknown},
		{"half a line", line(noon, "task_complete") + `{"type":"event_msg","payload":{"type":"task_st`, born, agent.ActivityIdle},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "r")
			write(t, path, tc.text)
			got := LastActivity(path, tc.born)
			if got.Activity != tc.want {
				t.Errorf("%s", got.Activity)
			}
			if got.Activity == agent.ActivityWorking && got.OpenAt != int64(strings.Index(tc.text, `{"timestamp"`)) {
				t.Errorf("the turn begins at %d", got.OpenAt)
			}
		})
	}
}

func TestARolloutIsFoundInTheDayFolderOfItsThread(t *testing.T) {
	home, thread := t.TempDir(), "01a233cc-bf4a-78b1-8502-31e12f25fe95"
	dirs := DayDirs(home, thread)
	if len(dirs) != 3 || Find(home, thread) != "" {
		t.Fatal(dirs)
	}
	for _, d := range dirs {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(d, "rollout-2026-12-01T22-49-46-"+thread+".jsonl")
		write(t, path, "x")
		if Find(home, thread) != path {
			t.Errorf("not found in %s", d)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAHelperThreadIsToldFromAPersonsThread(t *testing.T) {
	for payload, sub := range map[string]bool{
		`{"id":"a","source":"cli"}`:                                   false,
		`{"id":"a","source":"vscode","thread_source":"user"}`:         false,
		`{"id":"a","source":"cli","thread_source":"subagent"}`:        true,
		`{"id":"a","source":{"subagent":{"thread_spawn":{"d":1}}}}`:   true,
		`{"id":"a","source":"cli","thread_source":null,"cwd":"/tmp"}`: false,
	} {
		r, err := Parse([]byte(`{"type":"session_meta","payload":` + payload + `}`))
		if err != nil || r.Kind != Session || r.Meta.Sub != sub {
			t.Errorf("%s: %+v %v", payload, r.Meta, err)
		}
	}
}

func TestClipCutsAtARune(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := rapid.String().Draw(rt, "s")
		n := rapid.IntRange(0, 40).Draw(rt, "n")
		if got := Clip(s, n); len(got) > n && len(s) > n || !utf8.ValidString(got) || !strings.HasPrefix(s, got) || len(s) <= n && got != s {
			rt.Fatalf("%q", got)
		}
	})
}

func FuzzParseNeverPanicsAndNeverInventsAnEnding(f *testing.F) {
	for _, name := range []string{"0.98.0", "0.130.0", "0.171.0-failures"} {
		b, err := os.ReadFile(filepath.Join("..", "testdata", "rollout-"+name+".jsonl"))
		if err != nil {
			f.Fatal(err)
		}
		for _, l := range strings.Split(string(b), "\n") {
			f.Add([]byte(l))
		}
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		r, err := Parse(line)
		if err != nil && (fault.CodeOf(err) != CodeBadRecord || r.Kind != Other) {
			t.Errorf("%v with %+v", err, r)
		}
		if r.Kind != Other && !json.Valid(line) {
			t.Errorf("%+v from a line that is no JSON", r)
		}
	})
}
