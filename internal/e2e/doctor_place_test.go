package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-knock-knock/akk/internal/testkit/faketmux"
)

// A Bridge whose folder of sockets cannot be made works and cannot be asked: doctor and the
// operator must not take that for "no Bridge runs".
func TestDoctorNamesABridgeThatCouldMakeNoSocket(t *testing.T) {
	t.Parallel()
	w := newClinic(t)
	if err := os.Symlink(filepath.Join(w.runtime, "nowhere"), filepath.Join(w.runtime, "agent-knock-knock")); err != nil {
		t.Fatal(err)
	}
	c := w.start()
	list(t, c)
	r := w.doctor()
	if r.exit != 2 || len(r.Bridges) != 1 || r.Bridges[0].PID != c.PID() {
		t.Errorf("exit %d, %s", r.exit, dump(r))
	}
	r.has(t, "bridge", "unchecked", "lives on this Store and cannot be asked")
	r.has(t, "bridge", "unchecked", "agent-knock-knock")
	w.says(2, "cannot be asked", fmt.Sprint("process ", c.PID()))
	if code := c.Close(settle); code != 0 {
		t.Errorf("exit %d", code)
	}
	if r := w.doctor(); len(r.Bridges) != 0 {
		t.Errorf("after its end: %s", dump(r))
	}
}

// A runtime directory with a long name is usual on macOS and in sandboxes.
func TestDoctorAsksABridgeWhoseFolderIsTooLongForASocket(t *testing.T) {
	t.Parallel()
	w := newClinic(t)
	w.runtime = filepath.Join(faketmux.ShortDir(t), strings.Repeat("long-", 25))
	if err := os.Mkdir(w.runtime, 0o700); err != nil {
		t.Fatal(err)
	}
	c := w.start()
	list(t, c)
	out, errs, exit := w.run("workers")
	if exit != 0 || !strings.Contains(out, fmt.Sprint(c.PID())) || !strings.Contains(out, "akk-callback") {
		t.Errorf("exit %d\n%s%s", exit, out, errs)
	}
	r := w.doctor()
	for _, b := range r.Bridges { // others of this user may be in the same place
		if b.PID == c.PID() {
			if b.Problem != "" || b.Place == "" || len(b.Workers) == 0 {
				t.Errorf("%s", dump(r))
			}
			return
		}
	}
	t.Errorf("the Bridge is not seen: %s", dump(r))
}
