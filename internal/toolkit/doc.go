// Package toolkit is the table of tools that the Bridge offers, and the one way to call
// one of them.
//
// It owns: what a tool declares ([Spec]), the fixed order of the catalogue, the closed
// input and output schemas, the check of arguments before anything runs, the order of
// calls that a Host sends without waiting, the time limit of a call, and the one shape of
// success and failure. It must never know a transport, a domain or a store: mcpserver
// carries its results, and the tools packages of the domains fill the table.
//
// # Arguments
//
// Arguments are refused with [BadCall] before the handler runs when the tool is unknown,
// the JSON is not strict (duplicate key, unknown field, wrong type, null, too deep, too
// large) or the input schema says no. Absent arguments mean {}. Numbers are decoded from
// the bytes that the Host sent, so a 64-bit integer keeps its last digit.
//
// # Order of calls
//
// A Host may send several calls without waiting for replies. Calls are admitted in the
// order of arrival by this rule:
//
//   - a call that changes something starts only after every earlier call that changes
//     something has signalled [Committed] or returned;
//   - a call that only reads waits for the same, and never for another reader.
//
// So "ten creates, then a list" shows ten, and two calls that change something have their
// durable effects in the order in which they were sent. What a call does after Committed,
// such as waiting for an agent, runs beside later calls. The wait is bounded by
// [OrderWait]: a call whose turn does not come is refused with [fault.Timeout], has done
// nothing, and may be repeated. There is never a silent gap.
//
// # Time and cancellation
//
// Every call is answered within [CallLimit]. The handler's context ends [replyReserve]
// earlier, or when the Host cancels the call (cause [ErrCancelled]). A handler that does
// not return by then is answered for: the Host is told that the outcome is unknown. The
// handler itself is left to finish and [Session.Drain] waits for it. A handler that must
// complete a durable write after a cancellation uses context.WithoutCancel.
package toolkit
