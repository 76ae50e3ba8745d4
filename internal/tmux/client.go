package tmux

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
)

// Bounds of one run of the tmux client.
const (
	readBound  = 1500 * time.Millisecond // a listing or a capture
	inputBound = 5 * time.Second         // a load, a paste, a key
	dropBound  = time.Second             // cleaning up a buffer
	killGrace  = 500 * time.Millisecond  // from the kill of a client to the end of its pipes

	maxListing = 4 << 20 // bytes of one listing
	maxScreen  = 8 << 20 // bytes of one capture, styled and plain
	maxStderr  = 4 << 10
)

// binaries are tried in this order, but only while none could be started at all.
var binaries = []string{"tmux", "/opt/homebrew/bin/tmux", "/usr/local/bin/tmux", "/usr/bin/tmux"}

// runError is a failed run of the client.
type runError struct {
	started bool   // the client ran, so the server may have acted
	timeout bool   // our bound or the caller's ctx ended it
	stderr  string // for people; never compared
	err     error
}

func (e *runError) Error() string {
	if e.stderr != "" {
		return e.err.Error() + ": " + e.stderr
	}
	return e.err.Error()
}

func (e *runError) Unwrap() error { return e.err }

var (
	errNoBinary  = errors.New("no tmux program was found")
	errTooLarge  = errors.New("tmux printed more than expected")
	errTimeBound = errors.New("tmux did not answer in time")
)

// run runs `tmux -S socket args...` and returns what it printed; output is returned
// beside an error too. It never starts a server: no command that could is ever passed,
// and -N forbids it.
//
// The client gets nothing of our environment but what locates programs, so that nothing
// private can reach the server. It is its own process group, killed as a whole, and runs
// in "/", so no directory is kept busy and none can vanish under it.
func (s Server) run(ctx context.Context, bound time.Duration, limit int, stdin []byte, args ...string) ([]byte, *runError) {
	if s.bound > 0 {
		bound = s.bound
	}
	ctx, cancel := context.WithTimeoutCause(ctx, bound, errTimeBound)
	defer cancel()
	argv := append([]string{"-N", "-u", "-S", s.Socket}, args...)
	var last error = errNoBinary
	for _, name := range s.candidates() {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		out := &limited{max: limit, over: cancel}
		errOut := &limited{max: maxStderr}
		cmd := exec.CommandContext(ctx, path, argv...)
		cmd.Env = clientEnv()
		cmd.Dir = "/"
		cmd.Stdout, cmd.Stderr = out, errOut
		if stdin != nil {
			cmd.Stdin = bytes.NewReader(stdin)
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
		cmd.WaitDelay = killGrace

		if err := cmd.Start(); err != nil {
			if mayTryAnother(err) {
				last = err
				continue
			}
			return nil, &runError{err: err, timeout: ctx.Err() != nil}
		}
		err = cmd.Wait()
		switch {
		case out.overflow:
			return out.buf.Bytes(), &runError{started: true, err: errTooLarge}
		case err != nil && ctx.Err() != nil:
			return out.buf.Bytes(), &runError{started: true, timeout: true, err: context.Cause(ctx)}
		case err != nil:
			return out.buf.Bytes(), &runError{started: true, err: err, stderr: firstLine(errOut.buf.String())}
		}
		return out.buf.Bytes(), nil
	}
	return nil, &runError{err: last}
}

// Installed returns an error when no tmux program can be found.
func Installed() error {
	for _, name := range binaries {
		if _, err := exec.LookPath(name); err == nil {
			return nil
		}
	}
	return fault.Wrap(errNoBinary, fault.Unavailable, "tmux.installed", "no tmux program was found").WithHint("install tmux or put it on PATH")
}

func (s Server) candidates() []string {
	if len(s.programs) > 0 {
		return s.programs
	}
	return binaries
}

// mayTryAnother reports that the program was never started, for a reason that is about
// its path alone.
func mayTryAnother(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.ENOTDIR)
}

// clientEnv is the whole environment of a client.
func clientEnv() []string {
	env := []string{"LANG=C.UTF-8", "TERM=dumb"}
	for _, name := range []string{"PATH", "HOME"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// limited keeps the first max bytes. over, if set, is called when more arrive.
type limited struct {
	buf      bytes.Buffer
	max      int
	over     func()
	overflow bool
}

func (l *limited) Write(p []byte) (int, error) {
	if room := l.max - l.buf.Len(); len(p) > room {
		l.buf.Write(p[:max(room, 0)])
		if l.over != nil && !l.overflow {
			l.overflow = true
			l.over()
		}
		return len(p), nil
	}
	return l.buf.Write(p)
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return strings.ToValidUTF8(line, "?")
}

// newNonce returns letters and digits that no pane, path or title can hold by chance or
// on purpose: they are made for one command.
func newNonce() string {
	var b [8]byte
	rand.Read(b[:]) // never fails: the runtime ends the program instead
	return hex.EncodeToString(b[:])
}
