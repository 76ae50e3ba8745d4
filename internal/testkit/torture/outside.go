package torture

import (
	"os/exec"
	"syscall"
	"time"

	"github.com/agent-knock-knock/akk/internal/crashpoint"
	"github.com/agent-knock-knock/akk/internal/testkit/fakehost"
)

// failToMakeAStore strikes the first start of all, in the middle of a fresh Store. What it
// leaves must not keep the next start.
func (r *round) failToMakeAStore() {
	r.tb.Helper()
	if r.Victim == Disk {
		mend := r.breakDisk(crashpoint.StoreMigrate, r.How)
		c, p, err := fakehost.Try(r.tb, r.bridge())
		if err == nil {
			c.Kill()
			r.tb.Errorf("a Bridge started though its Store cannot be made (%s)", r.How)
		} else if code := p.WaitExit(patience); code == 0 || p.Stderr() == "" {
			r.tb.Errorf("a Bridge that could not make its Store ended with %d and said %q", code, p.Stderr())
		}
		mend()
		r.nobodyLeft(time.Now())
		return
	}
	r.hold(crashpoint.StoreMigrate, r.Skip)
	p := fakehost.Spawn(r.tb, r.bridge())
	r.wait("the making of the Store", func() bool { return r.held(crashpoint.StoreMigrate) != 0 }, p.Stderr)
	if r.How == Doze {
		p.Signal(syscall.SIGSTOP)
	}
	start := time.Now()
	p.Kill()
	r.nobodyLeft(start)
	r.letGo()
}

// startOnABadDisk starts the next Bridge on a disk that fails and is mended a little later.
// A Bridge that lives must go on by itself; one that says that it cannot is started again
// by its Host: then it reports false.
func (r *round) startOnABadDisk() (lives bool) {
	r.tb.Helper()
	mend := r.breakDisk(crashpoint.StoreCommit, r.Start)
	c, p, err := fakehost.Try(r.tb, r.bridge())
	if err != nil {
		if code := p.WaitExit(patience); code == 0 || p.Stderr() == "" {
			r.tb.Errorf("a Bridge that could not start ended with %d and said %q", code, p.Stderr())
		}
		mend()
		r.nobodyLeft(time.Now())
		return false
	}
	r.c = c
	<-time.After(thaw)
	mend()
	return true
}

// sweepUnderStrike forgets what has ended, is struck in the middle, and does it again: the
// first time takes all or nothing away, the second one is not kept waiting by the first.
func (r *round) sweepUnderStrike() string {
	r.tb.Helper()
	before := len(r.records())
	failed := r.prune()
	if r.Victim == Disk {
		mend := r.breakDisk(crashpoint.StoreCommit, r.How)
		out, err := failed.CombinedOutput()
		mend()
		left := len(r.records())
		if err != nil && (left != before || len(out) == 0) || err == nil && (left != 0 || r.How != Full) {
			r.tb.Errorf("%d of %d tasks are left after %v: %s", left, before, err, out)
		}
	} else {
		r.hold(crashpoint.StoreCommit, 0)
		if err := failed.Start(); err != nil {
			r.tb.Fatal(err)
		}
		r.wait("the transaction that forgets", func() bool { return r.held(crashpoint.StoreCommit) == failed.Process.Pid }, func() string { return "" })
		if r.How == Doze {
			r.signal(failed.Process.Pid, syscall.SIGSTOP)
		}
		r.signal(failed.Process.Pid, syscall.SIGKILL)
		failed.Wait() // it was killed
		r.letGo()
		if left := len(r.records()); left != before {
			r.tb.Errorf("%d of %d tasks are left by a transaction that was not committed", left, before)
		}
	}
	r.checkStore()
	start := time.Now()
	if out, err := r.prune().CombinedOutput(); err != nil || len(r.records()) != 0 {
		r.tb.Errorf("the next time: %v, %d tasks are left: %s", err, len(r.records()), out)
	}
	if took := time.Since(start); took > goneLimit {
		r.tb.Errorf("the next time took %v: a lock of the dead", took)
	}
	r.checkStore()
	r.nobodyLeft(time.Now())
	return "forgotten"
}

func (r *round) prune() *exec.Cmd {
	return exec.CommandContext(r.tb.Context(), r.bin, "store", "prune", "--older-than", "1ms", "--store-dir", r.host.Store)
}
