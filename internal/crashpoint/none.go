//go:build !crashpoint

package crashpoint

// At marks a point.
func At(string) {}

// Of marks a point that happens for several kinds of things.
func Of(string, string) {}

// Err is the error that a test wants at a point: none.
func Err(string) error { return nil }
