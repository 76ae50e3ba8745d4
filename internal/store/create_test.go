package store_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/store"
)

// creatorDir makes the re-executed test binary make fresh Stores in it until it is killed.
const creatorDir = "AKK_STORE_TEST_CREATOR"

func createForever(ctx context.Context, dir string) int {
	for i := 0; ; i++ {
		db, err := store.Open(ctx, filepath.Join(dir, strconv.Itoa(i)), store.Options{})
		if err != nil {
			fmt.Println(err)
			return 1
		}
		db.Close()
	}
}

// A process that is killed while it makes a Store leaves a whole one or none: the next
// start works, whatever lies there.
func TestAProcessKilledWhileItMakesAStoreLeavesAWholeOneOrNone(t *testing.T) {
	moments := map[string]func(dir string) bool{
		"when the new file appears": func(dir string) bool {
			_, err := os.Lstat(filepath.Join(dir, store.FileName+".new"))
			return err == nil
		},
		"when the new file has data": func(dir string) bool { return size(filepath.Join(dir, store.FileName+".new")) > 0 },
		"when it is nearly whole":    func(dir string) bool { return size(filepath.Join(dir, store.FileName+".new")) > 100_000 },
		"when it has its name":       func(dir string) bool { return size(filepath.Join(dir, store.FileName)) >= 0 },
		"when its log appears":       func(dir string) bool { return size(filepath.Join(dir, store.FileName+"-wal")) >= 0 },
	}
	for name, reached := range moments {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base := t.TempDir()
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), creatorDir+"="+base)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			deadline := time.Now().Add(20 * time.Second)
			for i := 0; !reached(filepath.Join(base, strconv.Itoa(i))); {
				if time.Now().After(deadline) {
					cmd.Process.Kill()
					t.Fatal("the moment never came")
				}
				if _, err := os.Lstat(filepath.Join(base, strconv.Itoa(i+1))); err == nil {
					i++ // it was over before we looked: the next Store is made
				}
			}
			cmd.Process.Signal(syscall.SIGKILL)
			cmd.Wait()
			made, err := filepath.Glob(filepath.Join(base, "*"))
			if err != nil || len(made) == 0 {
				t.Fatal(made, err)
			}
			for _, dir := range made {
				db, err := store.Open(t.Context(), dir, store.Options{})
				if err != nil {
					t.Fatalf("after the kill: %v", err)
				}
				if err := db.Update(t.Context(), func(tx *store.Tx) error { _, err := tx.Exec(insertSession, "s", "e"); return err }); err != nil {
					t.Error(err)
				}
				checkWhole(t, db)
				if _, err := os.Lstat(filepath.Join(dir, store.FileName+".new")); err == nil {
					t.Errorf("%s.new is left", store.FileName)
				}
				db.Close()
			}
		})
	}
}

func size(path string) int64 {
	info, err := os.Lstat(path)
	if err != nil {
		return -1
	}
	return info.Size()
}

func checkWhole(t *testing.T, db *store.DB) {
	t.Helper()
	var integrity, journal string
	if err := db.View(t.Context(), func(tx *store.Tx) error {
		if err := tx.QueryRow("PRAGMA integrity_check").Scan(&integrity); err != nil {
			return err
		}
		return tx.QueryRow("PRAGMA journal_mode").Scan(&journal)
	}); err != nil || integrity != "ok" || journal != "wal" {
		t.Errorf("integrity %q, journal %q, %v", integrity, journal, err)
	}
}

// Somebody removed the database and not its log: what the log holds belongs to a Store
// that is gone.
func TestTheLogOfARemovedDatabaseIsNotReplayedIntoAFreshOne(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s")
	old := open(t, dir)
	if err := old.Update(t.Context(), func(tx *store.Tx) error { _, err := tx.Exec(insertSession, "s", "e"); return err }); err != nil {
		t.Fatal(err)
	}
	secret := string(old.Secret())
	log, err := os.ReadFile(filepath.Join(dir, store.FileName+"-wal"))
	if err != nil || len(log) == 0 {
		t.Fatalf("the test needs a log that holds something: %d bytes, %v", len(log), err)
	}
	old.Close()
	if err := os.Remove(filepath.Join(dir, store.FileName)); err != nil {
		t.Fatal(err)
	}
	for _, end := range []string{"-wal", ".new-journal", ".new-wal", ".new"} {
		if err := os.WriteFile(filepath.Join(dir, store.FileName+end), log, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	db := open(t, dir)
	var n int
	if err := db.View(t.Context(), func(tx *store.Tx) error { return tx.QueryRow("SELECT count(*) FROM session").Scan(&n) }); err != nil || n != 0 {
		t.Errorf("%d sessions of the old Store, %v", n, err)
	}
	if string(db.Secret()) == secret {
		t.Error("the fresh Store has the old secret")
	}
	checkWhole(t, db)
}

// A link at the name of the half-made file would choose where the records go.
func TestALinkInPlaceOfTheHalfMadeFileIsNotFollowed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	target := filepath.Join(t.TempDir(), "target")
	if err := os.WriteFile(target, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, filepath.Join(dir, store.FileName+".new")); err != nil {
		t.Fatal(err)
	}
	open(t, dir)
	if b, err := os.ReadFile(target); err != nil || string(b) != "mine" {
		t.Errorf("the target holds %d bytes, %v", len(b), err)
	}
	if info, err := os.Lstat(filepath.Join(dir, store.FileName)); err != nil || !info.Mode().IsRegular() || info.Mode().Perm() != 0o600 {
		t.Errorf("the database is %v, %v", info, err)
	}
}

// A disk with no room for a Store gets none: no half file is left for the next start. The
// limit on the size of files stands for a full disk and needs no rights; the process that
// has it is a child.
func TestADiskWithNoRoomForAStoreKeepsNoHalfOfOne(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s")
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), noRoomDir+"="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	left, err := filepath.Glob(filepath.Join(dir, store.FileName+"*"))
	if err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	checkWhole(t, open(t, dir)) // there is room again
}

// noRoomDir makes the re-executed test binary open a Store in it, with room for 64 KiB.
const noRoomDir = "AKK_STORE_TEST_NO_ROOM"

func openWithNoRoom(ctx context.Context, dir string) int {
	limit := syscall.Rlimit{Cur: 64 << 10, Max: 64 << 10}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		fmt.Println(err)
		return 1
	}
	if _, err := store.Open(ctx, dir, store.Options{}); !fault.Is(err, store.CodeStorage) {
		fmt.Println("want", store.CodeStorage, "got", err)
		return 1
	}
	return 0
}

// A file that somebody made empty is filled in its place, as ever.
func TestAnEmptyFileBecomesAStore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, store.FileName), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	checkWhole(t, open(t, dir))
}

// The space of rows that are removed later can be given back only when the file was made so.
func TestAFreshStoreCanShrink(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s")
	open(t, dir).Close()
	db, err := sql.Open("sqlite", filepath.Join(dir, store.FileName))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var mode int
	if err := db.QueryRow("PRAGMA auto_vacuum").Scan(&mode); err != nil || mode != 2 {
		t.Errorf("auto_vacuum is %d, want 2 (incremental), %v", mode, err)
	}
}
