// Package harnesstools is the tools for headless agents: it turns calls of an MCP Host into
// operations of the harness server, waits for messages and logins, and puts an agent's
// questions to the person behind the Host.
//
// It keeps no state of a session: everything that it says comes from the server, as the
// server wrote it. Nothing is ever approved without a person's choice. It must never know
// how an agent is run.
package harnesstools
