package proc

import "syscall"

func setDeathSignal(attr *syscall.SysProcAttr, sig syscall.Signal) { attr.Pdeathsig = sig }

// selfPath names our own binary even after an update replaced the file.
func selfPath() (string, error) { return "/proc/self/exe", nil }
