package turn

import (
	"time"

	"github.com/agent-knock-knock/akk/internal/ids"
)

// SessionStatus says whether a Session is tied to a terminal now.
type SessionStatus string

const (
	SessionBound    SessionStatus = "bound"
	SessionDetached SessionStatus = "detached"
)

// Session is the durable name for one native thread that the product manages. It holds a
// history of Turns; at most one of them is not released at a time.
type Session struct {
	ID        ids.SessionID
	Agent     string
	Status    SessionStatus
	Terminal  string // TerminalKey of the bound terminal, "" when detached
	ThreadID  string // "" while the agent has not named its thread
	Workspace string
	Binding   Binding
	Revision  int64
	CreatedAt time.Time
	UpdatedAt time.Time
}

// Binding ties a Session to a terminal. A new one has a fresh id and the next generation;
// it is never repaired in place.
type Binding struct {
	ID         ids.BindingID  `json:"binding_id"`
	Generation int            `json:"generation"`
	TerminalID ids.TerminalID `json:"terminal_id"`
	Endpoint   Endpoint       `json:"endpoint"`
	Process    Incarnation    `json:"process"`
	BoundAt    time.Time      `json:"bound_at"`
}

// NewSession makes a Session bound to a terminal.
func NewSession(agent, threadID, workspace string, b Binding, now time.Time) Session {
	b.ID, b.Generation, b.BoundAt = ids.NewBinding(), 1, now
	return Session{ID: ids.NewSession(now), Agent: agent, Status: SessionBound, Terminal: TerminalKey(b.Endpoint, b.Process),
		ThreadID: threadID, Workspace: workspace, Binding: b, Revision: 1, CreatedAt: now, UpdatedAt: now}
}

// Rebind ties a detached or differently bound Session to a terminal.
func (s Session) Rebind(b Binding, now time.Time) Session {
	b.ID, b.Generation, b.BoundAt = ids.NewBinding(), s.Binding.Generation+1, now
	s.Status, s.Terminal, s.Binding = SessionBound, TerminalKey(b.Endpoint, b.Process), b
	s.Revision, s.UpdatedAt = s.Revision+1, now
	return s
}

// Detach unties a Session; its history stays.
func (s Session) Detach(now time.Time) Session {
	s.Status, s.Terminal = SessionDetached, ""
	s.Revision, s.UpdatedAt = s.Revision+1, now
	return s
}

// LearnThread gives a Session the thread id that the agent made for it.
func (s Session) LearnThread(id string, now time.Time) Session {
	s.ThreadID, s.Revision, s.UpdatedAt = id, s.Revision+1, now
	return s
}
