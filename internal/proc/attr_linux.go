package proc

import (
	"os"
	"syscall"
)

func setDeathSignal(attr *syscall.SysProcAttr, sig syscall.Signal) { attr.Pdeathsig = sig }

// selfPath names our own binary even after an update replaced the file.
func selfPath() (string, error) { return "/proc/self/exe", nil }

// onMainThread reports whether the calling thread is the one whose id is the process's.
func onMainThread() bool { return syscall.Gettid() == os.Getpid() }
