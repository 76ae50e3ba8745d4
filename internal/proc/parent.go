package proc

import (
	"context"
	"os"
	"time"
)

// parentPollInterval is the pace of the fallback where the kernel tells nothing.
const parentPollInterval = time.Second

// startedBy is read when the program starts, before the parent had much time to end.
var startedBy = os.Getppid()

// WatchParent returns a channel that is closed when the process that started us is gone,
// even when something else still holds our stdin open. It costs no wakeup on Linux (a
// pidfd) and one look a second elsewhere. The watch ends with ctx; then the channel stays
// open.
func WatchParent(ctx context.Context) (<-chan struct{}, error) {
	gone := make(chan struct{})
	if os.Getppid() != startedBy {
		close(gone)
		return gone, nil
	}
	return gone, watchParent(ctx, startedBy, gone)
}

// pollParent closes gone when the parent changed: an orphan gets another one.
func pollParent(ctx context.Context, ppid int, gone chan<- struct{}) {
	tick := time.NewTicker(parentPollInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if os.Getppid() != ppid {
				close(gone)
				return
			}
		}
	}
}
