// Package callbackexec is the transport command_json_v1: it runs the Host's own callback
// program for one delivery attempt and classifies what the program answered.
//
// It owns the checks before the start, the argument templates, the environment and the
// truth table of acknowledgements. It never throws: every failure is an [outbox.Outcome].
// Only an exact acknowledgement is success; an exit status never is. It retries nothing,
// stores nothing, logs nothing, and must never know a Turn or which deliveries exist.
//
// Decisions of this package, where the contract leaves room:
//   - The templates are checked, never the rendered text: an answer of an agent may hold
//     "${" and is passed byte for byte, NUL included, on stdin. NUL in an argument value
//     is refused, because exec would cut it.
//   - A program that was provably not started did nothing. If its configuration is at fault
//     (too long an argument list, no executable format) the failure is permanent; if this
//     machine is short of something for a moment, it is retryable.
//   - Everything the program started is ended with it: a callback that wants to leave a
//     daemon behind must have it started by somebody else.
package callbackexec
