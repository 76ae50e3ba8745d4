// Package offer remembers what a tool showed to the Host and another tool may act on: a
// reviewed prompt, a catalogue of models, a list of threads. The model passes a name back,
// never the authority itself, so nothing that it says can stand for what it did not see.
//
// Offers live in memory only: a Bridge that starts again has shown nothing to anybody.
package offer

import (
	"sync"
	"time"

	"github.com/agent-knock-knock/akk/internal/clock"
)

// The limits of spec part 2.0.
const (
	Life = 10 * time.Minute
	Max  = 512
)

// Book holds the offers of one kind. Its methods are safe for concurrent use.
type Book[T any] struct {
	clock clock.Clock
	life  time.Duration

	mu sync.Mutex
	m  map[string]entry[T]
}

type entry[T any] struct {
	value T
	at    time.Time
}

// New returns an empty Book whose offers live for life.
func New[T any](c clock.Clock, life time.Duration) *Book[T] {
	return &Book[T]{clock: c, life: life, m: map[string]entry[T]{}}
}

// Put makes value the offer for target, in place of an older one. When the Book is full
// the oldest offer goes.
func (b *Book[T]) Put(target string, value T) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.clock.Now()
	if _, ok := b.m[target]; !ok && len(b.m) >= Max {
		b.drop(now)
	}
	b.m[target] = entry[T]{value, now}
}

// drop removes what is too old, or else the oldest.
func (b *Book[T]) drop(now time.Time) {
	oldest := ""
	for k, e := range b.m {
		if now.Sub(e.at) >= b.life {
			delete(b.m, k)
		} else if oldest == "" || e.at.Before(b.m[oldest].at) {
			oldest = k
		}
	}
	if len(b.m) >= Max {
		delete(b.m, oldest)
	}
}

// Get returns the offer for target if it still lives, and keeps it.
func (b *Book[T]) Get(target string) (value T, at time.Time, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e, ok := b.m[target]
	if !ok || b.clock.Now().Sub(e.at) >= b.life {
		return value, time.Time{}, false
	}
	return e.value, e.at, true
}

// Take returns the offer for target if it still lives, and consumes it.
func (b *Book[T]) Take(target string) (value T, ok bool) {
	value, _, ok = b.Get(target)
	b.Void(target)
	return value, ok
}

// Void removes the offer for target: what it named has changed.
func (b *Book[T]) Void(target string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.m, target)
}
