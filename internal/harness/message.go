package harness

import (
	"encoding/json"
	"time"
)

// MessageState is where a message is.
type MessageState string

// The states of a message. The last three are terminal and never change.
const (
	MessageQueued    MessageState = "queued"
	MessageRunning   MessageState = "running"
	MessageWaiting   MessageState = "waiting_input"
	MessageCompleted MessageState = "completed"
	MessageFailed    MessageState = "failed"
	MessageCancelled MessageState = "cancelled"
)

// Terminal reports whether the state is an end.
func (s MessageState) Terminal() bool {
	return s == MessageCompleted || s == MessageFailed || s == MessageCancelled
}

// Outcome says how a completed message ended.
type Outcome string

// The outcomes of a completed message.
const (
	OutcomeOK        Outcome = "ok"
	OutcomeTruncated Outcome = "truncated"  // the model's token limit
	OutcomeTurnLimit Outcome = "turn_limit" // the agent's limit of requests
	OutcomeRefused   Outcome = "refused"
	OutcomeUnknown   Outcome = "unknown" // a stop reason that is not in the protocol
)

// Reasons of a cancelled message.
const (
	ReasonUser          = "user_cancel"
	ReasonRejected      = "rejected"
	ReasonTimeout       = "interaction_timeout"
	ReasonSessionClosed = "session_closed"
	ReasonAgent         = "harness_cancelled"
)

// Text is one group of the agent's words: what it sent under one message id.
type Text struct {
	ID   string `json:"id,omitempty"`
	Text string `json:"text"`
}

// Tool is a tool call as it stands. A call that was seen only in a question is one too.
type Tool struct {
	ID        string          `json:"tool_call_id"`
	Title     string          `json:"title,omitempty"`
	Kind      string          `json:"kind,omitempty"`
	Status    string          `json:"status,omitempty"`
	Locations []Location      `json:"locations,omitempty"`
	Changed   []string        `json:"changed_files,omitempty"` // paths of its diffs
	RawInput  json.RawMessage `json:"raw_input,omitempty"`
	Output    string          `json:"output,omitempty"`
}

// Location is a place that a tool call works on.
type Location struct {
	Path string `json:"path"`
	Line int    `json:"line,omitempty"`
}

// Usage is what the agent says that a message cost. Absent numbers are 0.
type Usage struct {
	Input   int64   `json:"input_tokens,omitempty"`
	Output  int64   `json:"output_tokens,omitempty"`
	Cached  int64   `json:"cached_tokens,omitempty"`
	Thought int64   `json:"thought_tokens,omitempty"`
	Total   int64   `json:"total_tokens,omitempty"`
	Cost    float64 `json:"cost,omitempty"`
	Money   string  `json:"currency,omitempty"`
}

// Result is what a message left behind. A failed or cancelled message has it too, under
// the name partial. Truncated says that a reply had no room for all of it; TextBytes is then
// the length of the whole text.
type Result struct {
	Text           string   `json:"text"`
	Truncated      bool     `json:"truncated,omitempty"`
	TextBytes      int      `json:"text_bytes,omitempty"`
	Messages       []Text   `json:"messages,omitempty"`
	Tools          []Tool   `json:"tool_calls"`
	ChangedFiles   []string `json:"changed_files,omitempty"`
	Usage          *Usage   `json:"usage,omitempty"`
	AgentSessionID string   `json:"harness_session_id,omitempty"`
}

// Rejected is a question that was answered with no.
type Rejected struct {
	RequestID string `json:"request_id"`
	Title     string `json:"title,omitempty"`
	Routed    string `json:"routed"`
}

// Message is the record of one message.
type Message struct {
	ID           string
	SessionID    string
	State        MessageState
	KeyHash      string // of the idempotency key, "" without one
	TextHash     string
	TextBytes    int
	StopReason   string
	Outcome      Outcome
	CancelReason string
	CancelledBy  string
	Problem      *Problem
	Errors       []Problem // what went wrong beside the end, such as a cancel that was not obeyed
	Unsupported  []string  // kinds of events that had no meaning for us
	Rejected     []Rejected
	Orphaned     bool
	Result       *Result
	CreatedAt    time.Time
	StartedAt    time.Time
	FinishedAt   time.Time
}

// MessageEvent is a fact about a message.
type MessageEvent interface{ messageEvent() }

// The facts that move a message.
type (
	// MessageStarted: the prompt is on its way to the agent.
	MessageStarted struct{}
	// MessageAsked: a question is open.
	MessageAsked struct{}
	// MessageAnswered: no question is open any more.
	MessageAnswered struct{}
	// MessageSettled: the agent answered the prompt. CancelReason is set when we asked for
	// a cancel. Failure is set when the answer is an error.
	MessageSettled struct {
		StopReason   string
		CancelReason string
		CancelledBy  string
		Failure      *Problem
	}
	// MessageBroken: the message ends without the agent's answer.
	MessageBroken struct {
		Problem  Problem
		Orphaned bool
	}
	// MessageDropped: it ends as cancelled without the agent's answer.
	MessageDropped struct{ Reason, By string }
)

func (MessageStarted) messageEvent()  {}
func (MessageAsked) messageEvent()    {}
func (MessageAnswered) messageEvent() {}
func (MessageSettled) messageEvent()  {}
func (MessageBroken) messageEvent()   {}
func (MessageDropped) messageEvent()  {}

// Moved applies an event. It reports false, and changes nothing, for an event that the
// state does not know: a terminal message stays as it is whatever comes.
func (m Message) Moved(e MessageEvent, now time.Time) (Message, bool) {
	if m.State.Terminal() {
		return m, false
	}
	from := m.State
	switch e := e.(type) {
	case MessageStarted:
		if from != MessageQueued {
			return m, false
		}
		m.State, m.StartedAt = MessageRunning, now
	case MessageAsked:
		if from != MessageRunning {
			return m, false
		}
		m.State = MessageWaiting
	case MessageAnswered:
		if from != MessageWaiting {
			return m, false
		}
		m.State = MessageRunning
	case MessageSettled:
		if from == MessageQueued {
			return m, false
		}
		m = m.settled(e)
	case MessageBroken:
		m.State, m.Problem, m.Orphaned = MessageFailed, &e.Problem, e.Orphaned
	case MessageDropped:
		m.State, m.CancelReason, m.CancelledBy = MessageCancelled, e.Reason, e.By
	default:
		return m, false
	}
	if m.State.Terminal() {
		m.FinishedAt = now
	}
	return m, true
}

func (m Message) settled(e MessageSettled) Message {
	m.StopReason = e.StopReason
	switch {
	// An agent may answer a cancel with an error; it was obeyed all the same.
	case e.Failure != nil && e.CancelReason != "":
		m.State, m.CancelReason, m.CancelledBy = MessageCancelled, e.CancelReason, e.CancelledBy
		m.Errors = append(m.Errors, *e.Failure)
	case e.Failure != nil:
		m.State, m.Problem = MessageFailed, e.Failure
	case e.StopReason == "cancelled":
		m.State, m.CancelReason, m.CancelledBy = MessageCancelled, e.CancelReason, e.CancelledBy
		if m.CancelReason == "" {
			m.CancelReason, m.CancelledBy = ReasonAgent, "harness"
		}
	default:
		m.State, m.Outcome = MessageCompleted, outcomeOf(e.StopReason)
	}
	return m
}

func outcomeOf(stop string) Outcome {
	switch stop {
	case "end_turn":
		return OutcomeOK
	case "max_tokens":
		return OutcomeTruncated
	case "max_turn_requests":
		return OutcomeTurnLimit
	case "refusal":
		return OutcomeRefused
	}
	return OutcomeUnknown
}

// Replay decides what a repeated idempotency key means: the earlier message again, or a
// conflict when the text is another.
func (m Message) Replay(textHash string) error {
	if m.TextHash == textHash {
		return nil
	}
	return Refuse(IdempotencyConflict, "the idempotency key belongs to message %s with another text", m.ID).
		Advise("use a new key for a new text").With(Detail{"message_id": m.ID, "session_id": m.SessionID})
}
