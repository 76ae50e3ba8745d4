// Package freeze stops a process for a test, and returns only when it is really stopped.
//
// A signal sent is not a signal acted on: for some microseconds after kill(2) returns, the
// threads that run on another core still answer. A test that then calls the "frozen"
// process gets a real answer now and then.
package freeze

import (
	"syscall"
	"time"
)

// TB is the part of testing.TB that is needed.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
}

// limit is how long a process may take to stop on a busy machine.
const limit = 10 * time.Second

// Process sends SIGSTOP to pid and waits until every thread of it has stopped. Only Linux
// tells; elsewhere it returns once the signal is sent. Who called it ends the process, or
// continues it with SIGCONT.
func Process(tb TB, pid int) {
	tb.Helper()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		tb.Fatalf("freeze: process %d: %v", pid, err)
	}
	pause := time.NewTicker(time.Millisecond)
	defer pause.Stop()
	for end := time.Now().Add(limit); !stopped(pid); <-pause.C {
		if time.Now().After(end) {
			tb.Fatalf("freeze: process %d did not stop within %v", pid, limit)
		}
	}
}
