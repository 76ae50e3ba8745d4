package acp

import (
	"context"
	"time"
)

const (
	// historyQuiet is how long nothing of a loaded session must come after the answer until
	// its history is taken to be over, and historyMost bounds that wait. The protocol has the
	// history before the answer; Gemini 0.61 answers and then streams it.
	historyQuiet = 200 * time.Millisecond
	historyMost  = 5 * time.Second
)

// awaitHistory waits until the history of a session that was just loaded is over. What
// comes meanwhile has Replay set, so that no turn takes it for its own. A session that was
// not loaded has none.
func (c *Conn) awaitHistory(ctx context.Context, sessionID string, loaded bool) {
	quiet, most := time.NewTimer(historyQuiet), time.NewTimer(historyMost)
	defer quiet.Stop()
	defer most.Stop()
	for over := !loaded; !over; {
		select {
		case <-c.replayed:
			quiet.Reset(historyQuiet)
		case <-quiet.C:
			over = true
		case <-most.C:
			over = true
		case <-ctx.Done():
			over = true
		case <-c.closing:
			over = true
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unload(sessionID)
}

// unload takes back one reason to call a session's updates history; with mu held.
func (c *Conn) unload(sessionID string) {
	if c.loads[sessionID]--; c.loads[sessionID] <= 0 {
		delete(c.loads, sessionID)
	}
}
