package main

import "testing"

// Two Bridges of one user exclude each other at a pane whatever environment their Hosts
// gave them: a shell's, a service's, or next to none.
func TestThePlaceOfPaneLocksDoesNotDependOnTheEnvironment(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	here := lockDir()
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("XDG_RUNTIME_DIR", "")
	t.Setenv("HOME", t.TempDir())
	if lockDir() != here {
		t.Errorf("%s, and %s in another environment", here, lockDir())
	}
	if runtimeDir() == here {
		t.Error("the sockets of Bridges follow the environment, so that a test has its own")
	}
}
