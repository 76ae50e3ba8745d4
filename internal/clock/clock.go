// Package clock passes time as a value, so that a test moves it by hand.
//
// Rules take now as an argument and need no clock; only loops that wait take one.
package clock

import "time"

// Clock tells the time and makes timers.
type Clock interface {
	Now() time.Time
	// NewTimer returns a channel that receives once after d, and a stop function that
	// releases the timer; stop may be called at any time, more than once.
	NewTimer(d time.Duration) (c <-chan time.Time, stop func())
}

// System is the real clock. Inside a testing/synctest bubble it follows the bubble.
type System struct{}

// Now returns the current time.
func (System) Now() time.Time { return time.Now() }

// NewTimer starts a real timer.
func (System) NewTimer(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTimer(d)
	return t.C, func() { t.Stop() }
}
