// Package acp is a tolerant client of the Agent Client Protocol, version 1, over the two
// pipes of one agent process.
//
// It owns framing, request ids, strict attribution (which answer belongs to which call,
// which update to which turn), the order of what it hands out, and the limits of what it
// holds. It must never know what a session of the product, a Store or a process is: it
// starts nothing, decides nothing, and answers an agent's question only where the protocol
// leaves no choice (an unknown method, or a question of a cancelled turn).
//
// Real agents write prose to stdout, answer with null ids and invent methods. Here all of
// that is an [Event], not an error. Only a lost framing, a crossed limit and the end of the
// pipe end a [Conn].
package acp
