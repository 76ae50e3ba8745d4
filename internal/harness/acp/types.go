package acp

import (
	"encoding/json"
	"fmt"

	"github.com/agent-knock-knock/akk/internal/fault"
)

// Codes of this package's errors.
const (
	Transport       fault.Code = "transport" // the pipe ended or broke
	LineTooLarge    fault.Code = "line_too_large"
	OutputLimit     fault.Code = "output_limit" // more unread output than is held
	Garbage         fault.Code = "malformed_message"
	RPCFailed       fault.Code = "acp_rpc_error" // the agent answered with an error
	AuthRequired    fault.Code = "authentication_required"
	WrongVersion    fault.Code = "protocol_version_unsupported"
	Busy            fault.Code = "busy"
	NoPending       fault.Code = "no_pending_request"
	InvalidOption   fault.Code = "invalid_option"
	ClosedByUs      fault.Code = "session_closed"
	ProtocolVersion            = 1
)

// JSON-RPC and ACP error codes.
const (
	CodeParse          = -32700
	CodeInvalidRequest = -32600
	CodeNoMethod       = -32601
	CodeInvalidParams  = -32602
	CodeInternal       = -32603
	CodeCancelled      = -32800
	CodeAuthRequired   = -32000
	CodeNoResource     = -32002
)

// RPCError is the agent's answer to a call that failed. Message and Data are the agent's
// words and NOT redacted. Find it with errors.As in the error of a call; that error's fault
// code is AuthRequired for -32000 and RPCFailed for all others.
type RPCError struct {
	Method  string
	Code    int
	Message string
	Data    json.RawMessage
}

// Error returns the agent's message with its code.
func (e *RPCError) Error() string { return fmt.Sprintf("%s: %s (%d)", e.Method, e.Message, e.Code) }

// Limits bounds what one Conn holds. A zero field means its default.
type Limits struct {
	LineBytes     int // longest frame, default 100 MiB; beyond: LineTooLarge
	QueueBytes    int // frames read and not handled yet, default 64 MiB; beyond: OutputLimit
	OutBytes      int // frames not written yet, default 64 MiB; beyond: a call is refused
	StrayBytes    int // stdout that is not JSON, default 1 MiB in all; beyond: Garbage
	StrayLines    int // the same in lines, default 1000
	OpenQuestions int // unanswered requests, default 1024; beyond: refused with -32603
}

// Tap sees every line in both directions as it is on the wire, without its newline, before
// anything else is done with it. It is called from two goroutines, must be quick, and must
// not keep line. Nothing is redacted.
type Tap func(fromAgent bool, line []byte)

// Options of Open. The zero value is usable.
type Options struct {
	Limits Limits
	Tap    Tap // may be nil
}

// Info names a program.
type Info struct {
	Name    string `json:"name"`
	Title   string `json:"title,omitempty"`
	Version string `json:"version"`
}

// ClientCaps is what we tell the agent that we can do. A request for anything else is
// answered -32601 (-32602 for a url question) without asking the Handler.
type ClientCaps struct {
	ReadFile, WriteFile, Terminal bool
	ElicitForm, ElicitURL         bool
	BooleanOptions                bool
	TerminalAuth                  bool
}

// AgentCaps is what the agent says that it can do.
type AgentCaps struct {
	Load, Resume, List, CloseSession, Fork, Delete bool
	PromptImage, PromptAudio, PromptContext        bool
	MCPHTTP, MCPSSE                                bool
	Logout                                         bool
}

// AuthMethod is one way to log in. Type "" is "agent".
type AuthMethod struct {
	ID          string            `json:"id"`
	Name        string            `json:"name"`
	Description string            `json:"description"`
	Type        string            `json:"type"`
	Args        []string          `json:"args"`
	Env         map[string]string `json:"env"`
	Meta        json.RawMessage   `json:"_meta"`
}

// Initialized is the agent's answer to initialize.
type Initialized struct {
	Agent       Info
	Caps        AgentCaps
	AuthMethods []AuthMethod
	Raw         json.RawMessage
}

// SessionParams are the parameters of session/new, load and resume.
type SessionParams struct {
	CWD                   string            // absolute
	MCPServers            []json.RawMessage // as the protocol wants them; nil is sent as []
	AdditionalDirectories []string
	Meta                  json.RawMessage // sent as _meta when not empty
}

// Session is what the agent says about an opened session.
type Session struct {
	ID     string
	Config []ConfigOption // nil when the agent has no configOptions
	Modes  *Modes         // nil when absent
	Models *Models        // the older form, nil when absent
	Raw    json.RawMessage
}

// Choice is one value of a selection.
type Choice struct {
	Value       string `json:"value"`
	Name        string `json:"name"`
	Description string `json:"description"`
}

// ConfigOption is one setting of a session. Type is "select" or "boolean"; Current holds
// the string, or "true" and "false".
type ConfigOption struct {
	ID, Name, Category, Type string
	Current                  string
	Choices                  []Choice // groups are flattened in order
	Raw                      json.RawMessage
}

// Modes is the older list of modes.
type Modes struct {
	Current   string
	Available []Choice
}

// Models is the older list of models.
type Models struct {
	Current   string
	Available []Choice
}

// Chunk is a piece of a message. Text is set for text content; any other content is in
// Content alone.
type Chunk struct {
	MessageID   string // "" when the agent gave none
	ContentType string
	Text        string
	Content     json.RawMessage
}

// Tool is a tool call or a change of one. A nil field means: not mentioned, keep the old.
type Tool struct {
	ID        string
	Title     *string
	Kind      *string
	Status    *string
	Name      *string
	Content   *[]ToolContent
	Locations *[]Location
	RawInput  json.RawMessage
	RawOutput json.RawMessage
	// Output is terminal output that the agent sends beside the protocol, in _meta.
	Output string
	Meta   json.RawMessage
}

// ToolContent is one item of a tool call's content.
type ToolContent struct {
	Type       string // content, diff, terminal or unknown
	Text       string // of text content
	Path       string // of a diff
	OldText    *string
	NewText    string
	TerminalID string
	Raw        json.RawMessage
}

// Location is a place in a file. Line is 0 when absent.
type Location struct {
	Path string `json:"path"`
	Line int    `json:"line"`
}

// PlanEntry is one step of the agent's plan.
type PlanEntry struct {
	Content  string `json:"content"`
	Priority string `json:"priority"`
	Status   string `json:"status"`
}

// Command is a slash command that the agent offers.
type Command struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

// ContextUsage says how full the context is.
type ContextUsage struct {
	Used int64           `json:"used"`
	Size int64           `json:"size"`
	Cost json.RawMessage `json:"cost"`
}

// Usage counts the tokens of one turn. A nil field was not reported.
type Usage struct {
	Input      *int64          `json:"input_tokens,omitempty"`
	Output     *int64          `json:"output_tokens,omitempty"`
	Total      *int64          `json:"total_tokens,omitempty"`
	CacheRead  *int64          `json:"cached_read_tokens,omitempty"`
	CacheWrite *int64          `json:"cached_write_tokens,omitempty"`
	Thought    *int64          `json:"thought_tokens,omitempty"`
	Raw        json.RawMessage `json:"-"`
}

// StopReason is why a turn ended, in the agent's word.
type StopReason string

// The stop reasons of protocol version 1. Others are kept as they are.
const (
	EndTurn     StopReason = "end_turn"
	MaxTokens   StopReason = "max_tokens"
	MaxRequests StopReason = "max_turn_requests"
	Refusal     StopReason = "refusal"
	Cancelled   StopReason = "cancelled"
)

// PromptResult is the answer to a prompt. Usage is nil when none was reported.
type PromptResult struct {
	StopReason StopReason
	Usage      *Usage
	Raw        json.RawMessage
}

// Option is one answer that a permission request offers.
type Option struct {
	ID   string `json:"optionId"`
	Name string `json:"name"`
	Kind string `json:"kind"` // allow_once, allow_always, reject_once, reject_always, or unknown
}

// Permission is a request_permission.
type Permission struct {
	Tool    Tool
	Options []Option
}

// Elicitation is a form or a URL that the user has to deal with.
type Elicitation struct {
	ID         string // elicitationId of a url question
	Message    string
	Schema     json.RawMessage // form
	URL        string
	ToolCallID string
}

// Information is a question in plain words.
type Information struct {
	Title   string
	Message string
	Schema  json.RawMessage // may be empty
}
