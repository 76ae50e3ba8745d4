package torture

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"time"

	"github.com/agent-knock-knock/akk/internal/crashpoint"
	"github.com/agent-knock-knock/akk/internal/turn"
)

// Who is struck.
const (
	Bridge  = "bridge"
	Monitor = "monitor"
	Worker  = "worker"
	Program = "program" // the Host's callback program
	Agent   = "agent"
	Tmux    = "tmux"
	Disk    = "disk"
	Pruner  = "pruner" // the command that forgets what ended long ago
)

// How.
const (
	Kill   = "kill"
	Freeze = "freeze" // SIGSTOP; ours are replaced by the product, the others are thawed
	Doze   = "doze"   // SIGSTOP, then SIGKILL while stopped
	Full   = "ENOSPC" // a disk that is really full, where one can be mounted
	Broken = "EIO"
	Sealed = "EROFS"
)

// programRuns is the one point that is not ours: the Host's program has noted the call and
// has not answered.
const programRuns = "program.runs"

// sweep is the point at which old tasks are forgotten.
const sweep = "retention.sweep"

// Strike is what one round does.
type Strike struct {
	Point  string
	Skip   int // how often the point is passed before
	Victim string
	How    string
	Again  time.Duration // after that the Bridge is killed as well; 0: it is not
	// Recover is the transaction in which the next Bridge is killed while it takes over; 0:
	// it is not. It means something after the end of a Bridge only.
	Recover int
	// Start is how the disk fails while the next Bridge starts and for a while after; "": it
	// does not. It means something after the end of a Bridge only.
	Start string
}

func (s Strike) String() string {
	out := fmt.Sprintf("%s %s at %s", s.How, s.Victim, s.Point)
	if s.Skip > 0 {
		out += fmt.Sprintf(" after %d", s.Skip)
	}
	if s.Again > 0 {
		out += fmt.Sprintf(", Bridge killed %v later", s.Again)
	}
	if s.Start != "" {
		out += fmt.Sprintf(", %s when the next Bridge starts", s.Start)
	}
	if s.Recover > 0 {
		out += fmt.Sprintf(", the next Bridge killed in its commit %d", s.Recover)
	}
	return out
}

// commits is how many transactions of one task are tried as a point.
const commits = 8

// recoverCommits is how many transactions of a Bridge that takes over are tried.
const recoverCommits = 5

// points are the boundaries in the order of a task.
func points() (out []Strike) {
	for _, p := range []string{crashpoint.SendReserve, crashpoint.SendReserved, crashpoint.SendArmed, crashpoint.SendProved, crashpoint.SendInjecting,
		crashpoint.SendPasted, crashpoint.SendDrafted, crashpoint.SendEntered, crashpoint.SendSent} {
		out = append(out, Strike{Point: p})
	}
	for _, kind := range []turn.ObservationKind{turn.ObsAccepted, turn.ObsCompleted} {
		for _, p := range []string{crashpoint.MonitorSaw, crashpoint.Observed, crashpoint.ObserveStored, crashpoint.ObserveAcked} {
			out = append(out, Strike{Point: p + "." + string(kind)})
		}
	}
	for _, p := range []string{crashpoint.OutboxClaimed, crashpoint.WorkerStart, programRuns, crashpoint.WorkerEnded, crashpoint.OutboxAnswer, crashpoint.OutboxSettled} {
		out = append(out, Strike{Point: p})
	}
	for i := range commits {
		out = append(out, Strike{Point: crashpoint.StoreCommit, Skip: i}, Strike{Point: crashpoint.StoreCommitted, Skip: i})
	}
	return out
}

// Strikes is every strike, shuffled by the seed; about a third is followed by a second one.
func Strikes(seed uint64) []Strike {
	rng := rand.New(rand.NewPCG(seed, 1))
	var all []Strike
	for _, p := range points() {
		for _, victim := range []struct {
			name string
			how  []string
		}{
			{Bridge, []string{Kill, Freeze, Doze}}, {Monitor, []string{Kill, Freeze}}, {Worker, []string{Kill, Freeze}}, {Program, []string{Kill, Freeze}},
			{Agent, []string{Kill, Freeze}}, {Tmux, []string{Kill, Freeze}}, {Disk, []string{Full, Broken, Sealed}},
		} {
			if victim.name == Program && p.Point != programRuns {
				continue
			}
			for _, how := range victim.how {
				s := p
				s.Victim, s.How = victim.name, how
				if rng.IntN(3) == 0 {
					s.Again = time.Duration(1 + rng.Int64N(int64(1500*time.Millisecond)))
				}
				if (s.Again > 0 || s.Victim == Bridge && s.How != Freeze) && rng.IntN(2) == 0 {
					s.Recover = 1 + rng.IntN(recoverCommits)
				}
				all = append(all, s)
			}
		}
	}
	all = append(all, outside()...)
	rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// migrations is how many steps of a fresh Store are tried as a point.
const migrations = 4

// outside are the strikes that hit no boundary of a task: a Store that is made, a Bridge
// that takes over, and tasks that are forgotten.
func outside() (out []Strike) {
	for _, how := range []string{Full, Broken, Sealed} {
		out = append(out, Strike{Point: crashpoint.StoreMigrate, Victim: Disk, How: how}, Strike{Point: sweep, Victim: Disk, How: how})
		for _, p := range []string{crashpoint.SendReserved, crashpoint.SendInjecting, crashpoint.SendEntered, crashpoint.SendSent,
			crashpoint.ObserveStored + "." + string(turn.ObsCompleted), crashpoint.OutboxClaimed, crashpoint.OutboxAnswer} {
			out = append(out, Strike{Point: p, Victim: Bridge, How: Kill, Start: how})
		}
	}
	for _, how := range []string{Kill, Doze} {
		out = append(out, Strike{Point: sweep, Victim: Pruner, How: how})
		for i := range migrations {
			out = append(out, Strike{Point: crashpoint.StoreMigrate, Skip: i, Victim: Bridge, How: how})
		}
	}
	return out
}

// untouched reports that the task itself is not struck.
func (s Strike) untouched() bool { return s.Point == crashpoint.StoreMigrate || s.Point == sweep }

// maybeNever reports that a task may end without coming to the point so often.
func (s Strike) maybeNever() bool {
	return s.Point == crashpoint.StoreCommit || s.Point == crashpoint.StoreCommitted
}

// thaw is how long what is not ours stays frozen: longer than a send waits for tmux.
const thaw = 2500 * time.Millisecond

// badDisk is how long a disk fails: longer than the Bridge's first tries to store the same
// thing again. nap is how long a Bridge lies stopped that is killed then; nobody waits for it.
const (
	badDisk = 1500 * time.Millisecond
	nap     = 500 * time.Millisecond
)

// strike does it. It returns what undoes it, to be called once the hold has ended.
func (r *round) strike() (undo func()) {
	s, w := r.Strike, r.world
	pid := 0
	switch s.Victim {
	case Bridge:
		return r.strikeBridge()
	case Disk:
		return r.strikeDisk()
	case Monitor:
		pid = w.child("akk-monitor")
	case Worker:
		pid = w.child("akk-callback")
	case Program:
		pid = w.child("callback")
	case Agent:
		pid = r.pane.PID
		r.agentHurt = s.How == Kill
	case Tmux:
		pid = w.tmux.PID()
		r.agentHurt = s.How == Kill
		if s.How == Kill {
			w.tmux.Kill()
			r.tmuxGone = true
			return func() {}
		}
	}
	if s.How == Kill {
		w.signal(pid, syscall.SIGKILL)
		return func() {}
	}
	w.signal(pid, syscall.SIGSTOP)
	if s.Victim == Agent || s.Victim == Tmux {
		return func() {
			<-time.After(thaw)
			w.signal(pid, syscall.SIGCONT)
		}
	}
	return func() {}
}

func (r *round) strikeBridge() func() {
	w := r.world
	switch r.How {
	case Kill:
		r.killBridge()
		return func() {}
	case Doze:
		w.c.Signal(syscall.SIGSTOP)
		return func() {
			<-time.After(nap)
			r.killBridge()
		}
	}
	w.c.Signal(syscall.SIGSTOP)
	return func() {
		<-time.After(thaw)
		w.c.Signal(syscall.SIGCONT)
	}
}

// killBridge kills the Bridge that runs and proves that nothing of it is left.
func (r *round) killBridge() {
	w := r.world
	start := time.Now()
	w.c.Kill()
	w.nobodyLeft(start)
	w.checkStore()
	r.dead = true
}

func (r *round) strikeDisk() func() {
	mend := r.breakDisk(crashpoint.StoreCommit, r.How)
	return func() {
		<-time.After(badDisk)
		mend()
	}
}

// breakDisk makes the disk fail, at the point if the failure is not a real one.
func (r *round) breakDisk(point, how string) (mend func()) {
	w := r.world
	if how == Full && r.disk != nil {
		r.disk.fill(w.tb)
		return func() { r.disk.free(w.tb) }
	}
	w.failAt(point, how)
	return w.letGo
}
