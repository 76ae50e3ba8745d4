//go:build !linux

package standin

// processStart is unknown on this system.
func processStart() string { return "" }
