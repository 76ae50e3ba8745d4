package fakehost

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// Survivor is a live process that carries the case id.
type Survivor struct {
	PID   int
	PPID  int
	State byte // as in /proc/PID/stat
	Args  string
}

func (s Survivor) String() string {
	return fmt.Sprintf("%d(ppid %d, %c) %s", s.PID, s.PPID, s.State, s.Args)
}

// WaitNoSurvivors waits until no process carries the case id, besides those whose command
// line contains one of the words in except (the human's own tmux and agents). The test
// fails after limit.
func WaitNoSurvivors(tb testing.TB, caseID string, limit time.Duration, except ...string) {
	tb.Helper()
	deadline := time.Now().Add(limit)
	for {
		left := without(survivors(tb, caseID), except)
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			tb.Fatalf("still alive after %v: %v", limit, left)
		}
		time.Sleep(poll)
	}
}

func without(all []Survivor, except []string) []Survivor {
	var out []Survivor
next:
	for _, s := range all {
		for _, word := range except {
			if strings.Contains(s.Args, word) {
				continue next
			}
		}
		out = append(out, s)
	}
	return out
}

func survivors(tb testing.TB, caseID string) []Survivor {
	tb.Helper()
	all, err := Survivors(caseID)
	if err != nil {
		tb.Skipf("no census on this system: %v", err)
	}
	return all
}
