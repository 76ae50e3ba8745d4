package store_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/store"
)

// A wrong --store-dir must not close somebody's project to their colleagues, nor put our
// files among theirs (spec part 12.3).
func TestADirectoryWithFilesOfOthersIsRefusedAndLeftAsItIs(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "project")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "main.c"), []byte("int main;"), 0o644); err != nil {
		t.Fatal(err)
	}
	before := listing(t, dir)
	db, err := store.Open(t.Context(), dir, store.Options{Relaxed: true})
	if err == nil {
		db.Close()
	}
	if _, msg, hint := fault.Public(err); !fault.Is(err, store.CodeUnsafe) || !strings.Contains(msg, dir) || !strings.Contains(hint, "--store-dir") {
		t.Errorf("opened: %v", err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o755 || listing(t, dir) != before {
		t.Errorf("the directory is changed: %v, %v\n%s", info.Mode(), err, listing(t, dir))
	}
}

// What a Store leaves behind in whatever order it was removed is ours, whatever lies beside it.
func TestADirectoryWithAnythingOfAStoreIsOurs(t *testing.T) {
	for _, name := range []string{store.FileName, store.FileName + "-wal", store.FileName + ".new", store.LockName, "bridges"} {
		dir := filepath.Join(t.TempDir(), "s")
		mode := fs.FileMode(0o600)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "note.txt"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		err := os.WriteFile(filepath.Join(dir, name), nil, mode)
		if name == "bridges" {
			err = os.Remove(filepath.Join(dir, name))
			if err == nil {
				err = os.Mkdir(filepath.Join(dir, name), 0o700)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		open(t, dir)
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: the directory is %v, %v", name, info.Mode(), err)
		}
	}
}

// Who only looks changes nothing, even where what it sees is unsafe: doctor says so, and a
// writer or its owner mends it.
func TestALookAtAStoreRepairsNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s")
	open(t, dir).Close()
	file := filepath.Join(dir, store.FileName)
	for path, mode := range map[string]fs.FileMode{file: 0o644, dir: 0o755} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	reader, err := store.Open(t.Context(), dir, store.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	reader.Close()
	if err := store.CheckFile(file); err != nil {
		t.Error(err)
	}
	for path, mode := range map[string]fs.FileMode{file: 0o644, dir: 0o755} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s is %v, was %v, %v", path, info.Mode(), mode, err)
		}
	}
	open(t, dir)
	for path, mode := range map[string]fs.FileMode{file: 0o600, dir: 0o700} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
			t.Errorf("a writer left %s at %v, %v", path, info.Mode(), err)
		}
	}
}
