package harness

import (
	"strconv"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
)

func itoa(n int) string { return strconv.Itoa(n) }

// SessionState is where a session is in its life.
type SessionState string

// The states of a session. Closed, Failed and Interrupted sessions have no agent;
// Interrupted is what a new server finds of a session that its predecessor did not end.
const (
	StateStarting     SessionState = "starting"
	StateAuthRequired SessionState = "authentication_required"
	StateReady        SessionState = "ready"
	StateFailed       SessionState = "failed"
	StateClosed       SessionState = "closed"
	StateInterrupted  SessionState = "interrupted"
)

// Live reports whether an agent process belongs to the state.
func (s SessionState) Live() bool {
	return s == StateStarting || s == StateAuthRequired || s == StateReady
}

// SessionEvent is a fact about a session.
type SessionEvent string

// The facts that move a session.
const (
	SessionOpened    SessionEvent = "opened"     // the agent has a session and its options are applied
	SessionLoggedOut SessionEvent = "logged_out" // the agent demands a login
	SessionLost      SessionEvent = "lost"       // the agent is gone, or cannot be trusted any more
	SessionClosing   SessionEvent = "closing"    // close, idle reap, shutdown, or a login that took too long
	SessionFound     SessionEvent = "found"      // a new server finds it in its database
	SessionReopening SessionEvent = "reopening"  // a new agent is started for it
)

// sessionTable is the whole state machine: an event that a state does not name changes
// nothing.
var sessionTable = map[SessionState]map[SessionEvent]SessionState{
	StateStarting: {SessionOpened: StateReady, SessionLoggedOut: StateAuthRequired, SessionLost: StateFailed, SessionClosing: StateClosed,
		SessionFound: StateInterrupted},
	StateAuthRequired: {SessionOpened: StateReady, SessionLost: StateFailed, SessionClosing: StateClosed, SessionFound: StateInterrupted},
	StateReady:        {SessionLoggedOut: StateAuthRequired, SessionLost: StateFailed, SessionClosing: StateClosed, SessionFound: StateInterrupted},
	StateFailed:       {SessionClosing: StateClosed, SessionReopening: StateStarting},
	StateInterrupted:  {SessionClosing: StateClosed, SessionReopening: StateStarting},
	StateClosed:       {SessionReopening: StateStarting},
}

// Next is the state after the event, and whether the event is one in this state.
func (s SessionState) Next(e SessionEvent) (SessionState, bool) {
	to, ok := sessionTable[s][e]
	if !ok {
		return s, false
	}
	return to, true
}

// Session is the record of a session. Questions counts the questions ever asked, so that
// their ids are never used again; Seq is the number of its newest event.
type Session struct {
	ID             string
	State          SessionState
	Launch         Launch // without secret values: see WithheldEnv
	WithheldEnv    []string
	ModelID        string
	ModelName      string
	Thinking       string
	PermissionMode string
	AgentName      string
	AgentVersion   string
	AgentSessionID string
	CanResume      bool // the agent can take its session up again
	Problem        *Problem
	Questions      int
	Messages       int
	Seq            int64
	CreatedAt      time.Time
	UpdatedAt      time.Time
	ClosedAt       time.Time
}

// Moved applies an event. It reports false, and changes nothing, when the state does not
// know the event. p says why a session is lost; it is cleared when the session opens.
func (s Session) Moved(e SessionEvent, p *Problem, now time.Time) (Session, bool) {
	to, ok := s.State.Next(e)
	if !ok {
		return s, false
	}
	s.State, s.UpdatedAt = to, now
	switch to {
	case StateClosed:
		s.ClosedAt = now
	case StateReady, StateStarting:
		s.Problem, s.ClosedAt = nil, time.Time{}
	}
	if p != nil {
		s.Problem = p
	}
	return s, true
}

// Slot is what a session is doing. Only an idle slot starts anything.
type Slot string

// The slots.
const (
	SlotIdle           Slot = "idle"
	SlotAccepting      Slot = "accepting"
	SlotRunning        Slot = "running"
	SlotWaitingInput   Slot = "waiting_input"
	SlotSwitching      Slot = "switching_options"
	SlotCancelling     Slot = "cancelling"
	SlotAuthenticating Slot = "authenticating"
)

// Doing are the facts from which a slot follows.
type Doing struct {
	Message        MessageState // of the message that is not terminal, "" for none
	Unsettled      bool         // a prompt has no answer yet
	Cancelling     bool
	Switching      bool
	Authenticating bool
}

// Slot derives the one thing that the session does.
func (d Doing) Slot() Slot {
	switch {
	case d.Cancelling, d.Unsettled && d.Message == "":
		return SlotCancelling
	case d.Message == MessageQueued:
		return SlotAccepting
	case d.Message == MessageRunning:
		return SlotRunning
	case d.Message == MessageWaiting:
		return SlotWaitingInput
	case d.Switching:
		return SlotSwitching
	case d.Authenticating:
		return SlotAuthenticating
	}
	return SlotIdle
}

// MayStart refuses work that only a ready and idle session takes.
func MayStart(s Session, slot Slot) error {
	switch s.State {
	case StateReady:
		if slot != SlotIdle {
			return Refuse(Busy, "the session is %s", slot).Advise("wait for its message, or cancel it").With(Detail{"operation": slot})
		}
		return nil
	case StateAuthRequired:
		if slot == SlotAuthenticating {
			return Refuse(AuthRequired, "the agent's login is in progress").Advise("call authenticate until it is ready").With(Detail{"session_id": s.ID, "next_action": "authenticate"})
		}
		return NeedLogin(s.ID)
	case StateStarting:
		return Refuse(NotReady, "the session is still starting").Advise("try again in a moment")
	case StateClosed:
		return s.goOn(Refuse(SessionClosed, "the session is closed"))
	case StateInterrupted:
		return s.goOn(Refuse(Interrupted, "the session was interrupted by a restart of the server"))
	}
	e := s.goOn(Refuse(SessionFailed, "the session failed"))
	if s.Problem != nil {
		e = e.With(Detail{"cause": s.Problem.Code})
	}
	return e
}

// goOn says how to go on when a session has no agent any more: where the agent keeps its
// conversations, with the same one. What was never stored has to be given again.
func (s Session) goOn(e *Error) *Error {
	d := Detail{"session_id": s.ID, "next_action": "create_session"}
	if s.AgentSessionID == "" || !s.CanResume {
		return e.Advise("create a new session; it knows nothing of this one").With(d)
	}
	d["resume_session_id"], d["harness"], d["model_id"], d["cwd"] = s.AgentSessionID, s.Launch.Harness, s.ModelID, s.Launch.Cwd
	if len(s.WithheldEnv) > 0 {
		d["give_again"] = s.WithheldEnv
	}
	return e.Advise("call create_session as for this session and with resume_session_id; resumed tells whether the agent remembers").With(d)
}

// NeedLogin is the refusal of everything that needs a login first.
func NeedLogin(session string) *Error {
	return Refuse(AuthRequired, "the agent demands a login").Advise("call authenticate with this session_id").
		With(Detail{"session_id": session, "next_action": "authenticate"})
}

// ProblemOf makes a storable problem of an error: its public words and its detail, never
// its cause.
func ProblemOf(err error) *Problem {
	if err == nil {
		return nil
	}
	code, msg, hint := fault.Public(err)
	if hint != "" {
		msg += " (" + hint + ")"
	}
	return &Problem{Code: code, Message: msg, Detail: DetailOf(err)}
}
