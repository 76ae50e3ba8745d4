package callbackexec

// The error codes of outcomes. They are stored and shown, so they are stable.
const (
	// Nothing was started, and nothing ever will be for this delivery.
	CodeRouteInvalid          = "command_json_callback_route_invalid"
	CodeTransportUnsupported  = "unsupported_callback_transport"
	CodeProfileMismatch       = "command_json_callback_profile_mismatch"
	CodeRevisionMismatch      = "command_json_callback_profile_revision_mismatch"
	CodeFingerprintMismatch   = "command_json_callback_profile_fingerprint_mismatch"
	CodeSessionMismatch       = "command_json_controller_session_mismatch"
	CodeEnvelopeRouteMismatch = "callback_envelope_route_mismatch"
	CodeAttemptInvalid        = "command_json_callback_attempt_invalid"
	CodeConfiguration         = "command_json_callback_configuration_error"
	CodeExecutableUnavailable = "command_json_callback_executable_unavailable"

	// Nothing was started, but a later attempt may work.
	CodeNotStarted = "command_json_callback_not_started"

	// The program ran and what it did is not proved.
	CodeLimit          = "command_json_callback_execution_limit_uncertain"
	CodeExecution      = "command_json_callback_execution_uncertain"
	CodeUnacknowledged = "command_json_callback_exit_unacknowledged"
	CodeAckInvalid     = "command_json_callback_acknowledgement_invalid"
	CodeAckUnknown     = "command_json_callback_acknowledgement_disposition_unknown"
	CodeAckIdentity    = "command_json_callback_acknowledgement_identity_mismatch"
	CodeHostUncertain  = "command_json_callback_uncertain"
	CodeHostRetryable  = "command_json_callback_retryable_failure" // the Host said so
	CodeHostPermanent  = "command_json_callback_permanent_failure" // the Host said so
)
