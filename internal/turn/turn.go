package turn

import (
	"fmt"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
)

// Codes of this package.
const (
	CodeBlocked    fault.Code = "terminal_blocked"  // another Turn owns the terminal
	CodeReplay     fault.Code = "replay_mismatch"   // the same call id with another payload
	CodeNotAllowed fault.Code = "turn_state"        // the Turn's state forbids the command
	CodeStaleOwner fault.Code = "stale_owner"       // another Bridge owns the Turn by now
	CodeTerminal   fault.Code = "terminal_unusable" // the terminal is not provably ready
)

// Status is where a Turn stands for the Host.
type Status string

const (
	Created              Status = "created"                // recorded, nothing delivered
	WaitingForAgent      Status = "waiting_for_agent"      // the agent owes a result
	WaitingForController Status = "waiting_for_controller" // the Host must answer a prompt
	Stalled              Status = "stalled"                // nobody can tell; a decision is needed
	Idle                 Status = "idle"                   // completed, the result is in the outbox
	Failed               Status = "failed"                 // ended with an error
	Cancelled            Status = "cancelled"              // stopped on request
	Closed               Status = "closed"                 // abandoned or archived
)

// Blocking reports whether a Turn in this status keeps its terminal to itself.
func (s Status) Blocking() bool {
	switch s {
	case Idle, Failed, Cancelled, Closed:
		return false
	}
	return true
}

// Stage is how far a submission is proved. It only advances; after TextInjected nothing
// types again for this message, whatever happens.
type Stage string

const (
	Reserved        Stage = "reserved"         // durable, no byte sent
	TextInjected    Stage = "text_injected"    // written BEFORE the text may reach the agent
	EnterDispatched Stage = "enter_dispatched" // the Enter, or the request on a socket, was sent
	Accepted        Stage = "accepted"         // the agent's own record shows this request
	Aborted         Stage = "aborted"          // proved: no byte reached the agent
	NotAccepted     Stage = "not_accepted"     // proved: the request is still an unsent draft
	Uncertain       Stage = "uncertain"        // input was possible, its effect is unknown
)

// MayType reports whether input for this message may still begin. Only a reservation that
// nobody acted on allows it.
func (s Stage) MayType() bool { return s == Reserved }

// Turn is one task sent to one agent, until it is settled. It is a fold of its journal.
type Turn struct {
	ID        ids.TurnID    `json:"turn_id"`
	SessionID ids.SessionID `json:"session_id"`
	MessageID ids.MessageID `json:"message_id"`
	CallKey   string        `json:"call_key"` // idempotency: the same call is the same Turn
	Route     ids.RouteID   `json:"route_id"`
	// Origin is the Bridge that made the Turn. When a Bridge of another controller session
	// takes the Turn over, its callbacks wait under Origin's name for a Bridge of theirs.
	Origin ids.BridgeID `json:"origin,omitempty"`

	Agent        string         `json:"agent"`
	AgentVersion string         `json:"agent_version,omitempty"`
	Mode         string         `json:"mode,omitempty"`
	Channel      Channel        `json:"channel"`
	Terminal     ids.TerminalID `json:"terminal_id"`
	Endpoint     Endpoint       `json:"endpoint"`
	Process      Incarnation    `json:"process"`
	Workspace    string         `json:"workspace"`

	RequestHash    string `json:"request_hash"`
	RequestSummary string `json:"request"` // first line or so, redacted; the text itself is not stored
	RequestBytes   int    `json:"request_bytes"`
	Anchor         Anchor `json:"anchor"`

	Status       Status `json:"status"`
	Stage        Stage  `json:"submission"`
	Reason       string `json:"reason,omitempty"` // why stalled, failed, aborted or uncertain
	ThreadID     string `json:"native_thread_id,omitempty"`
	NativeTurnID string `json:"native_turn_id,omitempty"`

	Round             int       `json:"round,omitempty"`  // answers sent with respond: each is a submission of its own
	Answer            *Answer   `json:"answer,omitempty"` // the newest answer to a prompt
	CancelRequestedAt time.Time `json:"cancel_requested_at,omitzero"`
	StopProved        bool      `json:"stop_proved,omitempty"` // the agent's own evidence shows that it stopped after the cancel
	Renewals          int       `json:"renewals,omitempty"`
	Cancel            *Cancel   `json:"cancel,omitempty"`      // the newest request to stop
	RenewCall         string    `json:"renew_call,omitempty"`  // the tool call that renewed it last
	Disposition       string    `json:"disposition,omitempty"` // why a close was more than giving up, see Close

	Prompt     *Prompt `json:"prompt,omitempty"`      // open now
	LastPrompt string  `json:"last_prompt,omitempty"` // fingerprint told to the Host last
	// PromptGoneAt is when a prompt that nobody here answered left the screen last.
	PromptGoneAt time.Time `json:"prompt_gone_at,omitzero"`
	Trouble      string    `json:"trouble,omitempty"`       // newest evidence problem, code: detail
	ProcessGone  bool      `json:"process_gone,omitempty"`  // verified dead
	AnswerBytes  int       `json:"answer_bytes,omitempty"`  // of the final text, before any cut
	AnswerDigest string    `json:"answer_digest,omitempty"` // ids.TextHash of the final text
	FinalMessage string    `json:"final_message,omitempty"` // message id of the outcome
	Evidence     string    `json:"evidence,omitempty"`      // source of the outcome: rollout, socket, ...

	CreatedAt      time.Time     `json:"created_at"`
	EnteredAt      time.Time     `json:"entered_at,omitzero"`
	AcceptedAt     time.Time     `json:"accepted_at,omitzero"`
	LastActivityAt time.Time     `json:"last_activity_at,omitzero"`
	EndedAt        time.Time     `json:"ended_at,omitzero"`
	UpdatedAt      time.Time     `json:"updated_at"`
	Inactivity     time.Duration `json:"inactivity_ns"` // 0: no inactivity limit
	Hard           time.Duration `json:"hard_ns"`       // from CreatedAt, or from RoundAt
	RoundAt        time.Time     `json:"round_at,omitzero"`

	Seq int64 `json:"seq"` // number of the newest folded event
}

// Submission statuses as a send result names them.
const (
	SubmissionPending     = "async_pending"                 // accepted by the agent, proved
	SubmissionAcceptance  = "submission_pending_acceptance" // sent, not yet proved
	SubmissionNotAccepted = "submission_not_accepted"
	SubmissionUncertain   = "submission_uncertain"
	SubmissionAborted     = "submission_aborted"
)

// SubmissionStatus is the send result's word for the Turn's stage.
func (t Turn) SubmissionStatus() string {
	switch t.Stage {
	case Accepted:
		return SubmissionPending
	case NotAccepted:
		return SubmissionNotAccepted
	case Aborted:
		return SubmissionAborted
	case Uncertain, TextInjected:
		return SubmissionUncertain
	}
	return SubmissionAcceptance
}

// NextStep tells who is refused because of this Turn what to do.
func (t Turn) NextStep() string {
	if t.Status == Stalled {
		return "its callback asked for a decision: look at it with agent_knock_knock_status, and at the pane"
	}
	return "wait for its callback, or look at it with agent_knock_knock_status"
}

// TerminalKey is the fence of one Turn per terminal: this agent process in this pane. A new
// agent started in the same pane is another terminal.
func (t Turn) TerminalKey() string { return TerminalKey(t.Endpoint, t.Process) }

// TerminalKey is the key of an agent process in a pane.
func TerminalKey(e Endpoint, p Incarnation) string {
	return fmt.Sprintf("%s|%d|%s", e.Key(), p.PID, p.Birth)
}

// Monitored reports whether a monitor should run: input happened or may have, and no
// record has ended the Turn yet. A stalled Turn is still watched, because a late exact
// proof of completion settles it, unless its process is dead and its records were read.
func (t Turn) Monitored() bool {
	return t.Status.Blocking() && t.Stage != Aborted && !t.ProcessGone
}

// HardDeadline is when the Turn stalls whatever the agent does.
func (t Turn) HardDeadline() time.Time {
	if !t.RoundAt.IsZero() { // each round is a submission of its own
		return t.RoundAt.Add(t.Hard)
	}
	return t.CreatedAt.Add(t.Hard)
}

// NextDeadline is the earlier of the inactivity and the hard deadline; zero when the Turn
// waits for nothing.
func (t Turn) NextDeadline() time.Time {
	if t.Status != WaitingForAgent && t.Status != WaitingForController {
		return time.Time{}
	}
	var d time.Time
	if t.Hard > 0 {
		d = t.HardDeadline()
	}
	if t.Inactivity > 0 {
		if i := t.LastActivityAt.Add(t.Inactivity); d.IsZero() || i.Before(d) {
			d = i
		}
	}
	return d
}
