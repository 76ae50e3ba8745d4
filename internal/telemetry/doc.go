// Package telemetry holds the rules of traces and metrics: what is told of a task, when
// telemetry is wanted at all, and how facts become spans and counts.
//
// Values in, values out. It takes no clock, sends nothing and links no OpenTelemetry: the
// Bridge writes a [Fact] a line to akk-telemetry, and that alone knows the SDK. A fact
// carries ids, times and words of closed lists, and must never carry the text of a task, a
// title, a path, a credential, a session value or a fingerprint; [Decode] refuses whatever
// does not look like an id or a code.
package telemetry

// Program is the name of the program that tells.
const Program = "akk-telemetry"

// ExitMismatch is its exit status when it is of another release than who started it:
// starting it again is of no use.
const ExitMismatch = 78
