package proc

import (
	"reflect"
	"strings"
	"testing"
)

func TestOnlyUnwrittenPagesOfTheProgramItselfAreGivenBack(t *testing.T) {
	var smaps strings.Builder
	for _, m := range []struct{ header, anonymous, swap string }{
		{"1000-2000 r-xp 00000000 fe:00 131                        /opt/a b/akk", "0 kB", "0 kB"},
		{"2000-3000 r--p 00001000 fe:00 131                        /opt/a b/akk", "0 kB", "0 kB"},
		{"3000-4000 r--p 00002000 fe:00 131                        /opt/a b/akk", "4 kB", "0 kB"}, // relocated, or a breakpoint
		{"4000-5000 rw-p 00003000 fe:00 131                        /opt/a b/akk", "0 kB", "0 kB"},
		{"5000-6000 r-xs 00000000 fe:00 131                        /opt/a b/akk", "0 kB", "0 kB"},
		{"6000-7000 ---p 00000000 fe:00 131                        /opt/a b/akk", "0 kB", "0 kB"},
		{"7000-8000 r--p 00000000 fe:00 7                          /opt/a b/ak", "0 kB", "0 kB"},
		{"8000-9000 r--p 00000000 00:00 0 ", "0 kB", "0 kB"},
		{"b000-a000 r--p 00000000 fe:00 131                        /opt/a b/akk", "0 kB", "0 kB"},
		{"x-y r--p 00000000 fe:00 131                        /opt/a b/akk", "0 kB", "0 kB"},
		{"ffffffff600000-ffffffff601000 --xp 00000000 00:00 0                  [vsyscall]", "0 kB", "0 kB"},
		{"e000-f000 r--p 00002000 fe:00 131                        /opt/a b/akk", "0 kB", "4 kB"}, // the same, and swapped out
		{"c000-d000 r--p 00004000 fe:00 131 /opt/a b/akk", "0 kB", "0 kB"},
	} {
		smaps.WriteString(m.header + "\nSize:                  4 kB\nRss:                   4 kB\nAnonymous:             " + m.anonymous + "\nSwap:                  " + m.swap + "\nVmFlags: rd mr mw me sd \n")
	}
	got, err := imageRanges(strings.NewReader(smaps.String()), "/opt/a b/akk")
	if want := []mapping{{0x1000, 0x2000}, {0x2000, 0x3000}, {0xc000, 0xd000}}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%x, %v, want %x", got, err, want)
	}
}
