package proc_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/proc"
	"github.com/agent-knock-knock/akk/internal/testkit/freeze"
)

func newMark() string { return string(ids.NewAttempt()) }

// marked counts the living processes that carry mark, wherever they went.
func marked(mark string) int {
	n := 0
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		text, _ := os.ReadFile(file)
		if bytes.Contains(text, []byte(markName+"="+mark+"\x00")) {
			n++
		}
	}
	return n
}

func waitUntil(t *testing.T, what string, ok func() bool) time.Duration {
	t.Helper()
	start := time.Now()
	for tick := time.NewTicker(5 * time.Millisecond); ; <-tick.C {
		if ok() {
			return time.Since(start)
		}
		if time.Since(start) > patience {
			t.Fatalf("not within %s: %s", patience, what)
		}
	}
}

func newRunners(t testing.TB) *proc.Runners {
	t.Helper()
	s := proc.NewSpawner()
	r := proc.NewRunners(s, 1)
	t.Cleanup(func() { r.Close(); s.Close() })
	return r
}

// Cases S10 and H4 d.
func TestADescendantThatKeepsThePipeOpenDoesNotDelayTheResult(t *testing.T) {
	mark := newMark()
	spec := script("setsid sleep 60 & echo {}", mark)
	spec.Timeout = 10 * time.Second
	res := newRunners(t).Run(t.Context(), spec)
	if res.Err != nil || res.StartErr != nil || res.TimedOut || res.Exit != 0 || string(res.Stdout) != "{}\n" {
		t.Fatalf("got %+v, output %q", res, res.Stdout)
	}
	if n := marked(mark); n != 0 || res.Left != 0 {
		t.Fatalf("%d descendants alive, %d reported", n, res.Left)
	}
}

func TestATimeLimitEndsEveryDescendantWhateverItsSession(t *testing.T) {
	mark := newMark()
	spec := script(`trap '' TERM INT HUP
		sleep 600 &
		setsid sleep 600 &
		setsid sh -c 'setsid sh -c "sleep 600 & sleep 600" & sleep 600' &
		echo partly; sleep 600`, mark)
	spec.Timeout = 700 * time.Millisecond
	res := newRunners(t).Run(t.Context(), spec)
	if !res.TimedOut || res.Signal != syscall.SIGKILL || string(res.Stdout) != "partly\n" {
		t.Fatalf("got %+v, output %q", res, res.Stdout)
	}
	if n := marked(mark); n != 0 {
		t.Fatalf("%d descendants alive", n)
	}
}

func TestWhenTheStarterIsKilledEverythingOfTheProgramIsGone(t *testing.T) {
	mark := newMark()
	starter := self("starter")
	starter.Env = append(starter.Env, "AKK_PROC_TEST_SCRIPT=setsid sh -c 'setsid sleep 600 & sleep 600' & sleep 600")
	starter.Env = append(starter.Env, markName+"="+mark)
	if err := starter.Start(); err != nil {
		t.Fatal(err)
	}
	// the starter itself, sh, sleep, setsid sh, its two sleeps
	waitUntil(t, "the program's tree is up", func() bool { return marked(mark) >= 6 })
	if err := starter.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	took := waitUntil(t, "all gone", func() bool { return marked(mark) == 0 })
	_ = starter.Wait()
	t.Logf("gone after %s", took) // 30 ms; the product's limit is 2 s
}

func TestAProgramThatKillsItsRunnerDiesWithItAndTheResultSaysUnknown(t *testing.T) {
	mark := newMark()
	runners := newRunners(t)
	res := runners.Run(t.Context(), script("kill -9 $PPID; sleep 600", mark))
	if res.Err == nil || res.StartErr != nil {
		t.Fatalf("got %+v", res)
	}
	waitUntil(t, "program gone", func() bool { return marked(mark) == 0 })
	if res := runners.Run(t.Context(), script("echo again", mark)); string(res.Stdout) != "again\n" {
		t.Fatalf("the pool did not recover: %+v", res)
	}
}

func TestAForkChainIsCaught(t *testing.T) {
	mark := newMark()
	spec := script(`c='( setsid sh -c "$0" "$0" & ); exit'; sh -c "$c" "$c"; sleep 600`, mark)
	spec.Timeout = 500 * time.Millisecond
	res := newRunners(t).Run(t.Context(), spec)
	if !res.TimedOut || res.Left != 0 {
		t.Fatalf("got %+v", res)
	}
	if n := marked(mark); n != 0 {
		t.Fatalf("%d descendants alive", n)
	}
}

func TestOutputAtTheLimitPassesAndOneByteMoreEndsTheProgram(t *testing.T) {
	runners := newRunners(t)
	for _, stream := range []string{"1", "2"} {
		spec := script(fmt.Sprintf("head -c 1000 /dev/zero >&%s", stream), newMark())
		spec.MaxOutput = 1000
		if res := runners.Run(t.Context(), spec); res.Overflow || res.Exit != 0 {
			t.Errorf("stream %s at the limit: %+v", stream, res)
		}
		spec.Args[2] = fmt.Sprintf("head -c 1001 /dev/zero >&%s; sleep 600", stream)
		if res := runners.Run(t.Context(), spec); !res.Overflow || res.TimedOut || res.Signal != syscall.SIGKILL {
			t.Errorf("stream %s over the limit: %+v", stream, res)
		}
		spec.Args[2] = fmt.Sprintf("exec cat /dev/zero >&%s", stream) // a flood
		if res := runners.Run(t.Context(), spec); !res.Overflow || len(res.Stdout) > 1001 {
			t.Errorf("stream %s flooded: %+v", stream, res)
		}
	}
}

func TestInputArrivesByteForByteAndMayBeIgnored(t *testing.T) {
	runners := newRunners(t)
	body := []byte("echo ${HOME} $(x) `y` \x00 \xff 😀\r\n")
	spec := script("exec cat", newMark())
	spec.Stdin = body
	if res := runners.Run(t.Context(), spec); !bytes.Equal(res.Stdout, body) {
		t.Errorf("got %q", res.Stdout)
	}
	spec = script("echo done", newMark())
	spec.Stdin = make([]byte, 1<<20)
	if res := runners.Run(t.Context(), spec); res.Exit != 0 || string(res.Stdout) != "done\n" {
		t.Errorf("unread input: %+v", res)
	}
}

// Whoever runs the program may stop or die at any moment. What the program then reads is
// all of its input or an error, never a part that looks whole.
func TestInputIsWholeWhateverBecomesOfTheStarter(t *testing.T) {
	dir, mark := t.TempDir(), newMark()
	up, read, count := filepath.Join(dir, "up"), filepath.Join(dir, "read"), filepath.Join(dir, "count")
	starter := self("starter")
	starter.Env = append(starter.Env, markName+"="+mark, "AKK_PROC_TEST_SCRIPT=>"+up+"; until [ -e "+read+" ]; do sleep 0.02; done; wc -c >"+count+".new; mv "+count+".new "+count)
	if err := starter.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = starter.Process.Kill()
		_ = starter.Wait()
	}()
	waitUntil(t, "program up", func() bool { _, err := os.Stat(up); return err == nil })
	freeze.Process(t, starter.Process.Pid)
	if err := os.WriteFile(read, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, "input read", func() bool { _, err := os.Stat(count); return err == nil })
	if n, err := os.ReadFile(count); err != nil || strings.TrimSpace(string(n)) != fmt.Sprint(starterInput) {
		t.Errorf("the program read %q bytes of %d, %v", n, starterInput, err)
	}
}

// libcSignals are signals 32 and 33 in the ignored set. The C library keeps them for its
// threads, no program may set them, and its posix_spawn (make uses it) leaves them ignored
// in everything below.
var libcSignals = regexp.MustCompile(`(SigIgn:\t0{7})[01][08]`)

func TestTheProgramInheritsNothingThatItWasNotGiven(t *testing.T) {
	t.Setenv("AKK_PROC_TEST_SECRET", "leak")
	leak, err := syscall.Dup(1) // not close-on-exec, as a careless Host leaves its pipes
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(leak)
	runners := newRunners(t)
	for _, c := range []struct {
		argv []string
		want string
	}{
		{[]string{"/usr/bin/env"}, "B=\xff\nA=\n"},
		{[]string{"/bin/ls", "/proc/self/fd"}, "0\n1\n2\n3\n"}, // 3 is its own look at the directory
		{[]string{"/bin/grep", "-hE", "Sig(Ign|Blk)", "/proc/self/status"}, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n"},
	} {
		spec := proc.Spec{
			Program: proc.Program{Path: c.argv[0], Args: c.argv, Env: []string{"B=\xff", "A="}},
			Timeout: patience, MaxOutput: 1 << 10,
		}
		res := runners.Run(t.Context(), spec)
		if got := libcSignals.ReplaceAllString(string(res.Stdout), "${1}00"); got != c.want {
			t.Errorf("%s: %q, want %q (%+v)", c.argv[0], got, c.want, res.StartErr)
		}
	}
}

func TestAProgramThatCannotStartIsToldApartFromOneThatFailed(t *testing.T) {
	runners := newRunners(t)
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path string
		arg  string
		want syscall.Errno
	}{
		{plain + "-missing", "", syscall.ENOENT},
		{plain + "/below", "", syscall.ENOTDIR},
		{plain, "", syscall.EACCES},
		{"/bin/sh", strings.Repeat("x", 1<<18), syscall.E2BIG},
		{"/bin/sh", strings.Repeat("x", 9<<20), syscall.E2BIG},
		{"/bin/sh", "a\x00b", syscall.EINVAL},
	} {
		spec := script("", "m")
		spec.Path, spec.Args = c.path, []string{"x", c.arg}
		res := runners.Run(t.Context(), spec)
		if res.StartErr == nil || res.StartErr.Errno != c.want || !errors.Is(res.StartErr, c.want) {
			t.Errorf("%s: %+v, want %v", c.path, res, c.want)
		}
	}
	if res := runners.Run(t.Context(), script("exit 7", "m")); res.StartErr != nil || res.Exit != 7 {
		t.Errorf("exit 7: %+v", res)
	}
}

func TestACanceledRunEndsTheProgram(t *testing.T) {
	mark := newMark()
	ctx, cancel := context.WithCancel(t.Context())
	runners := newRunners(t)
	done := make(chan proc.Result, 1)
	go func() { done <- runners.Run(ctx, script("sleep 600 & sleep 600", mark)) }()
	waitUntil(t, "program up", func() bool { return marked(mark) >= 3 })
	cancel()
	res := <-done
	if !res.Canceled || res.TimedOut || res.Signal != syscall.SIGKILL || marked(mark) != 0 {
		t.Fatalf("got %+v, %d alive", res, marked(mark))
	}
	if res := runners.Run(ctx, script("true", mark)); res.StartErr == nil {
		t.Fatalf("started although canceled: %+v", res)
	}
}

func TestOneRunnerServesManyPrograms(t *testing.T) {
	runners := newRunners(t)
	if err := runners.Warm(); err != nil {
		t.Fatal(err)
	}
	first := runners.Run(t.Context(), script("echo $PPID", "m")).Stdout
	for range 20 {
		if again := runners.Run(t.Context(), script("echo $PPID; sleep 60 & ", "m")).Stdout; !bytes.Equal(first, again) {
			t.Fatalf("runner %q, then %q", first, again)
		}
	}
}

func TestClosingTheRunnersEndsARunningProgram(t *testing.T) {
	mark := newMark()
	s := proc.NewSpawner()
	defer s.Close()
	runners := proc.NewRunners(s, 1)
	done := make(chan proc.Result, 1)
	go func() { done <- runners.Run(context.Background(), script("setsid sleep 600 & sleep 600", mark)) }()
	waitUntil(t, "program up", func() bool { return marked(mark) >= 3 })
	runners.Close()
	if res := <-done; res.Err == nil {
		t.Errorf("got %+v", res)
	}
	if n := marked(mark); n != 0 {
		t.Errorf("%d alive", n)
	}
	if res := runners.Run(t.Context(), script("true", mark)); res.StartErr == nil {
		t.Errorf("started after Close: %+v", res)
	}
}

func BenchmarkContainedTrue(b *testing.B) {
	runners := newRunners(b)
	if err := runners.Warm(); err != nil {
		b.Fatal(err)
	}
	spec := proc.Spec{Program: proc.Program{Path: "/bin/true", Args: []string{"true"}}, Timeout: patience, MaxOutput: 100}
	for b.Loop() {
		if res := runners.Run(b.Context(), spec); res.Exit != 0 || res.Err != nil || res.StartErr != nil {
			b.Fatalf("%+v", res)
		}
	}
}

func BenchmarkRunnerStart(b *testing.B) {
	s := proc.NewSpawner()
	defer s.Close()
	spec := proc.Spec{Program: proc.Program{Path: "/bin/true", Args: []string{"true"}}, Timeout: patience, MaxOutput: 100}
	for b.Loop() {
		runners := proc.NewRunners(s, 1)
		if res := runners.Run(b.Context(), spec); res.Exit != 0 || res.Err != nil || res.StartErr != nil {
			b.Fatalf("%+v", res)
		}
		runners.Close()
	}
}
