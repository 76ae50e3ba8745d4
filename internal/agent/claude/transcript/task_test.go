package transcript

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-knock-knock/akk/internal/agent/claude/known"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/turn"
)

func transcriptOf(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s"+known.TranscriptExt)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func openTask(t *testing.T, path string) (Task, bool) {
	t.Helper()
	task, ok, err := OpenTask(t.Context(), path, "")
	if err != nil {
		t.Fatal(err)
	}
	return task, ok
}

// Every recorded transcript is cut after each of its records: the last prompt is the task
// as long as the records so far do not end its turn, and read from its mark the rest of
// the file ends it as the whole file does.
func TestTheOpenTaskOfEveryRecordedMomentIsFound(t *testing.T) {
	files, err := filepath.Glob("testdata/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	found := 0
	for _, file := range files {
		all := lines(t, strings.TrimSuffix(filepath.Base(file), ".jsonl"))
		for n := 1; n <= len(all); n++ {
			prompt, text := "", ""
			for _, l := range all[:n] {
				r, err := ParseRecord([]byte(l))
				if err != nil {
					t.Fatal(err)
				}
				if s, ok := r.humanPrompt(); ok {
					prompt, text = r.UUID, s
				}
			}
			open := false
			if prompt != "" {
				c, _ := follow(t, Wanted{Prompt: prompt}, all[:n])
				open = c.Open() && c.Accepted() && !c.Superseded()
			}
			path := transcriptOf(t, strings.Join(all[:n], "\n")+"\n")
			task, ok := openTask(t, path)
			if ok != open || ok && (task.Prompt != prompt || task.Hash != ids.TextHash(text)) {
				t.Fatalf("%s after %d records: %+v %v, want %q %v", file, n, task, ok, prompt, open)
			}
			if ok {
				found++
			}
		}
	}
	if found < 20 {
		t.Errorf("only %d moments had a task", found)
	}
}

// A long turn: the prompt is far before the window that is searched first.
func TestATaskThatBeganLongAgoIsFound(t *testing.T) {
	filler := `{"type":"progress","note":"` + strings.Repeat("x", 1000) + `"}` + "\n"
	ours := `{"type":"user","uuid":"u1","origin":{"kind":"human"},"message":{"content":"long task"},"sessionId":"s"}` + "\n"
	path := transcriptOf(t, strings.Repeat(filler, 200)+ours+strings.Repeat(filler, 2000))
	task, ok := openTask(t, path)
	if !ok || task.Prompt != "u1" || task.Mark.Offset == 0 || task.Mark.Offset > int64(200*len(filler)) {
		t.Fatalf("%+v %v", task, ok)
	}
	if task.Mark.Offset%int64(len(filler)) != 0 {
		t.Errorf("it begins to read in the middle of a record, at %d", task.Mark.Offset)
	}
	chain, tail := New(Wanted{Prompt: task.Prompt}), Tail{Mark: task.Mark, Known: true}
	if _, err := tail.Read(func(line []byte, at turn.LogMark) bool {
		r, err := ParseRecord(line)
		if err != nil {
			t.Fatal(err)
		}
		chain.Feed(r, at)
		return true
	}); err != nil || !chain.Accepted() {
		t.Errorf("%v, accepted %v", err, chain.Accepted())
	}
}

func TestASecondPromptWithTheWatchedTextIsNotTheTask(t *testing.T) {
	prompt := func(id, text string) string {
		return `{"type":"user","uuid":"` + id + `","promptId":"p` + id + `","origin":{"kind":"human"},"message":{"content":"` + text + `"},"sessionId":"s"}`
	}
	c, out := follow(t, Wanted{Prompt: "u1"}, []string{prompt("u1", "same"), prompt("u2", "same")})
	if got := brief(out); len(got) != 1 || got[0] != "accepted" || !c.Superseded() {
		t.Errorf("%v, superseded %v", got, c.Superseded())
	}
}
