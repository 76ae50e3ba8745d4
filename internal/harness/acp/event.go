package acp

import "encoding/json"

// Event is something the agent did. The concrete types are pointers to: [Update], [Request],
// [Withdrawn], [Completed], [Settled], [Notification], [Stray], [Odd] and, always last and
// exactly once, [Closed].
type Event interface{ event() }

// Handler gets every event of one [Conn], one at a time, in the order of the wire. A call's
// answer is handed to its caller only after Handle returned for everything before it.
// Handle must not wait for a call of the same Conn and must not call [Conn.Close]; it may
// call [Conn.Reply]. While Handle is busy events are queued up to [Limits.QueueBytes].
type Handler interface{ Handle(Event) }

// HandlerFunc makes a function a Handler.
type HandlerFunc func(Event)

// Handle calls f.
func (f HandlerFunc) Handle(e Event) { f(e) }

// UpdateKind is the sessionUpdate field as the agent sent it.
type UpdateKind string

// The kinds that have a typed view. Any other kind arrives with Raw alone.
const (
	UserMessage      UpdateKind = "user_message_chunk"
	AgentMessage     UpdateKind = "agent_message_chunk"
	AgentThought     UpdateKind = "agent_thought_chunk"
	ToolCall         UpdateKind = "tool_call"
	ToolCallUpdate   UpdateKind = "tool_call_update"
	PlanUpdate       UpdateKind = "plan"
	CommandsUpdate   UpdateKind = "available_commands_update"
	ModeUpdate       UpdateKind = "current_mode_update"
	ConfigUpdate     UpdateKind = "config_option_update"
	SessionInfo      UpdateKind = "session_info_update"
	UsageUpdate      UpdateKind = "usage_update"
	methodUpdate                = "session/update"
	methodPrompt                = "session/prompt"
	methodLoad                  = "session/load"
	methodCancel                = "session/cancel"
	methodWithdraw              = "$/cancel_request"
	methodPermission            = "session/request_permission"
	methodElicit                = "elicitation/create"
	methodElicited              = "elicitation/complete"
)

// Update is one session/update. Exactly the field that fits Kind is set; when the agent's
// value does not have the shape that Kind promises, none is. Raw is always whole.
type Update struct {
	SessionID string
	// Turn is the label of the prompt that was open on this session when the frame was
	// read, "" for none: then the text belongs to no turn.
	Turn string
	// Replay says that a session/load of this session is not over: this is history.
	Replay bool
	Kind   UpdateKind

	Chunk    *Chunk         // the three message kinds
	Tool     *Tool          // ToolCall, ToolCallUpdate
	Plan     []PlanEntry    // PlanUpdate
	Commands []Command      // CommandsUpdate
	ModeID   string         // ModeUpdate
	Config   []ConfigOption // ConfigUpdate
	Title    string         // SessionInfo, "" when it is not about the title
	Usage    *ContextUsage  // UsageUpdate
	Raw      json.RawMessage
}

// Ref names one request of the agent. It is unique within a Conn for its whole life,
// whatever ids the agent chooses, and is never 0.
type Ref uint64

// RequestKind says which field of a [Request] is set.
type RequestKind string

// The kinds of requests that reach the Handler.
const (
	KindPermission  RequestKind = "permission"
	KindForm        RequestKind = "form"        // elicitation, mode form
	KindURL         RequestKind = "url"         // elicitation, mode url
	KindInformation RequestKind = "information" // the legacy plain question
	KindFile        RequestKind = "file"        // fs/*, only when advertised
	KindTerminal    RequestKind = "terminal"    // terminal/*, only when advertised
)

// Request is a question of the agent that waits for [Conn.Reply].
type Request struct {
	Ref       Ref
	SessionID string // "" when the agent named none
	Turn      string // as in Update
	Kind      RequestKind
	Method    string
	Params    json.RawMessage

	Permission  *Permission
	Elicitation *Elicitation // KindForm, KindURL
	Information *Information
	// Answered says that it was answered `cancelled` at once, because its turn is being
	// cancelled. There is nothing to reply.
	Answered bool
}

// Withdrawn says that the agent takes its question back. Reply is no longer possible.
type Withdrawn struct {
	Ref       Ref
	SessionID string
}

// Completed says that the URL question with this elicitation id is done.
type Completed struct{ ElicitationID string }

// Settled is the answer of a prompt, in its place between the updates: what comes later on
// that session has Turn "". Err is as in [Turn.Wait].
type Settled struct {
	SessionID string
	Turn      string
	Result    PromptResult
	Err       error
}

// Notification is a notification that has no typed event: a vendor's or an unknown one.
type Notification struct {
	Method string
	Params json.RawMessage
}

// Stray is a line on the agent's stdout that is not JSON.
type Stray struct {
	Text  string // at most 4 KiB, made valid UTF-8; NOT redacted
	Bytes int    // the line's whole length
}

// OddKind says what is odd about a frame.
type OddKind string

// Frames that are recorded and otherwise ignored.
const (
	OddNotObject     OddKind = "not_an_object"
	OddShape         OddKind = "no_method_and_no_id"
	OddUnknownID     OddKind = "response_to_nothing"  // unknown, null, or answered before
	OddLateAnswer    OddKind = "response_after_limit" // its caller's time had ended
	OddRefused       OddKind = "request_refused"      // answered with an error at once
	OddUpdateNoID    OddKind = "update_without_session"
	OddDuplicateID   OddKind = "request_id_in_use"
	OddCannotAnswer  OddKind = "request_with_null_id"
	oddPreviewLength         = 4 << 10
)

// Odd is a frame that could not be used. Raw is cut at 4 KiB.
type Odd struct {
	Kind   OddKind
	Method string
	Raw    string
}

// Closed is the last event. Err is never nil: its fault code is [Transport] for an end of
// the pipe, [LineTooLarge], [OutputLimit] or [Garbage] for what the agent did wrong, and
// [ClosedByUs] after Close, or the error given to [Conn.Abort].
type Closed struct{ Err error }

func (*Update) event()       {}
func (*Request) event()      {}
func (*Withdrawn) event()    {}
func (*Completed) event()    {}
func (*Settled) event()      {}
func (*Notification) event() {}
func (*Stray) event()        {}
func (*Odd) event()          {}
func (*Closed) event()       {}
