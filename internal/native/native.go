// Package native holds the rules of Transitions: one change of the native thread that a
// terminal shows, asked for by a controller. A Transition is a fold of its events, like a
// Turn; its command is typed at most once, and what the terminal shows afterwards is
// proved or said to be unknown.
//
// It owns no terminal, no agent's words and no Store: values in, values out, with the time
// as an argument.
package native

import (
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/turn"
)

// Codes of this package.
const (
	CodeOpen       fault.Code = "transition_open"  // another Transition keeps the terminal
	CodeNotAllowed fault.Code = "transition_state" // the Transition's state forbids the command
	CodeReplay     fault.Code = "replay_mismatch"  // the same call id with other arguments
)

// Operation is what a Transition does.
type Operation string

const (
	NewThread    Operation = "new_thread"
	ResumeThread Operation = "resume_thread"
)

// Status is how far a Transition is proved. It only advances. After Prepared nothing is
// typed for it again, whatever happens.
type Status string

const (
	Prepared    Status = "prepared"    // durable, no byte sent
	Dispatching Status = "dispatching" // written BEFORE the command may reach the agent
	Submitted   Status = "submitted"   // Enter was pressed
	Verified    Status = "verified"    // the terminal provably shows the new thread
	Committed   Status = "committed"   // and the Sessions say so
	Uncertain   Status = "uncertain"   // input was possible, what the terminal shows is unknown
	Aborted     Status = "aborted"     // proved: the terminal still shows the thread that it showed
)

// SettleLimit is how long after the first possible byte an agent may take to show the new
// thread before the Transition is uncertain.
const SettleLimit = time.Minute

// Transition is one change of thread of one terminal.
type Transition struct {
	ID        ids.TransitionID `json:"transition_id"`
	CallKey   string           `json:"call_key"` // idempotency: the same call is the same Transition
	Operation Operation        `json:"operation"`

	Agent        string           `json:"agent"`
	AgentVersion string           `json:"agent_version"`
	Terminal     ids.TerminalID   `json:"terminal_id"`
	Endpoint     turn.Endpoint    `json:"endpoint"`
	Process      turn.Incarnation `json:"process"`
	Workspace    string           `json:"workspace"`

	// FromThread is the thread that the terminal showed, "" when it provably had none.
	FromThread  string        `json:"previous_native_thread_id,omitempty"`
	FromSession ids.SessionID `json:"previous_session_id,omitempty"`
	// WantThread is the thread to resume, "" for a new one.
	WantThread string `json:"wanted_native_thread_id,omitempty"`

	Status    Status `json:"status"`
	Reason    string `json:"reason,omitempty"`    // why aborted, uncertain or abandoned
	Abandoned bool   `json:"abandoned,omitempty"` // given up by a person, or its process ended

	ThreadID   string        `json:"native_thread_id,omitempty"` // proved
	SessionID  ids.SessionID `json:"session_id,omitempty"`
	BindingID  ids.BindingID `json:"binding_id,omitempty"`
	Generation int           `json:"binding_generation,omitempty"`

	CreatedAt    time.Time `json:"created_at"`
	DispatchedAt time.Time `json:"dispatched_at,omitzero"`
	UpdatedAt    time.Time `json:"updated_at"`
	Seq          int64     `json:"seq"` // number of the newest folded event
}

// TerminalKey is the fence: this agent process in this pane.
func (t Transition) TerminalKey() string { return turn.TerminalKey(t.Endpoint, t.Process) }

// Open reports whether the Transition keeps its terminal to itself.
func (t Transition) Open() bool {
	switch t.Status {
	case Committed, Aborted:
		return false
	}
	return !t.Abandoned
}

// MayType reports whether its command may still be typed.
func (t Transition) MayType() bool { return t.Status == Prepared && !t.Abandoned }

// NextStep tells who is refused because of this Transition what to do.
func (t Transition) NextStep() string {
	if t.Status == Uncertain {
		return "look at the pane; then a person may give the transition up with agent_knock_knock_close and its expected_transition_id"
	}
	return "it settles within a minute; call agent_knock_knock_list again"
}

// Proves reports whether thread, shown by the terminal, is what the Transition wanted.
func (t Transition) Proves(thread string) bool {
	if t.Operation == ResumeThread {
		return thread != "" && thread == t.WantThread
	}
	return thread != "" && thread != t.FromThread
}
