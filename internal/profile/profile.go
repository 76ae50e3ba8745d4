// Package profile owns Host Profile v1: what a Host's administrator says about the Host,
// its trusted session and its callback program.
//
// A Profile is code-equivalent configuration, because it selects an executable: parsing
// is strict, unknown is refused, and a refusal names the JSON path and the rule, never a
// value. The package reads the selected file and looks at the callback program on disk.
// It runs nothing, stores nothing, and must never know a Turn, a tool or a model.
package profile

import (
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/strictjson"
)

// The exact words of Host Profile v1.
const (
	SchemaURL     = "https://raw.githubusercontent.com/scotthuang/agent-knock-knock/main/schemas/host-profile-v1.schema.json"
	SchemaName    = "agent-knock-knock/host-profile"
	SchemaVersion = 1

	DriverEnvironment = "environment_v1"
	DriverCommandJSON = "command_json_v1"

	ScopeStartup    = "startup_v1"
	ScopeRouteBound = "route_bound_v1"
)

// The placeholders of a callback. The body goes to stdin only, the others to argv only.
const (
	PlaceholderSession        = "${controller.session_id}"
	PlaceholderDelivery       = "${envelope.delivery_id}"
	PlaceholderMessage        = "${envelope.message_id}"
	PlaceholderIdempotencyKey = "${envelope.idempotency_key}"
	PlaceholderBody           = "${envelope.body}"
)

// The generic outcomes that a Host's disposition may be mapped to.
const (
	OutcomeAccepted         = "accepted"
	OutcomeRetryableFailure = "retryable_failure"
	OutcomePermanentFailure = "permanent_failure"
	OutcomeUncertain        = "uncertain"
)

// The codes of this package's refusals.
const (
	CodeInvalid      fault.Code = "profile_invalid"    // the document breaks a rule
	CodeUnreadable   fault.Code = "profile_unreadable" // the selected file cannot be used
	CodeUnknown      fault.Code = "profile_unknown"    // no built-in Profile has this id
	CodeIncompatible fault.Code = "host_incompatible"  // another Host or Host version
	CodeScope        fault.Code = "standalone_scope"   // the scope needs a Host-native connector
	CodeSession      fault.Code = "controller_session" // no usable trusted session
	CodeExecutable   fault.Code = "callback_not_ready" // the callback program cannot be used
	CodeDrift        fault.Code = "profile_drift"      // the selection changed after the start
)

// Profile is one Host Profile v1 as [Parse] has proved it. The zero value is not a
// Profile. Its JSON form is the normalised document that the fingerprint covers: Schema
// URL always present, Scope only if the document has it.
type Profile struct {
	SchemaURL         string            `json:"$schema"`
	Schema            string            `json:"schema"`
	Version           int               `json:"version"`
	ID                string            `json:"id"`
	Revision          string            `json:"revision"`
	Compatibility     Compatibility     `json:"compatibility"`
	ControllerContext ControllerContext `json:"controllerContext"`
	Callback          Callback          `json:"callback"`
}

// Compatibility names the one Host and the range of its versions.
type Compatibility struct {
	Host  string `json:"host"`
	Range string `json:"range"` // one to four comparators, one blank between them, all must hold
}

// ControllerContext says where the trusted session comes from. DeclaredScope is the scope
// as written, "" when omitted; ask [Profile.Scope] for the one in effect.
type ControllerContext struct {
	Driver            string `json:"driver"`
	SessionIDVariable string `json:"sessionIdVariable"`
	DeclaredScope     string `json:"scope,omitempty"`
}

// Callback says how the Host's callback program is run and how its answer is read.
type Callback struct {
	Driver          string          `json:"driver"`
	Executable      string          `json:"executable"` // normalised absolute path, not a shell
	Arguments       []string        `json:"arguments"`  // templates, see the Placeholder constants
	Stdin           string          `json:"stdin"`      // always PlaceholderBody
	Environment     Environment     `json:"environment"`
	TimeoutMs       int             `json:"timeoutMs"`
	MaxOutputBytes  int             `json:"maxOutputBytes"` // of each captured stream
	Acknowledgement Acknowledgement `json:"acknowledgement"`
}

// Environment is the complete pass-through list of the callback program.
type Environment struct {
	Allow []string `json:"allow"`
}

// Acknowledgement says where in the program's answer each fact is.
type Acknowledgement struct {
	Disposition            Disposition `json:"disposition"`
	AcceptanceID           Pointer     `json:"acceptanceId"`
	AcknowledgedDeliveryID Pointer     `json:"acknowledgedDeliveryId"`
	AcknowledgedMessageID  Pointer     `json:"acknowledgedMessageId"`
}

// Disposition translates the Host's own word into one of the Outcome constants.
type Disposition struct {
	JSONPointer string            `json:"jsonPointer"`
	Mapping     map[string]string `json:"mapping"`
}

// Pointer is one JSON Pointer (RFC 6901).
type Pointer struct {
	JSONPointer string `json:"jsonPointer"`
}

// Scope returns the binding scope in effect: ScopeStartup unless the document says else.
func (p Profile) Scope() string {
	if p.ControllerContext.DeclaredScope == "" {
		return ScopeStartup
	}
	return p.ControllerContext.DeclaredScope
}

// StandaloneCompatible reports whether the generic MCP/stdio Bridge, which owns exactly
// one startup session, can serve this Profile.
func (p Profile) StandaloneCompatible() bool { return p.Scope() == ScopeStartup }

// CheckStandalone returns CodeScope when the generic Bridge cannot serve the Profile.
func (p Profile) CheckStandalone() error {
	if p.StandaloneCompatible() {
		return nil
	}
	return fault.New(CodeScope, "profile.check_standalone",
		"controllerContext.scope %s is not supported by the standalone host-bridge, which owns exactly one startup session", p.Scope()).
		WithHint("use a Host-native connector for this Host, or remove the scope from the Profile")
}

// Fingerprint returns the hash of the normalised Profile: "sha256:" and 64 hex digits.
// Formatting, key order and an omitted $schema do not change it; every value does, and so
// does writing the default scope out.
func (p Profile) Fingerprint() (string, error) {
	sum, err := strictjson.Hash(p)
	if err != nil {
		return "", fault.Wrap(err, fault.Internal, "profile.fingerprint", "the Profile cannot be hashed")
	}
	return sum, nil
}
