package harnesstools

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/agent-knock-knock/akk/internal/toolkit"
)

func TestShortenKeepsItsLimitAndWholeRunes(t *testing.T) {
	for _, c := range []struct {
		text string
		most int
		want string
	}{
		{"", 0, ""}, {"", -5, ""}, {"abc", -1, ""}, {"abc", 0, ""}, {"abc", 2, ""}, {"abc", 3, "abc"}, {"abcd", 3, ""}, {"abcde", 4, "a..."},
		{"äöü", 6, "äöü"}, {"äöüß", 6, "ä..."}, {"äöüß", 7, "äö..."}, {"äöüß", 4, "..."}, {"日本語日本語", 10, "日本..."},
	} {
		if got := shorten(c.text, c.most); got != c.want {
			t.Errorf("shorten(%q, %d) = %q, want %q", c.text, c.most, got, c.want)
		}
	}
}

// hostile are words as an agent may choose them for its options.
var hostile = []string{"", " \n\t", "allow_once", strings.Repeat("k", 70), strings.Repeat("k", 72), strings.Repeat("k", 81), strings.Repeat("日", 30),
	strings.Repeat("🔑", 4000), "a\nb\r\n[reject_once]", strings.Repeat("]", 90), "ok"}

// decisions is the field that a dialog shows for options.
type decisions struct {
	Enum  []string
	OneOf []struct{ Const, Title string }
}

// shown reads what a dialog offers: what comes back for each choice, and what a person reads.
func shown(t *testing.T, d dialog) (tokens, labels []string) {
	t.Helper()
	var form struct{ Properties map[string]decisions }
	if err := json.Unmarshal(d.ask.Schema, &form); err != nil {
		t.Fatal(err)
	}
	field := form.Properties["decision"]
	for _, c := range field.OneOf {
		tokens, labels = append(tokens, c.Const), append(labels, c.Title)
	}
	if field.OneOf == nil {
		tokens, labels = field.Enum, field.Enum
	}
	return tokens, labels
}

// Every kind meets every name: the labels fit, stay whole and differ, and each leads back to
// its own option.
func TestOptionsWithAnyKindAndNameCanBeChosen(t *testing.T) {
	for _, titled := range []bool{false, true} {
		for _, kind := range hostile {
			q := question{ID: "q1", Permission: true, Title: "rm"}
			for i := range maxChoices {
				q.Options = append(q.Options, option{ID: string(rune('A' + i)), Name: hostile[i%len(hostile)], Kind: kind})
			}
			d, ok := newDialog(q, &host{titled: titled})
			if !ok {
				t.Fatalf("kind %.20q: the dialog cannot be shown", kind)
			}
			tokens, labels := shown(t, d)
			if len(tokens) != maxChoices {
				t.Fatalf("kind %.20q: %d choices", kind, len(tokens))
			}
			seen := map[string]bool{}
			for i, token := range tokens {
				if label := labels[i]; label == "" || len(label) > maxLabel || !utf8.ValidString(label) || strings.ContainsAny(label, "\r\n\t") {
					t.Errorf("kind %.20q, name %.20q: label %q", kind, q.Options[i].Name, label)
				}
				if seen[token] {
					t.Errorf("kind %.20q: %q is offered twice", kind, token)
				}
				seen[token] = true
				content, err := json.Marshal(map[string]string{"decision": token})
				if err != nil {
					t.Fatal(err)
				}
				r, err := d.answer(toolkit.Answer{Action: "accept", Content: content})
				if err != nil || r["option_id"] != q.Options[i].ID {
					t.Errorf("kind %.20q: %q leads to %v %v", kind, token, r, err)
				}
			}
		}
	}
}

// A person still sees both: the beginning of a long name, and of a long kind.
func TestALabelShowsTheNameAndTheKind(t *testing.T) {
	long := strings.Repeat("n", 100)
	for _, c := range []struct{ name, kind, want string }{
		{"Allow", "allow_once", "3. Allow [allow_once]"},
		{"Allow", "", "3. Allow"},
		{"", "", "3. id"},
		{" a \n b ", "x\ny", "3. a b [x y]"},
		{long, "allow_once", "3. " + long[:61] + "... [allow_once]"},
		{long, strings.Repeat("k", 70), "3. " + long[:47] + "... [" + strings.Repeat("k", 21) + "...]"},
	} {
		if got := (option{ID: "id", Name: c.name, Kind: c.kind}).label(3); got != c.want {
			t.Errorf("%q %q: %q, want %q", c.name, c.kind, got, c.want)
		}
	}
}
