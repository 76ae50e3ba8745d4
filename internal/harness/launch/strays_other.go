//go:build !linux

package launch

// endMarked finds nothing: this system shows no environment of other processes. What left the
// group of a program whose runner was killed stays.
func endMarked(string) (left int) { return 0 }
