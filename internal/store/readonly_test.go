package store_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/store"
)

// readOnlyDir makes the re-executed test binary look at a Store that it may not change. It
// is a process of its own because the super-user may write anywhere.
const readOnlyDir = "AKK_STORE_TEST_READ_ONLY"

const nobody = 65534

// onReadOnlyDisk is that process. Its exit status is 0 when all is right.
func onReadOnlyDisk(ctx context.Context, dir string) int {
	_, err := store.Open(ctx, dir, store.Options{})
	if _, _, hint := fault.Public(err); !fault.Is(err, store.CodeUnwritable) || hint == "" {
		fmt.Println("open for writing:", err)
		return 1
	}
	db, err := store.Open(ctx, dir, store.Options{ReadOnly: true})
	if err != nil {
		fmt.Println("open for reading:", err)
		return 1
	}
	defer db.Close()
	var n int
	if err := db.View(ctx, func(tx *store.Tx) error { return tx.QueryRow("SELECT count(*) FROM session").Scan(&n) }); err != nil || n != 1 {
		fmt.Println("read:", n, err)
		return 1
	}
	return 0
}

// A Store that an administrator keeps on a disk that is read-only now: list still shows it,
// a Bridge says what to do (spec part 12.3).
func TestAnExistingStoreOnAReadOnlyDiskIsReadAndNeverWritten(t *testing.T) {
	base, err := os.MkdirTemp("/tmp", "akk-ro") // t.TempDir is for its own user only
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(os.Chmod(filepath.Join(base, "s"), 0o700), os.RemoveAll(base)); err != nil {
			t.Error(err)
		}
	})
	dir := filepath.Join(base, "s")
	db, err := store.Open(t.Context(), dir, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Update(t.Context(), func(tx *store.Tx) error { _, err := tx.Exec(insertSession, "s", "e"); return err }); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	exe := filepath.Join(base, "test")
	if err := copyFile(exe, os.Args[0]); err != nil {
		t.Fatal(err)
	}
	attr := &syscall.SysProcAttr{}
	if os.Geteuid() == 0 {
		attr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
	}
	if err := os.Chmod(base, 0o755); err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		mode := fs.FileMode(0o400)
		if d.IsDir() {
			mode = 0o500
		}
		if attr.Credential != nil {
			err = os.Chown(path, nobody, nobody)
		}
		return errors.Join(err, os.Chmod(path, mode))
	})
	if err != nil {
		t.Fatal(err)
	}
	before := listing(t, dir)
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env = append(os.Environ(), readOnlyDir+"="+dir)
	cmd.SysProcAttr = attr
	cmd.Dir = "/"
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	if after := listing(t, dir); before != after {
		t.Errorf("the Store changed from %s to %s", before, after)
	}
}

func copyFile(to, from string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o755)
}

func listing(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, fmt.Sprintf("%s %d %s", e.Name(), info.Size(), info.ModTime()))
	}
	return strings.Join(names, "\n")
}
