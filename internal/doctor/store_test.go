package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-knock-knock/akk/internal/store"
)

// stored makes a Store and changes it.
func stored(t *testing.T, sql ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "store")
	db, err := store.Open(t.Context(), dir, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Update(t.Context(), func(tx *store.Tx) error {
		for _, s := range sql {
			if _, err := tx.Exec(s); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A Store whose content is not known is never well, and there is a next step: a damaged one
// is mended otherwise than one that cannot be reached.
func TestAStoreThatCannotBeReadIsSaidToBeDamagedOrNot(t *testing.T) {
	for name, tc := range map[string]struct {
		make       func(t *testing.T) string
		says, hint string
	}{
		"a table is missing":     {func(t *testing.T) string { return stored(t, "DROP TABLE outbox_attempt", "DROP TABLE outbox") }, "damaged", "put a copy of it back"},
		"its own table is gone":  {func(t *testing.T) string { return stored(t, "DROP TABLE meta") }, "damaged", "put a copy of it back"},
		"pages are overwritten":  {func(t *testing.T) string { return overwritten(t, 100) }, "damaged", "put a copy of it back"},
		"it is no database":      {func(t *testing.T) string { return overwritten(t, 0) }, "damaged", "put a copy of it back"},
		"a file is in the way":   {inTheWay, "", "--store-dir"},
		"a folder is the file":   {folder, "", "--store-dir"},
		"nobody knows its place": {func(*testing.T) string { return "" }, "no Store directory is known", "--store-dir"},
	} {
		t.Run(name, func(t *testing.T) {
			r := MachineReport{OK: true}
			Machine{StoreDir: tc.make(t)}.store(t.Context(), &r)
			if len(r.Checks) == 0 || r.OK {
				t.Fatalf("%+v", r)
			}
			if c := r.Checks[0]; c.Name != CheckStore || c.Status != Unchecked || !strings.Contains(c.Detail, tc.says) || !strings.Contains(c.Hint, tc.hint) || strings.Contains(c.Detail, "internal error") {
				t.Errorf("%+v", c)
			}
		})
	}
}

// overwritten is a Store with other bytes from a place on, to its end.
func overwritten(t *testing.T, from int) string {
	t.Helper()
	dir := stored(t)
	path := filepath.Join(dir, store.FileName)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := from; i < len(b); i++ {
		b[i] = 'x'
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func inTheWay(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "store")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func folder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, store.FileName), 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Whatever is wrong with the place of the Store, every row says what to do.
func TestEveryRowThatIsNotWellSaysWhatToDo(t *testing.T) {
	link := filepath.Join(t.TempDir(), "link")
	real := stored(t)
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	lockless := stored(t)
	if err := os.Remove(filepath.Join(lockless, store.LockName)); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/null", filepath.Join(lockless, store.LockName)); err != nil {
		t.Fatal(err)
	}
	for name, dir := range map[string]string{"none": "", "a file": inTheWay(t), "below a file": filepath.Join(inTheWay(t), "store"), "a link": link, "a lock that is a link": lockless} {
		r := Machine{StoreDir: dir, Places: []string{filepath.Join(t.TempDir(), "none", "bridges")}, LookPath: nothing}.Check(t.Context())
		if r.OK {
			t.Errorf("%s: well", name)
		}
		for _, c := range r.Checks {
			if c.Status != OK && c.Hint == "" {
				t.Errorf("%s: %+v", name, c)
			}
			if name == "a link" && c.Name == CheckPermissions && (!strings.Contains(c.Detail, "is a link") || !strings.Contains(c.Hint, real)) {
				t.Errorf("%+v", c)
			}
			if name == "none" && c.Status == Failed && c.Name != CheckTmux {
				t.Errorf("%+v", c)
			}
		}
	}
}
