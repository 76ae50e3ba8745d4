package harnessserver

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/harness"
	"github.com/agent-knock-knock/akk/internal/harness/config"
)

const (
	lockTick = 20 * time.Millisecond
	// lockPatience is longer than the end of a server whose supervisor died.
	lockPatience = 3 * time.Second
)

// Holder is what a running server writes into the lock file it holds, for people and for
// doctor. Only the lock itself says that a server runs.
type Holder struct {
	PID       int       `json:"pid"`
	StartedAt time.Time `json:"started_at"`
	BootID    string    `json:"boot_id,omitempty"`
	Address   string    `json:"addr"`
	Nonce     string    `json:"nonce"`
}

// prepareDir makes the state directory, for its owner alone. A link is refused: who can
// place one would choose where records and the token go.
func prepareDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return harness.Fail(err, harness.InvalidConfig, "the state directory %s cannot be made", dir).Advise("set state_dir or pass --state-dir")
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return harness.Fail(err, harness.InvalidConfig, "the state directory %s cannot be looked at", dir)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case info.Mode()&os.ModeSymlink != 0:
		return harness.Refuse(harness.InvalidConfig, "the state directory %s is a link", dir).Advise("name the directory itself")
	case !info.IsDir():
		return harness.Refuse(harness.InvalidConfig, "%s is not a directory", dir)
	case !ok || int(st.Uid) != os.Geteuid():
		return harness.Refuse(harness.InvalidConfig, "the state directory %s belongs to another user", dir)
	}
	if info.Mode().Perm() != 0o700 {
		if err := os.Chmod(dir, 0o700); err != nil {
			return harness.Fail(err, harness.InvalidConfig, "the state directory %s is open to others", dir).Advise("chmod 700 it")
		}
	}
	return nil
}

// lockDir takes the lock of the state directory until the file is closed or the process
// ends. It waits for the holder as long as patience says: a server that ends gives its
// address up before its lock.
func lockDir(ctx context.Context, dir string, patience time.Duration) (*os.File, error) {
	path := config.LockFile(dir)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, harness.Fail(err, harness.InvalidConfig, "the lock file %s cannot be opened", path)
	}
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	tick := time.NewTicker(lockTick)
	defer tick.Stop()
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) || ctx.Err() != nil {
			break
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	if err == nil {
		return f, nil
	}
	defer f.Close()
	if !errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, harness.Fail(err, fault.Internal, "the lock file %s cannot be locked", path)
	}
	e := harness.Refuse(harness.ServerAlreadyRunning, "a server already uses the state directory %s", dir).Advise("use that server, or another state_dir")
	var h Holder
	if text, readErr := io.ReadAll(io.LimitReader(f, 4096)); readErr == nil && json.Unmarshal(text, &h) == nil {
		e = e.With(harness.Detail{"pid": h.PID, "addr": h.Address})
	}
	return nil, e
}

// record writes who holds the lock. The file is for reading only; nothing depends on it.
func record(f *os.File, h Holder) error {
	text, err := json.Marshal(h)
	if err != nil {
		return err
	}
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err = f.WriteAt(append(text, '\n'), 0)
	return err
}

// bootID tells one boot of the machine from the next, "" where the system does not say.
func bootID() string {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

func secret() string {
	b := make([]byte, 32)
	rand.Read(b) // never fails since Go 1.24
	return hex.EncodeToString(b)
}

// writeToken stores a new token for the owner alone. It replaces the file, so that a reader
// sees a whole old token or a whole new one.
func writeToken(dir, token string) error {
	path := config.TokenFile(dir)
	f, err := os.CreateTemp(filepath.Dir(path), ".token-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.WriteString(token + "\n")
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // the error above is the one that counts
	}
	return err
}
