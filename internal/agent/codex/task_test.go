package codex

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/procinfo"
	"github.com/agent-knock-knock/akk/internal/turn"
)

// taskOf asks for the task of a thread whose rollout holds text.
func taskOf(t *testing.T, text string) (*Adapter, string, agent.Task, error) {
	t.Helper()
	a, home := New(Options{}), t.TempDir()
	path := rolloutPath(home)
	add(t, path, text)
	task, err := a.CurrentTask(context.Background(), agent.Ref{}, agent.Native{Channel: turn.ChannelKeyboard, Thread: agent.ThreadResolved,
		ThreadID: testThread, LogPath: path, Extra: map[string]string{extraHome: home}})
	return a, path, task, err
}

func TestTheTaskThatRunsIsFoundAndFollowedToItsOwnEnd(t *testing.T) { // spec part 10.3
	old := record(started("t1"), user("t1", "", "an old task"), complete("t1", "OLD"))
	a, path, task, err := taskOf(t, old+record(started("t2"), user("t2", "", "the person's task")))
	if err != nil {
		t.Fatal(err)
	}
	if task.Key != "codex|"+testThread+"|t2" || task.Anchor.RequestHash != ids.TextHash("the person's task") || task.Anchor.Log.Offset != int64(len(old)) {
		t.Errorf("%+v", task)
	}
	f := follow(t, a, agent.Ref{}, task.Anchor)
	f.until("armed; accepted")
	add(t, path, record(complete("t2", "NEW")))
	f.ends(`armed; accepted; completed "NEW"`)
	again := follow(t, a, agent.Ref{}, task.Anchor) // as after a crash of the monitor
	again.ends(`armed; accepted; completed "NEW"`)
}

func TestATaskOfAServerMayBeOlderThanThePaneThatShowsIt(t *testing.T) { // spec part 10.3
	self, err := procinfo.Birth(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for mode, found := range map[string]bool{ModeDaemon: true, ModeRemote: true, ModeEmbedded: false} {
		a, home := New(Options{}), t.TempDir()
		path := rolloutPath(home)
		add(t, path, strings.ReplaceAll(record(started("t1"), user("t1", "", "x")), time.Now().UTC().Format("2006-"), "2001-"))
		_, err := a.CurrentTask(t.Context(), agent.Ref{Process: turn.Incarnation{PID: os.Getpid(), Birth: self}}, agent.Native{Mode: mode,
			Channel: turn.ChannelKeyboard, Thread: agent.ThreadResolved, ThreadID: testThread, LogPath: path, Extra: map[string]string{extraHome: home}})
		if found != (err == nil) {
			t.Errorf("%s: %v", mode, err)
		}
	}
}

func TestAThreadWithoutATaskThatRunsHasNone(t *testing.T) {
	for name, text := range map[string]string{
		"done":            record(started("t1"), user("t1", "", "x"), complete("t1", "OLD")),
		"aborted":         record(started("t1"), user("t1", "", "x"), aborted("t1")),
		"never prompted":  record(event("session_configured")),
		"half a record":   record(event("session_configured")) + strings.TrimSuffix(started("t1"), "}"),
		"an empty thread": "",
	} {
		if _, _, task, err := taskOf(t, text); !fault.Is(err, agent.CodeNoTask) {
			t.Errorf("%s: %+v %v", name, task, err)
		}
	}
	a := New(Options{})
	if _, err := a.CurrentTask(context.Background(), agent.Ref{}, agent.Native{Thread: agent.ThreadAmbiguous}); !fault.Is(err, fault.Unavailable) {
		t.Errorf("an ambiguous thread: %v", err)
	}
}

func TestATaskWhoseThreadGoesOnWithAnotherOrWhoseFileIsReplacedIsTrouble(t *testing.T) { // spec case 55
	a, path, task, err := taskOf(t, record(started("t1"), user("t1", "", "x")))
	if err != nil {
		t.Fatal(err)
	}
	f := follow(t, a, agent.Ref{}, task.Anchor)
	add(t, path, record(started("t2"), user("t2", "", "y")))
	f.until(`armed; accepted; trouble "turn_left_open"`)
	moved := follow(t, a, agent.Ref{}, task.Anchor)
	if err := os.Rename(path, path+".old"); err != nil {
		t.Fatal(err)
	}
	add(t, path, record(started("t1"), user("t1", "", "x"), complete("t1", "FORGED")))
	deadline := time.Now().Add(15 * time.Second)
	for !strings.Contains(moved.shown(), `trouble "rollout_replaced"`) {
		if time.Now().After(deadline) {
			t.Fatal(moved.shown())
		}
		<-time.After(5 * time.Millisecond)
	}
	if strings.Contains(moved.shown(), "FORGED") {
		t.Error(moved.shown())
	}
}
