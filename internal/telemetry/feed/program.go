package feed

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/proc"
	"github.com/agent-knock-knock/akk/internal/redact"
	"github.com/agent-knock-knock/akk/internal/supervise"
	"github.com/agent-knock-knock/akk/internal/telemetry"
)

const (
	maxLogLine   = 500 // of the program's own words
	maxLogLines  = 20  // in the life of one program
	killLimit    = 2 * time.Second
	programGrace = StopLimit - drainLimit
)

// codeMismatch is of a program of another release, or of none.
const codeMismatch fault.Code = "telemetry_program"

// run keeps the program running until the Feed stops.
func (f *Feed) run(ctx context.Context) {
	back := backoffMin
	counts := f.started
	for {
		begin := time.Now()
		err := f.live(ctx, begin.Add(-retell), counts)
		if f.isClosing() || ctx.Err() != nil {
			return
		}
		if fault.Is(err, codeMismatch) {
			f.giveUp(err)
			return
		}
		counts = time.Now()
		if counts.Sub(begin) >= provedAfter {
			back = backoffMin
		}
		f.Restarted(telemetry.Program)
		_, msg, _ := fault.Public(err)
		f.change(func(w *supervise.WorkerStatus) {
			w.State, w.PID, w.LastError = supervise.StateBackoff, 0, msg
			w.Restarts++
		})
		f.cfg.Log.Warn("akk-telemetry ended and is started again", "after", back, "err", err)
		t := time.NewTimer(back)
		select {
		case <-t.C:
		case <-f.closing:
		case <-ctx.Done():
		}
		t.Stop()
		back = min(2*back, backoffMax)
	}
}

// program is one running akk-telemetry.
type program struct {
	cmd    *exec.Cmd
	in     *os.File
	exited chan struct{} // closed when it was reaped
	beat   atomic.Int64  // of its last sign of life, Unix nanoseconds

	mu     sync.Mutex // guards reaped against a kill of a reused number
	reaped bool
	err    error // valid after exited
}

// live is the life of one program. nil says that the Feed stopped.
func (f *Feed) live(ctx context.Context, spans, counts time.Time) error {
	p, err := f.start(spans, counts)
	if err != nil {
		return err
	}
	f.mu.Lock()
	f.since = time.Now()
	f.worker.State, f.worker.PID, f.worker.LastHeartbeat = supervise.StateServing, p.cmd.Process.Pid, f.since
	f.mu.Unlock()
	work, cancel := context.WithCancel(ctx)
	var telling sync.WaitGroup
	telling.Go(func() { f.tell(work, p) })
	f.guard(work, p)
	cancel()
	_ = p.in.Close() // a write that hangs ends; the program sees the end of its input
	telling.Wait()
	if f.isClosing() && ctx.Err() == nil {
		p.wait(programGrace)
	}
	p.kill()
	if !p.wait(killLimit) {
		f.cfg.Log.Error("akk-telemetry could not be ended in time", "pid", p.cmd.Process.Pid)
		return fault.New(fault.Timeout, "telemetry.program", "it could not be ended in time")
	}
	return p.end(f.cfg.Release)
}

// guard returns when the program ended or is silent for too long, or the Feed stops and
// what waited was told.
func (f *Feed) guard(ctx context.Context, p *program) {
	closing, drained := f.closing, (<-chan time.Time)(nil)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	last := time.Now()
	for {
		select {
		case <-p.exited:
			return
		case <-ctx.Done():
			return
		case <-closing:
			closing = nil
			t := time.NewTimer(drainLimit)
			defer t.Stop()
			drained = t.C
		case <-drained:
			return
		case <-tick.C:
		}
		if closing == nil && f.empty() {
			return
		}
		now := time.Now()
		if now.Sub(last) > hangAfter/3 { // we were stopped, or the machine slept
			p.beat.Store(now.UnixNano())
		}
		last = now
		beat := time.Unix(0, p.beat.Load())
		f.change(func(w *supervise.WorkerStatus) { w.LastHeartbeat = beat })
		if now.Sub(beat) > hangAfter {
			f.change(func(w *supervise.WorkerStatus) { w.State = supervise.StateUnhealthy })
			f.cfg.Log.Warn("akk-telemetry is silent and is ended", "pid", p.cmd.Process.Pid)
			return
		}
	}
}

// empty reports whether nothing waits and nothing is being written.
func (f *Feed) empty() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.waiting) == 0 && !f.writing
}

// tell writes facts until ctx ends or the program does not read any more.
func (f *Feed) tell(ctx context.Context, p *program) {
	tick := time.NewTicker(levelsEvery)
	defer tick.Stop()
	if !f.tellLevels(ctx, p) {
		return
	}
	for {
		f.setWriting(true)
		for s, ok := f.take(); ok; s, ok = f.take() {
			fact, err := f.fact(ctx, s)
			if ctx.Err() != nil {
				f.drop()
				return
			}
			if !f.write(p, fact, err, s.ID) {
				return
			}
		}
		f.setWriting(false)
		select {
		case <-ctx.Done():
			return
		case <-f.wake:
		case <-tick.C:
			if !f.tellLevels(ctx, p) {
				return
			}
		}
	}
}

func (f *Feed) setWriting(on bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.writing = on
}

func (f *Feed) tellLevels(ctx context.Context, p *program) bool {
	fact, err := f.levels(ctx)
	return ctx.Err() == nil && f.write(p, fact, err, "")
}

// write sends one fact; false says that the program does not read. A fact that cannot be
// read or made is dropped.
func (f *Feed) write(p *program, fact telemetry.Fact, err error, of string) bool {
	var line []byte
	if err == nil {
		line, err = telemetry.Encode(fact)
	}
	if err != nil {
		f.drop()
		f.cfg.Log.Debug("a fact was not told", "of", of, "err", err)
		return true
	}
	if _, err := p.in.Write(line); err != nil {
		f.drop()
		return false
	}
	return true
}

func (f *Feed) start(spans, counts time.Time) (*program, error) {
	const op = "telemetry.start"
	hint := "put akk-telemetry of the same release next to agent-knock-knock (make install), then restart the Bridge"
	if fi, err := os.Stat(f.cfg.Program); err != nil || !fi.Mode().IsRegular() || fi.Mode().Perm()&0o111 == 0 {
		return nil, fault.New(codeMismatch, op, "%s is not there or is no program", f.cfg.Program).WithHint("%s", hint)
	}
	var files []*os.File
	pipe := func() (r, w *os.File, err error) {
		if r, w, err = os.Pipe(); err == nil {
			files = append(files, r, w)
		}
		return r, w, err
	}
	closeAll := func() {
		for _, f := range files {
			f.Close()
		}
	}
	inR, inW, err1 := pipe()
	outR, outW, err2 := pipe()
	errR, errW, err3 := pipe()
	if err := errors.Join(err1, err2, err3); err != nil {
		closeAll()
		return nil, fault.Wrap(err, fault.Unavailable, op, "cannot make a pipe")
	}
	p := &program{in: inW, exited: make(chan struct{})}
	p.cmd = exec.Command(f.cfg.Program, "-release", f.cfg.Release, "-bridge", string(f.cfg.Bridge),
		fmt.Sprintf("-traces=%v", f.cfg.Wanted.Traces), fmt.Sprintf("-metrics=%v", f.cfg.Wanted.Metrics),
		"-spans-from", strconv.FormatInt(spans.UnixMilli(), 10), "-counts-from", strconv.FormatInt(counts.UnixMilli(), 10), "-traceparent", parent(f.cfg.Parent))
	p.cmd.Env = environment(f.cfg.Environ)
	p.cmd.Dir = "/"
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = inR, outW, errW // files, so that Wait waits for no copying
	p.beat.Store(time.Now().UnixNano())
	if err := f.cfg.Spawner.Start(p.cmd, proc.Options{}); err != nil {
		closeAll()
		return nil, fault.Wrap(err, fault.Unavailable, op, "%s cannot be run", f.cfg.Program).WithHint("%s", hint)
	}
	inR.Close()
	outW.Close()
	errW.Close()
	var readers sync.WaitGroup
	readers.Go(func() { p.hear(outR) })
	readers.Go(func() { f.log(errR) })
	go func() {
		err := p.cmd.Wait()
		p.mu.Lock()
		p.reaped, p.err = true, err
		p.mu.Unlock()
		outR.Close() // it starts nothing that could hold them open
		errR.SetReadDeadline(time.Now().Add(killLimit / 10))
		readers.Wait()
		errR.Close()
		close(p.exited)
	}()
	return p, nil
}

// parent keeps a traceparent that is one.
func parent(s string) string {
	if _, _, _, ok := telemetry.TraceParent(s); !ok {
		return ""
	}
	return s
}

func (p *program) hear(r *os.File) {
	buf := make([]byte, 64)
	for {
		if _, err := r.Read(buf); err != nil {
			return
		}
		p.beat.Store(time.Now().UnixNano())
	}
}

// log passes on what the program says, up to a bound, and reads all of it.
func (f *Feed) log(r *os.File) {
	in := bufio.NewReaderSize(r, 4<<10)
	n := 0
	for {
		line, err := in.ReadSlice('\n')
		if text := redact.Line(redact.String(strings.TrimSpace(string(line))), maxLogLine); text != "" && n < maxLogLines {
			n++
			f.cfg.Log.Warn("akk-telemetry says", "line", text)
		}
		if err != nil && err != bufio.ErrBufferFull {
			return
		}
	}
}

// wait reports whether the program ended and was reaped in time.
func (p *program) wait(limit time.Duration) bool {
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case <-p.exited:
		return true
	case <-t.C:
		return false
	}
}

// kill ends the program's whole group at once.
func (p *program) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		_ = proc.KillGroup(p.cmd.Process.Pid)
	}
}

// end says why the program ended.
func (p *program) end(release string) error {
	const op = "telemetry.program"
	if p.cmd.ProcessState.ExitCode() == telemetry.ExitMismatch {
		return fault.New(codeMismatch, op, "%s is of another release than this Bridge (%s)", p.cmd.Path, release).
			WithHint("install the programs of one release together, then restart the Bridge")
	}
	return fault.New(fault.Unavailable, op, "it ended: %s", p.cmd.ProcessState)
}

// passed are the variables that the program gets beside the standard ones: where its
// receiver is reached and whom it trusts.
var passed = []string{"PATH", "HOME", "TZ", "LANG", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"}

func environment(all []string) []string {
	env := []string{"GOMAXPROCS=1"}
	for _, v := range all {
		name, _, _ := strings.Cut(v, "=")
		if strings.HasPrefix(name, "OTEL_") {
			env = append(env, v)
			continue
		}
		for _, p := range passed {
			if name == p {
				env = append(env, v)
			}
		}
	}
	return env
}
