// Package turn holds the rules of Sessions and Turns: what state a Turn is in, which
// facts may change it, and what the Host must hear of it.
//
// Everything is a value: a Turn is the fold of its journal by [Apply]; commands and
// observations become events through the functions that return a [Plan]. The package
// does no I/O, reads no clock, and knows no agent, no SQL and no transport.
package turn
