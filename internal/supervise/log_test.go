package supervise_test

import (
	"encoding/json"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// lines is where a log goes while workers write to it.
type lines struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// of returns the records with the message.
func (l *lines) of(t *testing.T, msg string) (out []map[string]any) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.b.String()) {
		var r map[string]any
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		if r["msg"] == msg {
			out = append(out, r)
		}
	}
	return out
}

// docs/OPERATIONS.md: a line names the Turn, the delivery or the worker that it is about.
func TestWhatIsLoggedOfAWorkerNamesItAndWhatItServes(t *testing.T) {
	log, k := &lines{}, newSink()
	s := startLogging(t, "worker", k, slog.NewJSONHandler(log, nil))
	k.set(errors.New("the store is busy"))
	if err := s.Watch(t.Context(), spec("turn-1", "crash-once "+filepath.Join(t.TempDir(), "crashed"))); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Deliver(t.Context(), job("die")); err == nil {
		t.Fatal("the worker lives")
	}
	for msg, want := range map[string]map[string]string{
		"observation not stored, tried again":        {"worker": "akk-monitor", "turn": "turn-1"},
		"monitor ended and is started again":         {"worker": "akk-monitor", "turn": "turn-1"},
		"callback worker ended and is started again": {"worker": "akk-callback"},
	} {
		if !eventually(func() bool { k.set(nil); return len(log.of(t, msg)) > 0 }) {
			t.Errorf("nothing says %q", msg)
			continue
		}
		for key, value := range want {
			if r := log.of(t, msg)[0]; r[key] != value {
				t.Errorf("%q: %s is %v, want %s", msg, key, r[key], value)
			}
		}
	}
}
