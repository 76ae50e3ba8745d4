package screen

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/fault"
)

// Every row was tried on Claude Code 2.1.197.
func TestLiteralTextIsTakenAsAPrompt(t *testing.T) {
	for in, want := range map[string]string{
		"hello":               "hello",
		"!echo hi":            " !echo hi", // else a shell command without a question
		"! echo":              " ! echo",
		"/clear":              " /clear",
		"/tmp/x is a file":    " /tmp/x is a file",
		"# note":              "# note",
		"$x `y` \"z\" ?":      "$x `y` \"z\" ?",
		"exit now":            "exit now",
		"Exit":                "Exit",
		"exit.":               "exit.",
		"exit\n\nplease":      "exit\n\nplease",
		" !x":                 " !x",
		"a\r\nb\rc":           "a\nb\nc",
		`ends with \`:         `ends with \ `, // else Enter is a newline
		"see @READ":           "see @READ ",   // else Enter accepts the completion
		"@README.md":          "@README.md ",
		"l\nsee @x":           "l\nsee @x ",
		"mail me@example.org": "mail me@example.org",
		"see @x now":          "see @x now",
		"tab\there":           "tab\there",
	} {
		got, err := Literal(in)
		if err != nil || got != want {
			t.Errorf("Literal(%q) = %q, %v; want %q", in, got, err, want)
		}
	}
}

func TestTextThatQuitsOrSteersIsRefusedAsInvalid(t *testing.T) {
	for _, in := range []string{
		"exit", " exit", "exit\n", "\texit", "quit", ":q", "  :wq", ":q!", ":wq!", "", "  \n ",
		"a\x1b[201~b", "a\x00", "bell\a", "c1 \u009b31m", "\x7f", "bad \xff utf8",
	} {
		if got, err := Literal(in); !fault.Is(err, fault.Invalid) {
			t.Errorf("Literal(%q) = %q, %v; want invalid", in, got, err)
		}
	}
}

func TestLiteralIsStableAndNeverBeginsACommand(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		in := rapid.StringOf(rapid.SampledFrom([]rune("ab !/\\@#\n\t\"é日:qexit"))).Draw(rt, "text")
		out, err := Literal(in)
		if err != nil {
			return
		}
		if out[0] == '!' || out[0] == '/' || strings.HasSuffix(out, `\`) {
			rt.Fatalf("%q became %q", in, out)
		}
		if again, err := Literal(out); err != nil || again != out {
			rt.Fatalf("%q became %q and then %q, %v", in, out, again, err)
		}
		if unspaced(in) != unspaced(out) {
			rt.Fatalf("%q became %q", in, out)
		}
	})
}

func TestDraftIsRecognisedThroughWrappingT19(t *testing.T) {
	text := strings.Repeat("The quick  brown fox ", 8) + "e\u0301e\u0301 日本語日本語 end"
	s := Classify(load(t, "cli-narrow-draft"))
	if got := DraftMatches(s, text); got != agent.MatchYes {
		t.Errorf("exact text in a 40 column pane: %v, draft %q", got, s.Draft)
	}
	for i, r := range text {
		if r == ' ' || r > 0x7f {
			continue
		}
		changed := text[:i] + "#" + text[i+1:]
		if got := DraftMatches(s, changed); got != agent.MatchNo {
			t.Fatalf("one changed rune at %d: %v", i, got)
		}
	}
}

func TestDraftMatchesWhatWasPastedAndNothingElse(t *testing.T) {
	b := strings.Repeat("b", 797)
	cases := []struct {
		screen, pasted string
		want           agent.Match
	}{
		{"rig-10-multiline-draft", "line one\nline two\nline three", agent.MatchYes},
		{"rig-10-multiline-draft", "line one\nline two", agent.MatchNo},
		{"cli-draft-sp-bang", " !echo hi", agent.MatchYes},
		{"cli-draft-slashmid", "SAY:see /cle", agent.MatchYes}, // a ghost completion stands behind it
		{"cli-draft-slashmid", "SAY:see /clear", agent.MatchNo},
		{"cli-draft-bslash-sp", `SAY:back2\ `, agent.MatchYes},
		{"cli-draft-801", "SAY:" + b, agent.MatchYes},
		{"cli-draft-801", "SAY:" + b + "\n", agent.MatchNo},
		{"cli-draft-801", "short", agent.MatchUnknown},
		{"cli-draft-l4", "SAY:l\n2\n3\n4", agent.MatchYes},
		{"cli-draft-l4", "SAY:l\r\n2\r\n3\r\n4", agent.MatchYes},
		{"cli-draft-l4", "SAY:l\n2\n3\n4\n5", agent.MatchNo},
		{"cli-draft-l4t", "SAY:l\n2\n3\n4\n", agent.MatchYes},
		{"rig-02-after-turn", "anything", agent.MatchNo},
		{"rig-03-permission-dialog", "anything", agent.MatchUnknown},
		{"cli-esc-before-first-byte", "SLEEP:6 ;; SAY:early", agent.MatchYes},
	}
	for _, k := range cases {
		if got := DraftMatches(Classify(load(t, k.screen)), k.pasted); got != k.want {
			t.Errorf("%s with %.30q: %v, want %v", k.screen, k.pasted, got, k.want)
		}
	}
	mixed := agent.Screen{Composer: agent.ComposerDraft, Draft: "before [Pasted text #2 +9 lines] after"}
	if got := DraftMatches(mixed, "whatever"); got != agent.MatchUnknown {
		t.Errorf("a placeholder among text: %v", got)
	}
	literal := agent.Screen{Composer: agent.ComposerDraft, Draft: "[Pasted text #2 +9 lines]"}
	if got := DraftMatches(literal, "[Pasted text #2 +9 lines]"); got != agent.MatchYes {
		t.Errorf("the words themselves: %v", got)
	}
}

func TestDimTextIsNoDraftAndTheCursorCellFollowsItsNeighbour(t *testing.T) {
	for in, want := range map[string]string{
		"\x1b[39mabc\x1b[7m \x1b[0m":          "abc",
		"\x1b[7mP\x1b[0;2m\x1b[39mress up":    "",
		"/cle\x1b[7ma\x1b[0;2mr\x1b[0m":       "/cle",
		"he\x1b[7ml\x1b[27mlo":                "hello",
		"\x1b[38;5;2mgreen\x1b[48;2;2;2;2mon": "greenon",
		"\x1b[2mdim\x1b[22mnot":               "not",
		"\x1b]0;title\x07x":                   "0;title\ax",
		"\x1b[4:3mcurly":                      "curly",
	} {
		var dim, reverse bool
		if got := typedText(cells(in, &dim, &reverse)); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
