package proc

import "testing"

func TestOnlyTheProgramItselfIsGivenBack(t *testing.T) {
	for line, want := range map[string]bool{
		"00400000-00a77000 r-xp 00000000 fe:00 131                        /opt/a b/akk": true,
		"00a77000-011d0000 r--p 00677000 fe:00 131                        /opt/a b/akk": true,
		"011d0000-01247000 rw-p 00dd0000 fe:00 131                        /opt/a b/akk": false, // data
		"00400000-00a77000 r-xs 00000000 fe:00 131                        /opt/a b/akk": false, // shared
		"00400000-00a77000 ---p 00000000 fe:00 131                        /opt/a b/akk": false,
		"7f0000000000-7f0000001000 r--p 00000000 fe:00 7                  /opt/a b/ak":  false,
		"7f0000000000-7f0000001000 r--p 00000000 00:00 0 ":                              false,
		"7ffd00000000-7ffd00001000 r-xp 00000000 00:00 0                  [vdso]":       false,
		"00a77000-00400000 r--p 00677000 fe:00 131                        /opt/a b/akk": false,
		"what is this": false,
		"":             false,
	} {
		if _, _, ok := imageRange(line, "/opt/a b/akk"); ok != want {
			t.Errorf("%q: %v", line, ok)
		}
	}
}
