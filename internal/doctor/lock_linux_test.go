package doctor

import "testing"

func TestTheOwnerOfALockIsTheProcessThatHoldsItAndHasTheFile(t *testing.T) {
	const table = "1: POSIX  ADVISORY  WRITE 10 fd:00:42 0 EOF\n" +
		"2: FLOCK  ADVISORY  WRITE 11 00:1f:142 0 EOF\n" +
		"3: FLOCK  ADVISORY  WRITE 12 fd:00:42 0 EOF\n" +
		"3: -> FLOCK  ADVISORY  WRITE 13 fd:00:42 0 EOF\n" +
		"4: FLOCK  ADVISORY  WRITE 14 fd:00:42 0 EOF\nshort\n"
	any := func(int) bool { return true }
	if got := flockRow(table, 42, any); got != 12 {
		t.Errorf("%d", got)
	}
	if got := flockRow(table, 42, func(pid int) bool { return pid != 12 }); got != 14 {
		t.Errorf("%d: another disk has the same inode", got)
	}
	if got := flockRow(table, 7, any); got != 0 {
		t.Errorf("%d", got)
	}
}
