//go:build !linux

package torture

import "testing"

// small is a disk of a few MiB; it is only mounted on Linux.
type small struct{}

func mountSmall(testing.TB, string) *small { return nil }

func (*small) fill(testing.TB) {}
func (*small) free(testing.TB) {}
