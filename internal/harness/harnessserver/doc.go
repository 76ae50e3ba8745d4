// Package harnessserver is the HTTP surface of headless agents on a loopback address: one
// POST path per operation, one envelope, and the gate in front of it (Host, Origin, the
// owner's token, sizes). It also owns the state directory of a running server: its lock,
// its token file and the order of start and end.
//
// It decides nothing about a session; sessions does. A client that disconnects ends its own
// waiting and never the work.
package harnessserver
