package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Both limits are looked at, and what is left of each.
func TestFileWatchesLooksAtEachLimitAndAtWhatIsLeft(t *testing.T) {
	for name, tc := range map[string]struct {
		limit, used inotify
		want        Status
		hint        string
	}{
		"plenty":        {inotify{1024, 65536}, inotify{3, 40}, OK, ""},
		"few instances": {inotify{128, 65536}, inotify{3, 40}, Warned, "max_user_instances=1024"},
		"few watches":   {inotify{1024, 4096}, inotify{3, 40}, Warned, "max_user_watches=65536"},
		"instances out": {inotify{1024, 65536}, inotify{1020, 40}, Warned, "max_user_instances=2048"},
		"watches out":   {inotify{1024, 65536}, inotify{3, 65500}, Warned, "max_user_watches=131072"},
	} {
		r := MachineReport{OK: true}
		r.watches(tc.limit, tc.used)
		if c := r.Checks[0]; len(r.Checks) != 1 || c.Status != tc.want || !strings.Contains(c.Hint, tc.hint) || (c.Hint == "") != (tc.want == OK) {
			t.Errorf("%s: %+v", name, r.Checks)
		}
	}
}

func TestWatchesInUseAreCounted(t *testing.T) {
	proc := t.TempDir()
	for path, text := range map[string]string{
		"10/fdinfo/3": "pos:\t0\ninotify wd:2 ino:1\ninotify wd:1 ino:2\n",
		"10/fdinfo/4": "pos:\t0\n",
		"11/fdinfo/9": "inotify wd:1 ino:2\n",
		"self/x":      "",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(proc, path)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(proc, path), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for path, to := range map[string]string{"10/fd/3": "anon_inode:inotify", "10/fd/4": "anon_inode:inotify", "10/fd/5": "/dev/null", "11/fd/9": "anon_inode:[eventpoll]"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(proc, path)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(to, filepath.Join(proc, path)); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := inUse(proc), (inotify{2, 2}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	for range 2 {
		if _, err := unix.InotifyAddWatch(fd, t.TempDir(), unix.IN_MODIFY); err != nil {
			t.Fatal(err)
		}
	}
	if got := inUse("/proc"); got.instances < 1 || got.watches < 2 {
		t.Errorf("ours are not counted: %+v", got)
	}
}
