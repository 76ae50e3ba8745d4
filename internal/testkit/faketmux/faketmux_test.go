package faketmux

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/agent-knock-knock/akk/internal/tmux"
)

func TestMain(m *testing.M) {
	MaybeRecorder()
	os.Exit(m.Run())
}

func TestARecorderNotesPastesAndKeysApart(t *testing.T) {
	s := New(t)
	r := s.Recorder(RecorderSpec{Bracketed: true, Print: "\x1b]2;a title\x07"})
	s.Tmux("set-buffer", "-b", "x", "l1\nl2")
	s.Tmux("paste-buffer", "-p", "-r", "-b", "x", "-t", r.ID, ";", "send-keys", "-t", r.ID, "Enter")
	got := r.Finish()
	if len(got.Pastes) != 1 || string(got.Pastes[0]) != "l1\nl2" || string(got.Outside) != "\r" || got.Submits() != 1 {
		t.Errorf("recorded %q", got.Raw)
	}
	if c := r.WaitText("READY"); c.Pane.Title != "a title" {
		t.Errorf("title %q", c.Pane.Title)
	}
}

func TestAServerIsGoneAfterKillAndStartsAnew(t *testing.T) {
	s := New(t)
	first := s.Run(Spec{})
	pid := s.PID()
	s.Kill()
	if _, err := s.Client().Panes(t.Context()); err == nil {
		t.Error("a killed server answers")
	}
	second := s.Run(Spec{Dir: "/tmp", Width: 50})
	if first.ID != second.ID || s.PID() == pid {
		t.Errorf("pane %s then %s, server %d then %d", first.ID, second.ID, pid, s.PID())
	}
	c := second.WaitScreen(func(c tmux.Capture) bool { return c.Pane.Command == "cat" })
	if c.Pane.Width != 50 || !strings.HasSuffix(c.Pane.Path, "/tmp") {
		t.Errorf("pane %+v", c.Pane)
	}
}

func TestAnUnclosedFrameIsNoPaste(t *testing.T) {
	r := ParseRecording([]byte("a\x1b[200~b\x1b[201~c\x1b[200~d\r"))
	if len(r.Pastes) != 1 || string(r.Outside) != "ac\x1b[200~d\r" || r.Submits() != 1 || !slices.Equal(r.Pastes[0], []byte("b")) {
		t.Errorf("%+v", r)
	}
}
