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
	defer c.unloaded(sessionID)
	if !loaded {
		return
	}
	answered := time.Now()
	for rest := historyQuiet; rest > 0; {
		timer := time.NewTimer(rest)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		case <-c.closing:
			timer.Stop()
			return
		}
		now := time.Now()
		rest = min(c.heard(sessionID).Add(historyQuiet).Sub(now), answered.Add(historyMost).Sub(now))
	}
}

// heard is when something of the history of a session came last.
func (c *Conn) heard(sessionID string) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.replayed[sessionID]
}

func (c *Conn) unloaded(sessionID string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unload(sessionID)
}

// unload takes back one reason to call a session's updates history; with mu held.
func (c *Conn) unload(sessionID string) {
	if c.loads[sessionID]--; c.loads[sessionID] <= 0 {
		delete(c.loads, sessionID)
		delete(c.replayed, sessionID)
	}
}
