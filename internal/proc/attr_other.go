//go:build !linux

package proc

import (
	"os"
	"syscall"
)

// setDeathSignal does nothing: only Linux has a parent-death signal.
func setDeathSignal(*syscall.SysProcAttr, syscall.Signal) {}

func selfPath() (string, error) { return os.Executable() }

func onMainThread() bool { return false }
