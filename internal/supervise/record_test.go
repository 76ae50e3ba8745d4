package supervise

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
)

// Five restarts in a life of months, and the error of the last one, are no problem of today.
func TestTheErrorOfAProcessIsHistoryOnceTheNextOneProvedItself(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	r := newRecord()
	for range 5 {
		r.failed(fault.New(fault.Unavailable, "test", "it ended"))
	}
	r.starting()
	r.started(4711, now)
	r.serving()
	look := func(at time.Duration) WorkerStatus { r.heard(now.Add(at)); return r.status("w", "s", now.Add(at), "f") }
	if got := look(provedAfter - time.Second); got.LastError != "it ended" || got.Restarts != 5 {
		t.Errorf("a young process: %+v", got)
	}
	if got := look(provedAfter); got.LastError != "" || got.Restarts != 5 || got.State != StateServing {
		t.Errorf("a proved process: %+v", got)
	}
	if _, err, _ := r.look(); err != nil {
		t.Errorf("a delivery would be told of %v", err)
	}
	r.failed(fault.New(fault.Unavailable, "test", "it ended again"))
	if got := r.status("w", "s", now, "f"); got.LastError != "it ended again" || got.Restarts != 6 {
		t.Errorf("the next end: %+v", got)
	}
}

func TestALineAboutAMonitorSaysWhetherItServesATurnOrAWatch(t *testing.T) {
	for subject, want := range map[ids.SubjectID]string{"turn-1": " turn=turn-1", "terminal-watch-1": " watch=terminal-watch-1"} {
		var b strings.Builder
		about(slog.New(slog.NewTextHandler(&b, nil)), subject).Info("x")
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q names no %q", b.String(), want)
		}
	}
}
