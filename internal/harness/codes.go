package harness

import (
	"errors"
	"maps"

	"github.com/agent-knock-knock/akk/internal/fault"
)

// The codes of the catalogue. Clients compare them; they never change.
const (
	InvalidParam          fault.Code = "invalid_param"
	UnknownParam          fault.Code = "unknown_param"
	LaunchInternal        fault.Code = "launch_internal"
	InvalidSessionID      fault.Code = "invalid_session_id"
	InvalidCwd            fault.Code = "invalid_cwd"
	InvalidModel          fault.Code = "invalid_model"
	InvalidMode           fault.Code = "invalid_mode"
	InvalidThinking       fault.Code = "invalid_thinking_level"
	InvalidTemplate       fault.Code = "invalid_template"
	InvalidIdempotencyKey fault.Code = "invalid_idempotency_key"
	EmptyMessage          fault.Code = "empty_message"
	MessageTooLarge       fault.Code = "message_too_large"
	RequestTooLarge       fault.Code = "request_too_large"
	ResponseTooLarge      fault.Code = "response_too_large"
	InvalidOption         fault.Code = "invalid_option"
	InvalidResponse       fault.Code = "invalid_response"
	InvalidAnswer         fault.Code = "invalid_answer"
	InvalidJSON           fault.Code = "invalid_json"
	InvalidConfig         fault.Code = "invalid_config"

	UnknownSession       fault.Code = "unknown_session"
	UnknownMessage       fault.Code = "unknown_message"
	UnknownTemplate      fault.Code = "unknown_template"
	UnsupportedOperation fault.Code = "unsupported_operation"
	UnsupportedMethod    fault.Code = "unsupported_method"
	UnsupportedMedia     fault.Code = "unsupported_media_type"
	UnsupportedTarget    fault.Code = "unsupported_target" // a launch target that this release cannot start

	Unauthorized    fault.Code = "unauthorized"
	ForbiddenHost   fault.Code = "forbidden_host"
	ForbiddenOrigin fault.Code = "forbidden_origin"

	Busy                 fault.Code = "busy"
	SessionExists        fault.Code = "session_exists"
	TemplateExists       fault.Code = "template_exists"
	IdempotencyConflict  fault.Code = "idempotency_conflict"
	SessionClosed        fault.Code = "session_closed"
	SessionFailed        fault.Code = "session_failed"
	NotReady             fault.Code = "not_ready"
	NoPendingRequest     fault.Code = "no_pending_request"
	RequestIDMismatch    fault.Code = "request_id_mismatch"
	MaxSessions          fault.Code = "max_sessions"
	ServerAlreadyRunning fault.Code = "server_already_running"
	OptionNotApplied     fault.Code = "option_not_applied"
	NotResumable         fault.Code = "not_resumable"

	AuthRequired          fault.Code = "authentication_required"
	AuthInProgress        fault.Code = "authentication_in_progress"
	AuthRateLimited       fault.Code = "authentication_rate_limited"
	AuthTimedOut          fault.Code = "authentication_timed_out"
	AuthFailed            fault.Code = "authentication_failed"
	AuthMethodUnsupported fault.Code = "auth_method_unsupported"

	SpawnFailed    fault.Code = "spawn_failed"
	StartupTimeout fault.Code = "startup_timeout"

	MalformedMessage    fault.Code = "malformed_message"
	LineTooLarge        fault.Code = "line_too_large"
	OutputLimit         fault.Code = "output_limit"
	OutputTimeout       fault.Code = "output_timeout"
	Transport           fault.Code = "transport"
	ACPError            fault.Code = "acp_rpc_error"
	InteractionTimeout  fault.Code = "interaction_timeout"
	Interrupted         fault.Code = "interrupted"
	CancelTimeout       fault.Code = "cancel_timeout"
	ProtocolUnsupported fault.Code = "protocol_version_unsupported"
)

// Detail is the structured part of an error: names and numbers that a program acts on.
type Detail map[string]any

// Error is a refusal or failure of the catalogue with its detail. It wraps the module's one
// error type, so fault.CodeOf and fault.Public work on it.
type Error struct {
	*coded
	Detail Detail
}

type coded = fault.Error

// Unwrap gives the coded error.
func (e *Error) Unwrap() error { return e.coded }

// Refuse returns a coded refusal. The text is one line that says what is wrong.
func Refuse(code fault.Code, format string, args ...any) *Error {
	return &Error{coded: fault.New(code, "harness", format, args...)}
}

// Fail is [Refuse] with a cause for logs.
func Fail(cause error, code fault.Code, format string, args ...any) *Error {
	e := Refuse(code, format, args...)
	e.Err = cause
	return e
}

// Advise returns a copy that tells what to do next.
func (e *Error) Advise(format string, args ...any) *Error {
	return &Error{coded: e.WithHint(format, args...), Detail: e.Detail}
}

// With returns a copy whose detail also holds d.
func (e *Error) With(d Detail) *Error {
	all := Detail{}
	maps.Copy(all, e.Detail)
	maps.Copy(all, d)
	return &Error{coded: e.coded, Detail: all}
}

// Problem is an error as it is stored with a message or session and shown to callers.
type Problem struct {
	Code    fault.Code `json:"code"`
	Message string     `json:"message"`
	Detail  Detail     `json:"detail,omitempty"`
}

// DetailOf is the detail of the first catalogue error in err's chain, nil without one.
func DetailOf(err error) Detail {
	var e *Error
	if errors.As(err, &e) {
		return e.Detail
	}
	return nil
}
