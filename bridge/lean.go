package main

import (
	"context"
	"time"

	"github.com/agent-knock-knock/akk/internal/clock"
	"github.com/agent-knock-knock/akk/internal/proc"
)

// leanEvery is how often a Bridge gives the pages of its program back: its resident size is
// what it used in that time. To use them again costs some hundred page faults.
const leanEvery = time.Minute

// lean keeps a Bridge that waits small. The first sweep, which follows the start, gives back
// what only the start needed.
type lean struct {
	clock clock.Clock
	next  time.Time
}

func (l *lean) Sweep(context.Context) error {
	now := l.clock.Now()
	if now.Before(l.next) {
		return nil
	}
	l.next = now.Add(leanEvery)
	_ = proc.ReleaseImage() // what stays resident harms nothing, and a line a minute would
	return nil
}
