package tmux

// WithPrograms makes s use these programs in this order instead of the usual ones.
func WithPrograms(s Server, programs ...string) Server {
	s.programs = programs
	return s
}
