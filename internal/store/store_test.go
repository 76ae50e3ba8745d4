package store_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/store"
)

// TestMain lets the test binary be its own second process: a writer on the same file.
func TestMain(m *testing.M) {
	if dir := os.Getenv("AKK_STORE_TEST_WRITER"); dir != "" {
		if err := countUp(context.Background(), dir, 50); err != nil {
			os.Stderr.WriteString(err.Error())
			os.Exit(1)
		}
		os.Exit(0)
	}
	if dir := os.Getenv(creatorDir); dir != "" {
		os.Exit(createForever(context.Background(), dir))
	}
	if dir := os.Getenv(noRoomDir); dir != "" {
		os.Exit(openWithNoRoom(context.Background(), dir))
	}
	if dir := os.Getenv(readOnlyDir); dir != "" {
		os.Exit(onReadOnlyDisk(context.Background(), dir))
	}
	os.Exit(m.Run())
}

func open(t *testing.T, dir string) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), dir, store.Options{Relaxed: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// countUp does n read-then-write transactions on one row, the shape that fails with a
// deferred transaction (case L13).
func countUp(ctx context.Context, dir string, n int) error {
	db, err := store.Open(ctx, dir, store.Options{Relaxed: true})
	if err != nil {
		return err
	}
	defer db.Close()
	for range n {
		err := db.Update(ctx, func(tx *store.Tx) error {
			var v int
			if err := tx.QueryRow("SELECT revision FROM session WHERE session_id = 's'").Scan(&v); err != nil {
				return err
			}
			_, err := tx.Exec("UPDATE session SET revision = ? WHERE session_id = 's'", v+1)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

const insertSession = `INSERT INTO session (session_id, agent, status, endpoint_key, thread_id, workspace, binding, revision, created_at, updated_at)
	VALUES (?, 'codex', 'detached', ?, '', '/w', '{}', 0, 0, 0)`

func TestFourProcessesWriteTheSameRowWithoutLosingAnUpdate(t *testing.T) { // L13, H7 2
	dir := filepath.Join(t.TempDir(), "s")
	db := open(t, dir)
	if err := db.Update(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec(insertSession, "s", "e")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	errs := make([]error, 4)
	for i := range errs {
		wg.Go(func() {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), "AKK_STORE_TEST_WRITER="+dir)
			if out, err := cmd.CombinedOutput(); err != nil {
				errs[i] = errors.New(string(out) + err.Error())
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	var n int
	if err := db.View(t.Context(), func(tx *store.Tx) error {
		return tx.QueryRow("SELECT revision FROM session").Scan(&n)
	}); err != nil || n != 200 {
		t.Fatalf("counter %d, error %v; want 200", n, err)
	}
}

func TestManyOpenersOfAFreshStoreSeeOneSchema(t *testing.T) { // H7 1, L17
	for range 5 {
		dir := filepath.Join(t.TempDir(), "fresh")
		var wg sync.WaitGroup
		errs := make([]error, 8)
		for i := range errs {
			wg.Go(func() {
				db, err := store.Open(context.Background(), dir, store.Options{Relaxed: true})
				if err == nil {
					err = db.Close()
				}
				errs[i] = err
			})
		}
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
}

func TestForeignKeysHoldOnEveryConnection(t *testing.T) { // H7 4, L14
	db := open(t, t.TempDir())
	for range 20 {
		err := db.Update(t.Context(), func(tx *store.Tx) error {
			_, err := tx.Exec("INSERT INTO turn_event (turn_id, seq, at, kind, data) VALUES ('no-such-turn', 1, 0, 'x', '{}')")
			return err
		})
		if !fault.Is(err, fault.Invalid) {
			t.Fatalf("orphan event: %v", err)
		}
	}
}

func TestReadersCannotWrite(t *testing.T) {
	db := open(t, t.TempDir())
	err := db.View(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec("DELETE FROM meta")
		return err
	})
	if err == nil {
		t.Fatal("a View wrote")
	}
}

func TestNewerWriterProtocolReadsButRefusesToWrite(t *testing.T) { // spec case 45
	dir := t.TempDir()
	db := open(t, dir)
	if err := db.Update(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec("UPDATE meta SET writer_protocol = 99")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	newer := open(t, dir)
	if newer.Writable() {
		t.Fatal("a newer Store counts as writable")
	}
	ran := false
	err := newer.Update(t.Context(), func(*store.Tx) error { ran = true; return nil })
	if !fault.Is(err, store.CodeIncompatible) || ran {
		t.Fatalf("error %v, ran %v", err, ran)
	}
	if _, _, hint := fault.Public(err); !strings.Contains(hint, "--store-dir") {
		t.Fatalf("hint %q names no next step", hint)
	}
	if err := newer.View(t.Context(), func(tx *store.Tx) error {
		return tx.QueryRow("SELECT count(*) FROM turn").Scan(new(int))
	}); err != nil {
		t.Fatal(err)
	}
}

// A newer release that opens the Store while an older one runs takes the writing from it.
func TestARunningReleaseStopsWritingWhenANewerOneTakesTheStore(t *testing.T) { // spec case 45
	for name, change := range map[string]string{"protocol": "UPDATE meta SET writer_protocol = 99", "schema": "PRAGMA user_version = 99"} {
		dir := t.TempDir()
		running, newer := open(t, dir), open(t, dir)
		nothing := func(*store.Tx) error { return nil }
		if err := running.Update(t.Context(), nothing); err != nil {
			t.Fatal(err)
		}
		if err := newer.Update(t.Context(), func(tx *store.Tx) error { _, err := tx.Exec(change); return err }); err != nil {
			t.Fatal(err)
		}
		ran := false
		if err := running.Update(t.Context(), func(*store.Tx) error { ran = true; return nil }); !fault.Is(err, store.CodeIncompatible) || ran || running.Writable() {
			t.Errorf("%s: %v, ran %v, writable %v", name, err, ran, running.Writable())
		}
	}
}

func TestNewerFormatIsRefused(t *testing.T) {
	dir := t.TempDir()
	db := open(t, dir)
	if err := db.Update(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec("UPDATE meta SET format = 99")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Open(t.Context(), dir, store.Options{}); !fault.Is(err, store.CodeIncompatible) {
		t.Fatal(err)
	}
}

func TestStoreFilesArePrivateAndLinksAreRefused(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "s")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	open(t, dir)
	for path, want := range map[string]os.FileMode{dir: 0o700, filepath.Join(dir, store.FileName): 0o600} {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, want %v (%v)", path, info.Mode().Perm(), want, err)
		}
	}
	link := filepath.Join(root, "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Open(t.Context(), link, store.Options{}); !fault.Is(err, store.CodeUnsafe) {
		t.Fatalf("a linked directory: %v", err)
	}
	dir2 := filepath.Join(root, "s2")
	if err := os.Mkdir(dir2, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, store.FileName), filepath.Join(dir2, store.FileName)); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Open(t.Context(), dir2, store.Options{}); !fault.Is(err, store.CodeUnsafe) {
		t.Fatalf("a linked file: %v", err)
	}
}

func TestStoreOnAReadOnlyDiskSaysWhatToDo(t *testing.T) {
	// /proc refuses every new file, for root too.
	_, err := store.Open(t.Context(), "/proc/akk-store", store.Options{})
	if !fault.Is(err, store.CodeUnwritable) {
		t.Fatal(err)
	}
	if _, _, hint := fault.Public(err); !strings.Contains(hint, "--store-dir") {
		t.Fatalf("hint %q", hint)
	}
}

func TestAWaiterThatGaveUpHoldsNoLockLater(t *testing.T) {
	dir := t.TempDir()
	a, b := open(t, dir), open(t, dir)
	holding, release := make(chan struct{}), make(chan struct{})
	done := make(chan error, 1)
	go func() {
		done <- a.Update(context.Background(), func(*store.Tx) error { close(holding); <-release; return nil })
	}()
	<-holding
	ctx, cancel := context.WithCancel(t.Context())
	gaveUp := make(chan error, 1)
	go func() { gaveUp <- b.Update(ctx, func(*store.Tx) error { return nil }) }()
	cancel()
	if err := <-gaveUp; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	close(release)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	for _, db := range []*store.DB{a, b, a} {
		if err := db.Update(t.Context(), func(*store.Tx) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
}

func BenchmarkOpenExisting(b *testing.B) {
	dir := b.TempDir()
	for b.Loop() {
		db, err := store.Open(b.Context(), dir, store.Options{})
		if err != nil {
			b.Fatal(err)
		}
		db.Close()
	}
}
