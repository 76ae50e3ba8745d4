// Package client talks to a harness server: one POST per operation, one envelope, and the
// settings of who talks.
//
// It keeps no state of a session and repeats nothing that changes something. It must never
// know MCP, nor how a server is started.
package client

import "github.com/agent-knock-knock/akk/internal/fault"

// The codes that are ours; every other code is the server's own.
const (
	IncompatibleServer     fault.Code = "incompatible_server"
	StartupFailed          fault.Code = "startup_failed"
	AutostartDisabled      fault.Code = "autostart_disabled"
	RemoteAutostartRefused fault.Code = "remote_autostart_refused"
	ServerUnreachable      fault.Code = "server_unreachable"
	HTTPTimeout            fault.Code = "http_timeout"
	InvalidReply           fault.Code = "invalid_response"
	ElicitationFailed      fault.Code = "elicitation_failed"
	UnofferedOption        fault.Code = "unoffered_option"
	SubmissionUnknown      fault.Code = "submission_unknown"
	Cancelled              fault.Code = "cancelled" // the Host took the call back
)

// Protocol is the version that a compatible server answers to ping.
const Protocol = 4
