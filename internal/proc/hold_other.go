//go:build !linux

package proc

type groupHold struct{ pid int }

func holdGroup(pid int) groupHold { return groupHold{pid} }

func (g groupHold) kill() { killLeaderless(g.pid) }

func (groupHold) close() {}
