package tmux

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/agent-knock-knock/akk/internal/fault"
)

// CodeInputBusy says that somebody else of ours is typing into the same pane.
const CodeInputBusy fault.Code = "input_busy"

const (
	lockBound = 2 * time.Second       // how long LockPane waits for the other to finish
	lockRetry = 20 * time.Millisecond // between two tries; flock cannot wait with a bound
)

// LockPane makes sure that one process of this user at a time types into a pane. The lock
// is an flock on a file in dir (made with mode 0700) that is named by the hash of
// endpointKey; it ends with its process, however that ends, and the file stays.
//
// If another input is in progress for longer than two seconds, or until ctx ends, the
// error is [CodeInputBusy]. unlock may be called more than once.
func LockPane(ctx context.Context, dir, endpointKey string) (unlock func(), err error) {
	const op = "tmux.lock"
	if err := privateDir(dir); err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(endpointKey))
	path := filepath.Join(dir, "pane-"+hex.EncodeToString(sum[:16])+".lock")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fault.Wrap(err, fault.Internal, op, "cannot open the lock of the pane")
	}
	ctx, cancel := context.WithTimeout(ctx, lockBound)
	defer cancel()
	tick := time.NewTicker(lockRetry)
	defer tick.Stop()
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			f.Close()
			return nil, fault.Wrap(err, fault.Internal, op, "cannot lock the pane")
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, fault.Wrap(ctx.Err(), CodeInputBusy, op, "another input into this pane is in progress").
				WithHint("try again when it is done")
		case <-tick.C:
		}
	}
}

// privateDir makes dir if needed and refuses one that others may write into.
func privateDir(dir string) error {
	const op = "tmux.lock"
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fault.Wrap(err, fault.Internal, op, "cannot make the runtime directory %s", dir)
	}
	var st unix.Stat_t
	if err := unix.Lstat(dir, &st); err != nil {
		return fault.Wrap(err, fault.Internal, op, "cannot read the runtime directory %s", dir)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR || int(st.Uid) != os.Geteuid() || st.Mode&0o077 != 0 {
		return fault.New(fault.Invalid, op, "the runtime directory %s is not private", dir).
			WithHint("make it a directory of yours with mode 0700")
	}
	return nil
}
