package tmux_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/testkit/faketmux"
	"github.com/agent-knock-knock/akk/internal/tmux"
)

func TestMain(m *testing.M) {
	faketmux.MaybeRecorder()
	holdLock()
	os.Exit(m.Run())
}

// texts is the matrix of case H5, and a few that look like something else to tmux.
var texts = map[string]string{
	"one line":         "one line",
	"two lines":        "l1\nl2",
	"trailing newline": "l1\nl2\n",
	"key name":         "Enter",
	"control key":      "C-c",
	"option":           "-l",
	"semicolon":        "semi;",
	"only semicolon":   ";",
	"escaped":          `a\; \n $HOME #{pane_id} '"{}%1`,
	"blanks and tab":   "  two  spaces\n\tTab",
	"unicode":          "héllo 日本 ✻ ❯ e\u0301",
	"200 characters":   strings.Repeat("abcdefghij", 20),
	"20 KB":            strings.Repeat("0123456789abcde\n", 20<<10/16),
	"300 KB":           strings.Repeat("日本 line ✻\n", 300<<10/16), // T06
	"slash command":    "/clear now",
}

// submit is what a use case does: a paste, and Enter only if that was taken.
func submit(t *testing.T, s tmux.Server, to tmux.Target, text string) error {
	t.Helper()
	if err := s.Paste(t.Context(), to, []byte(text)); err != nil {
		return err
	}
	if err := s.Key(t.Context(), to, tmux.Enter); err != nil {
		t.Fatalf("Enter after a paste that was taken: %v", err)
	}
	return nil
}

// H5, T02, T06, T21: one prompt is one submission, byte for byte, or nothing.
func TestOnePromptIsOneSubmissionOrNothing(t *testing.T) {
	odd := filepath.Join(faketmux.ShortDir(t), "a b_c:d", "日本")
	if err := os.MkdirAll(odd, 0o700); err != nil {
		t.Fatal(err)
	}
	states := []struct {
		name    string
		spec    faketmux.RecorderSpec
		mode    string // a tmux command that is given before the input
		refused string // part of the reason, "" when the text must arrive
	}{
		{name: "normal", spec: faketmux.RecorderSpec{Bracketed: true}},
		{name: "without bracketed paste", spec: faketmux.RecorderSpec{}},
		{name: "copy mode", spec: faketmux.RecorderSpec{Bracketed: true}, mode: "copy-mode -t", refused: "copy mode"},
		{name: "view mode", spec: faketmux.RecorderSpec{Bracketed: true}, mode: "clock-mode -t", refused: "mode"},
		{name: "input off", spec: faketmux.RecorderSpec{Bracketed: true}, mode: "select-pane -d -t", refused: "switched off"},
		{name: "40 columns", spec: faketmux.RecorderSpec{Bracketed: true, Spec: faketmux.Spec{Width: 40}}},
		{name: "odd path", spec: faketmux.RecorderSpec{Bracketed: true, Spec: faketmux.Spec{Dir: odd}}},
	}
	for _, st := range states {
		t.Run(st.name, func(t *testing.T) {
			t.Parallel()
			server := faketmux.New(t)
			r := server.Recorder(st.spec)
			for name, text := range texts {
				if st.mode != "" {
					server.Tmux(append(strings.Fields(st.mode), r.ID)...)
				}
				err := submit(t, server.Client(), r.Target(), text)
				got := r.Finish()
				switch {
				case st.refused != "":
					refusedWithout(t, got, err, st.refused)
				case err != nil:
					t.Errorf("%s: %v", name, err)
				default:
					arrivedOnce(t, got, text, st.spec.Bracketed)
				}
			}
			noBufferLeft(t, server)
		})
	}
}

func arrivedOnce(t *testing.T, got faketmux.Recording, text string, framed bool) {
	t.Helper()
	inside, outside := text, "\r"
	if !framed { // tmux 3.3a cannot tell: LF stays LF, so even then only one CR is seen
		inside, outside = "", text+"\r"
	}
	if string(bytes.Join(got.Pastes, []byte("|"))) != inside || string(got.Outside) != outside {
		t.Errorf("recorded %d bytes: %.200q, want %.200q once and one Enter", len(got.Raw), got.Raw, text)
	}
	if got.Submits() != 1 {
		t.Errorf("%d submits", got.Submits())
	}
}

func refusedWithout(t *testing.T, got faketmux.Recording, err error, reason string) {
	t.Helper()
	if !fault.Is(err, tmux.CodeInputNotSent) || !strings.Contains(err.Error(), reason) {
		t.Errorf("got %v, want %s because of %q", err, tmux.CodeInputNotSent, reason)
	}
	if len(got.Raw) != 0 {
		t.Errorf("refused, but the program got %.200q", got.Raw)
	}
}

func noBufferLeft(t *testing.T, s *faketmux.Server) {
	t.Helper()
	if out := s.Tmux("list-buffers"); out != "" {
		t.Errorf("a buffer was left: %.200q", out)
	}
}

// H5 state 4, T18: what is sent before the program reads is lost or mangled by the
// terminal driver. This package cannot see that; it must only never report more than
// that tmux took the text, and never send twice.
func TestInputBeforeTheProgramReadsIsNeverSentTwice(t *testing.T) {
	server := faketmux.New(t)
	r := server.Recorder(faketmux.RecorderSpec{Bracketed: true, Delay: 2 * time.Second, NoWait: true})
	if err := server.Client().Paste(t.Context(), r.Target(), []byte("early")); err != nil {
		t.Fatal(err)
	}
	if got := r.Finish(); bytes.Count(got.Raw, []byte("early")) > 1 {
		t.Errorf("recorded %q", got.Raw)
	}
}

// H5 3, T03: a key into copy mode would act on tmux.
func TestKeysIntoCopyModeAreRefused(t *testing.T) {
	server := faketmux.New(t)
	r := server.Recorder(faketmux.RecorderSpec{Bracketed: true})
	server.Tmux("copy-mode", "-t", r.ID)
	for _, k := range []tmux.Key{tmux.Enter, tmux.Escape, tmux.CtrlC, tmux.CtrlU, tmux.Char('q')} {
		if err := server.Client().Key(t.Context(), r.Target(), k); !fault.Is(err, tmux.CodeInputNotSent) {
			t.Errorf("%s: %v", k, err)
		}
	}
	if in := server.Tmux("display-message", "-p", "-t", r.ID, "#{pane_in_mode}"); in != "1" {
		t.Errorf("the person's copy mode was left: %s", in)
	}
	if got := r.Finish(); len(got.Raw) != 0 {
		t.Errorf("recorded %q", got.Raw)
	}
}

func TestKeysArriveAsTheBytesTheyStandFor(t *testing.T) {
	server := faketmux.New(t)
	r := server.Recorder(faketmux.RecorderSpec{Bracketed: true})
	want := "\r\x1b\x03\x15"
	keys := []tmux.Key{tmux.Enter, tmux.Escape, tmux.CtrlC, tmux.CtrlU}
	for c := ' '; c <= '~'; c++ {
		if strings.ContainsRune(` !"#$%&'()*+,-./0;<=>?@AZ[\]^_az{|}~`+"`", c) {
			keys, want = append(keys, tmux.Char(c)), want+string(c)
		}
	}
	for _, c := range "é日✻" {
		keys, want = append(keys, tmux.Char(c)), want+string(c)
	}
	for _, k := range keys {
		if err := server.Client().Key(t.Context(), r.Target(), k); err != nil {
			t.Fatalf("%s: %v", k, err)
		}
	}
	if got := r.Finish(); string(got.Raw) != want {
		t.Errorf("recorded %q, want %q", got.Raw, want)
	}
	for _, c := range []rune{0, '\n', '\r', 0x1b, 0x7f, 0x9b, 0xFFFD, -1, 0x200B} {
		if err := server.Client().Key(t.Context(), r.Target(), tmux.Char(c)); !fault.Is(err, fault.Invalid) {
			t.Errorf("%U: %v", c, err)
		}
	}
}

// Synchronised panes would all get the key.
func TestASynchronisedPaneGetsNothing(t *testing.T) {
	server := faketmux.New(t)
	r := server.Recorder(faketmux.RecorderSpec{Bracketed: true})
	server.Tmux("split-window", "-d", "-t", r.ID, "cat", ";", "set-option", "-w", "-t", r.ID, "synchronize-panes", "on")
	err := submit(t, server.Client(), r.Target(), "x")
	server.Tmux("set-option", "-w", "-t", r.ID, "synchronize-panes", "off")
	refusedWithout(t, r.Finish(), err, "synchronised")
}

func TestConcurrentPastesDoNotMix(t *testing.T) {
	server := faketmux.New(t)
	r := server.Recorder(faketmux.RecorderSpec{Bracketed: true})
	errs := make(chan error)
	const n = 8
	for i := range n {
		go func() {
			errs <- server.Client().Paste(t.Context(), r.Target(), bytes.Repeat(fmt.Appendf(nil, "%d", i), 5000))
		}()
	}
	for range n {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	got := r.Finish()
	if len(got.Pastes) != n || len(got.Outside) != 0 {
		t.Fatalf("%d pastes, %q outside", len(got.Pastes), got.Outside)
	}
	for _, p := range got.Pastes {
		if len(p) != 5000 || len(bytes.Trim(p, string(p[:1]))) != 0 {
			t.Errorf("a paste was mixed or cut: %d bytes", len(p))
		}
	}
	noBufferLeft(t, server)
}
