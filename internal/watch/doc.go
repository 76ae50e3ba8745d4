// Package watch holds the rules of a Terminal Watch: a read-only wait for one task that a
// person started in a terminal.
//
// It owns the Watch's states, what each observation means for it, and what the Host must
// hear. Values in, values out: it reads no Store, no clock and no terminal, and nothing of
// it leads to a key that is pressed.
package watch
