// Package autostart finds the harness server of an address, and starts one when nothing
// listens there.
//
// It owns the decision what may be started, the lock of a start, the proof of ownership and
// the client's registry of servers. A server that it did not start is reused or refused,
// never touched; one that it started outlives it. It must never know a tool or a session.
package autostart
