package proc

import (
	"os"
	"sync"
	"syscall"

	"github.com/agent-knock-knock/akk/internal/fault"
)

// Lifeline is a pipe whose write end only this process holds. When this process ends in
// any way, every child that inherited the read end sees EOF. One Lifeline serves any
// number of children.
type Lifeline struct {
	r, w *os.File
	once sync.Once
}

// lifelines keeps the write ends reachable: an unreachable os.File is closed by the
// garbage collector, and then every child would end.
var lifelines sync.Map // *Lifeline → struct{}

// NewLifeline makes the pipe. Both ends are close-on-exec here.
func NewLifeline() (*Lifeline, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "proc.NewLifeline", "cannot make a pipe")
	}
	l := &Lifeline{r: r, w: w}
	lifelines.Store(l, struct{}{})
	return l, nil
}

// ChildEnd returns the read end for exec.Cmd.ExtraFiles; the first extra file is
// descriptor 3 of the child. The Lifeline keeps owning it.
func (l *Lifeline) ChildEnd() *os.File { return l.r }

// Close closes both ends: every child sees EOF. It may be called twice.
func (l *Lifeline) Close() {
	l.once.Do(func() {
		lifelines.Delete(l)
		l.w.Close()
		l.r.Close()
	})
}

// WatchLifeline is the child's side: it calls onEOF once, from its own goroutine, when the
// starter is gone. A descriptor that is not a lifeline counts as gone at once, so a
// worker that was started by hand ends instead of staying alone. The descriptor is made
// close-on-exec, so that a grandchild cannot inherit it. The goroutine lives as long as
// the process; bytes on the pipe mean nothing.
func WatchLifeline(fd uintptr, onEOF func()) {
	syscall.CloseOnExec(int(fd))
	_ = syscall.SetNonblock(int(fd), true) // the runtime's poller waits; no thread is spent
	f := os.NewFile(fd, "lifeline")
	go func() {
		defer onEOF()
		if f == nil {
			return
		}
		defer f.Close()
		buf := make([]byte, 16)
		for {
			if _, err := f.Read(buf); err != nil {
				return
			}
		}
	}()
}
