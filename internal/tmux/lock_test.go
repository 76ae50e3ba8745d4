package tmux_test

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/tmux"
)

// lockDir makes the re-executed test binary hold a lock until it is killed.
const lockDir = "AKK_TMUX_TEST_LOCK_DIR"

func holdLock() {
	dir := os.Getenv(lockDir)
	if dir == "" {
		return
	}
	if _, err := tmux.LockPane(context.Background(), dir, "pane"); err != nil {
		os.Exit(1)
	}
	os.Stdout.WriteString("locked\n")
	io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

func TestOneInputAtATimeIntoAPane(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	unlock, err := tmux.LockPane(t.Context(), dir, "pane")
	if err != nil {
		t.Fatal(err)
	}
	_, err = tmux.LockPane(t.Context(), dir, "pane")
	if !fault.Is(err, tmux.CodeInputBusy) || !strings.Contains(err.Error(), "in progress") {
		t.Errorf("second lock: %v", err)
	}
	other, err := tmux.LockPane(t.Context(), dir, "other pane")
	if err != nil {
		t.Errorf("another pane: %v", err)
	} else {
		other()
	}
	unlock()
	unlock()
	again, err := tmux.LockPane(t.Context(), dir, "pane")
	if err != nil {
		t.Fatalf("after unlock: %v", err)
	}
	again()
	if st, err := os.Stat(dir); err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("runtime directory: %v, %v", st, err)
	}
}

// A11: a lock must not outlive its owner.
func TestALockEndsWithItsProcess(t *testing.T) {
	dir := t.TempDir()
	os.Chmod(dir, 0o700)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), lockDir+"="+dir)
	in, _ := cmd.StdinPipe()
	defer in.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, len("locked\n"))
	if _, err := io.ReadFull(out, line); err != nil {
		t.Fatalf("the owner did not lock: %v", err)
	}
	if _, err := tmux.LockPane(t.Context(), dir, "pane"); !fault.Is(err, tmux.CodeInputBusy) {
		t.Errorf("while the owner lives: %v", err)
	}
	cmd.Process.Kill()
	cmd.Wait()
	unlock, err := tmux.LockPane(t.Context(), dir, "pane")
	if err != nil {
		t.Fatalf("after the owner was killed: %v", err)
	}
	unlock()
}

func TestALockNeedsAPrivateDirectory(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := tmux.LockPane(t.Context(), dir, "pane"); !fault.Is(err, fault.Invalid) {
		t.Errorf("a directory that others may read: %v", err)
	}
	link := filepath.Join(t.TempDir(), "link")
	os.Symlink(dir, link)
	if _, err := tmux.LockPane(t.Context(), link, "pane"); !fault.Is(err, fault.Invalid) {
		t.Errorf("a symbolic link: %v", err)
	}
}
