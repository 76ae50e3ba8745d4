// Package mcpserver serves a table of tools to one Host as MCP over two byte streams, and
// survives what arrives on them.
//
// It owns the frames (one JSON-RPC message per line), the ids of requests, the queue of
// replies, the end of a session and the bounds of all of these. The protocol itself
// (versions, initialize, server/discover) is the MCP SDK's; the SDK reads and writes
// through the connection of this package and never sees a byte that the connection has
// not accepted. Tools are listed and called by toolkit, not by the SDK. The package must
// never know what a tool does, nor any store, terminal or agent.
//
// # Frames
//
// A line that is not JSON is answered with -32700 and id null. A line that is JSON and
// not a request is answered with -32600, and with its id where one can be read. A line
// above [MaxFrame] is skipped, never held, and answered once. Blank lines, responses to
// nothing that was asked and unknown notifications are dropped. A byte
// order mark and CRLF are forgiven. Batches are refused. None of these ends the session.
//
// # Ids
//
// An id is a string or a number and comes back byte for byte; the SDK only sees an id of
// ours. A request whose id is still in flight is refused with -32600 and id null, since an
// error with that id would look like the answer to the first. The bytes of the id are
// part of the idempotency key of a tool call ([toolkit.Call]).
//
// # Cancellation
//
// notifications/cancelled reaches the handler's context at once and no reply is sent for
// that id. What the tool has already made durable stands.
//
// # Questions to the Host
//
// A handler may put a question to the person behind the Host ([toolkit.Host]): as a
// request with an id of ours where the Host takes requests, as the result of the call
// where it does not (from 2026-07-28). The end of the session ends every open question.
//
// # The end of a session
//
// At the end of input, or when the context ends, nothing more is admitted and every
// request that arrived is answered exactly once. Handlers keep their contexts and have
// [DrainLimit] to finish. What has not finished by then is answered with an error that
// says the outcome is unknown, the handlers' contexts end, they get [CancelGrace], and
// Serve returns an error so that the process exits non-zero. A Host that closed its
// stdout, or does not read it for [WriteStall], ends the session too.
package mcpserver
