package procinfo

import (
	"slices"
	"testing"
)

const psListing = `    1     0     0 Ss   Tue Dec  2 10:11:12 2025 /sbin/launchd
  501     1   501 S+   Tue Dec  2 10:12:00 2025 tmux -S /tmp/my.sock new
  777   501   501 Z    Tue Dec  2 10:13:00 2025 (node)
garbage
  888   501   501 R    Tue Foo  2 10:13:00 2025 bad month
   -1   501   501 R    Tue Dec  2 10:13:00 2025 bad pid
  999   501   501 Ss+  Wed Dec 31 23:59:59 2025 node /opt/bin/codex   resume
`

func TestPSRowsAreReadAndMalformedOnesSkipped(t *testing.T) {
	rows, err := parsePS(psListing, "abcdef01")
	if err != nil {
		t.Fatal(err)
	}
	var ids []int
	for _, p := range rows {
		ids = append(ids, p.PID)
	}
	if !slices.Equal(ids, []int{1, 501, 777, 999}) {
		t.Fatalf("pids %v", ids)
	}
	p := rows[3]
	if p.PPID != 501 || p.UID != 501 || p.State != 'S' || p.Birth != "1767225599@abcdef01" || !slices.Equal(p.Args, []string{"node", "/opt/bin/codex", "resume"}) {
		t.Errorf("%+v", p)
	}
	if !rows[2].Zombie() || rows[2].Args != nil {
		t.Errorf("zombie %+v", rows[2])
	}
}

func TestACutOrEmptyPSListingIsAnError(t *testing.T) {
	for _, s := range []string{"", "garbage\n", psListing[:len(psListing)-1]} {
		if rows, err := parsePS(s, "b"); err == nil {
			t.Errorf("%.20q gave %v", s, rows)
		}
	}
}

const lsofListing = "p501\nfcwd\na \ntDIR\nD0x1000004\ni99\nn/Users/u/a b\nftxt\ntREG\nD0x1000004\ni7\nn/opt/codex\nftxt\ntREG\nn/usr/lib/dyld\n" +
	"f0\nau\ntCHR\nn/dev/ttys001\nf12\nau\ntREG\nD0x1000004\ni4242\nn/Users/u/.codex/sessions/rollout-x.jsonl\nf9\nar\ntREG\nD0x1000004\ni5\nn/etc/x\nf13\nau\ntunix\nn->0x1\n"

func TestLsofTellsDirectoryProgramAndRegularFiles(t *testing.T) {
	cwd, exe, files, err := parseLsof(lsofListing)
	if err != nil || cwd != "/Users/u/a b" || exe != "/opt/codex" {
		t.Errorf("%q %q %v", cwd, exe, err)
	}
	want := []File{
		{FD: 9, Path: "/etc/x", Device: 0x1000004, Inode: 5},
		{FD: 12, Path: "/Users/u/.codex/sessions/rollout-x.jsonl", Device: 0x1000004, Inode: 4242, Write: true},
	}
	if !slices.Equal(files, want) {
		t.Errorf("%+v", files)
	}
	if _, _, _, err := parseLsof(""); err == nil {
		t.Error("an empty listing was taken for a process without files")
	}
}

func TestProcArgsSeparatesArgumentsAndEnvironment(t *testing.T) {
	block := "\x03\x00\x00\x00/opt/node\x00\x00\x00\x00node\x00\x00a b\x00HOME=/Users/u\x00CODEX_HOME=/x=y\x00\x00junk"
	args, env, err := parseProcArgs([]byte(block))
	if err != nil || !slices.Equal(args, []string{"node", "", "a b"}) || !slices.Equal(env, []string{"HOME=/Users/u", "CODEX_HOME=/x=y"}) {
		t.Errorf("%q %q %v", args, env, err)
	}
	for _, bad := range []string{"", "\x01\x00\x00\x00", "\x05\x00\x00\x00/p\x00a\x00", "\xff\xff\xff\xff/p\x00a\x00"} {
		if args, _, err := parseProcArgs([]byte(bad)); err == nil {
			t.Errorf("%q gave %q", bad, args)
		}
	}
}
