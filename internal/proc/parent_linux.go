package proc

import (
	"context"
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/agent-knock-knock/akk/internal/fault"
)

func watchParent(ctx context.Context, ppid int, gone chan<- struct{}) error {
	fd, err := unix.PidfdOpen(ppid, unix.PIDFD_NONBLOCK)
	switch {
	case errors.Is(err, unix.ESRCH):
		close(gone)
		return nil
	case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EINVAL), errors.Is(err, unix.EPERM):
		go pollParent(ctx, ppid, gone) // an old kernel or a sandbox
		return nil
	case err != nil:
		return fault.Wrap(err, fault.Unavailable, "proc.WatchParent", "cannot watch process %d", ppid)
	}
	f := os.NewFile(uintptr(fd), "pidfd")
	if os.Getppid() != ppid { // it ended before we held the descriptor: it may name a stranger
		f.Close()
		close(gone)
		return nil
	}
	conn, err := f.SyscallConn()
	if err != nil {
		f.Close()
		return fault.Wrap(err, fault.Internal, "proc.WatchParent", "cannot watch process %d", ppid)
	}
	go func() {
		defer f.Close()
		stop := context.AfterFunc(ctx, func() { f.Close() })
		defer stop()
		ended := false
		err := conn.Read(func(fd uintptr) bool {
			n, _ := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
			ended = n > 0
			return ended
		})
		switch {
		case ended:
			close(gone)
		case err != nil && ctx.Err() == nil:
			pollParent(ctx, ppid, gone)
		}
	}()
	return nil
}
