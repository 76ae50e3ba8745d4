package term

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

func TestTheDecoderSurvivesEveryCutOfItsInput(t *testing.T) {
	const input = "a\x1b[200~x\ry\x1b[201~\r\x1b[Ahé\x7f\x03"
	want := fmt.Sprint((&Decoder{}).Feed([]byte(input)))
	for i := range input {
		d := &Decoder{}
		var keys []Key
		for _, k := range append(d.Feed([]byte(input[:i])), d.Feed([]byte(input[i:]))...) {
			keys = Join(keys, k)
		}
		if got := fmt.Sprint(keys); got != want {
			t.Errorf("cut at %d: %v, want %v", i, got, want)
		}
	}
}

func TestALoneEscapeWaitsUntilItIsFlushed(t *testing.T) {
	d := &Decoder{}
	if keys := d.Feed([]byte("\x1b")); keys != nil || !d.Pending() {
		t.Fatalf("%v, pending %v", keys, d.Pending())
	}
	if keys := d.Flush(); len(keys) != 1 || keys[0].Kind != Esc || d.Pending() {
		t.Fatalf("%v", keys)
	}
	if keys := d.Feed([]byte("\x1b[A")); len(keys) != 1 || keys[0].Kind != Up {
		t.Fatalf("an arrow key is no Escape: %v", keys)
	}
}

func TestWrapBreaksAtBlanksAndInsideLongWords(t *testing.T) {
	for in, want := range map[string][]string{
		"one two three": {"one two", "three"}, "abcdefghijkl": {"abcdefgh", "ijkl"}, "a\n\nb": {"a", "", "b"}, "日本日本日": {"日本日本", "日"},
	} {
		if got := fmt.Sprint(Wrap(in, 8)); got != fmt.Sprint(want) {
			t.Errorf("%q: %s, want %v", in, got, want)
		}
	}
}

func TestThePainterDrawsOnlyWhatChanged(t *testing.T) {
	var out bytes.Buffer
	p := Painter{W: &out}
	p.Paint(Frame{Lines: []string{"one", "two"}, ShowCursor: true})
	out.Reset()
	p.Paint(Frame{Lines: []string{"one", "TWO"}, ShowCursor: true, CursorX: 3, CursorY: 1})
	if got := out.String(); strings.Contains(got, "one") || !strings.Contains(got, "\x1b[2;1H") || !strings.HasSuffix(got, "\x1b[2;4H") {
		t.Errorf("%q", got)
	}
}
