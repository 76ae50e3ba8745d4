package tmux

import "time"

// WithPrograms makes s use these programs in this order instead of the usual ones.
func WithPrograms(s Server, programs ...string) Server {
	s.programs = programs
	return s
}

// WithBound ends every run of the client after d.
func WithBound(s Server, d time.Duration) Server {
	s.bound = d
	return s
}

// SetPrograms replaces the programs that are tried when a Server has none of its own, until
// the returned function is called.
func SetPrograms(names ...string) (restore func()) {
	was := binaries
	binaries = names
	return func() { binaries = was }
}
