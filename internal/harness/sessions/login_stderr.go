package sessions

import (
	"context"
	"slices"
	"sync"
)

// boxLines is how many lines of an agent's error output wait to be looked at. The agent must
// not wait for us, so of more than these the oldest go first that say nothing of a login.
const boxLines = 64

// errorBox holds lines of an agent's error output. Its lock is never held with another one.
type errorBox struct {
	mu    sync.Mutex
	lines []errorLine
	busy  bool // somebody looks at them
}

type errorLine struct {
	text    string
	matters bool // it has a page or a code
}

// errorLines returns what takes the lines of the agent's error output. It never waits, and
// not for live.mu either: its caller reads the output, and who holds live.mu may ask that
// caller for the last lines. Lines count only while the session logs in.
func (l *live) errorLines() func(line string) {
	box := &errorBox{}
	return func(line string) {
		if l.svc.logins.holds(l.id) && box.put(line) {
			l.svc.group.Go(func(context.Context) { l.seeErrors(box) })
		}
	}
}

// holds reports whether the session logs in.
func (g *logins) holds(session string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, holder := range g.holder {
		if holder == session {
			return true
		}
	}
	return false
}

// put keeps a line, and reports whether nobody looks at them yet.
func (b *errorBox) put(text string) bool {
	line := errorLine{text, pageIn(text) != "" || codeIn(escapeForm().ReplaceAllString(text, "")) != ""}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.lines) >= boxLines {
		if i := slices.IndexFunc(b.lines, func(e errorLine) bool { return !e.matters }); i >= 0 {
			b.lines = slices.Delete(b.lines, i, i+1)
		}
	}
	if len(b.lines) < boxLines {
		b.lines = append(b.lines, line)
	}
	first := !b.busy
	b.busy = true
	return first
}

func (b *errorBox) take() []errorLine {
	b.mu.Lock()
	defer b.mu.Unlock()
	lines := b.lines
	b.lines, b.busy = nil, len(lines) > 0
	return lines
}

// seeErrors looks at the lines until there are none.
func (l *live) seeErrors(box *errorBox) {
	for lines := box.take(); len(lines) > 0; lines = box.take() {
		l.mu.Lock()
		for _, line := range lines {
			l.loginSees(line.text)
		}
		l.mu.Unlock()
	}
}
