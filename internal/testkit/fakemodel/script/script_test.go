package script

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestDirectivesAreFoundOnLinesAndBetweenDoubleSemicolons(t *testing.T) {
	got := Parse("please:\nRUN:echo a; echo b ;; TOOL:list {\"x\":1};; TOOL:bare\nSLEEP:0.5 ;; STREAM:3@20\nSAY:two\\nlines")
	want := Script{
		Say: "two\nlines", HasText: true,
		Calls: []Call{{Run, "", "echo a; echo b"}, {Tool, "list", `{"x":1}`}, {Tool, "bare", "{}"}},
		Sleep: 500 * time.Millisecond, Chunks: 3, Every: 20 * time.Millisecond,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Fatal(d)
	}
}

func TestFailAndFailEventAreDifferentDirectives(t *testing.T) {
	if got := Parse("FAILEVENT:boom"); got.Fail != 0 || got.FailEv != "boom" {
		t.Fatalf("got %+v", got)
	}
	if got := Parse("FAIL:500"); got.Fail != 500 || got.FailEv != "" {
		t.Fatalf("got %+v", got)
	}
}

func TestAWordThatEndsLikeADirectiveIsNone(t *testing.T) {
	if got := Parse("ESSAY:about cats"); got.HasText {
		t.Fatalf("ESSAY: was read as SAY: %+v", got)
	}
}

func TestTextFallsBackToTheToolResultAndThenToThePrompt(t *testing.T) {
	for _, c := range []struct{ prompt, last, want string }{
		{"SAY:x", "", "x"},
		{"RUN:ls", " a.txt\n", "DONE after tool: a.txt"},
		{"  hello  ", "", "OK: hello"},
	} {
		if got := Parse(c.prompt).Text(c.prompt, c.last); got != c.want {
			t.Errorf("%q: got %q, want %q", c.prompt, got, c.want)
		}
	}
}

func TestStreamPiecesEndWithTheText(t *testing.T) {
	got := Parse("STREAM:2 ;; SAY:end").Pieces("end")
	if d := cmp.Diff([]string{"chunk 1 of 2. ", "chunk 2 of 2. ", "\n\nend"}, got); d != "" {
		t.Fatal(d)
	}
}
