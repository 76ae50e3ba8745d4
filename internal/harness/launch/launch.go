package launch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/proc"
)

// Codes of this package's errors. A failed start has started nothing.
const (
	SpawnFailed       fault.Code = "spawn_failed"
	InvalidCwd        fault.Code = "invalid_cwd"
	UnsupportedTarget fault.Code = "unsupported_target"
)

// The places where a program can run.
const (
	TargetLocal   = "local"
	RuntimeDirect = "direct"
)

// Spec says what to start and where.
type Spec struct {
	Target  string // "" means local
	Runtime string // "" means direct
	// Argv is one element an argument; no shell is involved. Argv[0] is an absolute path,
	// or a name that is looked up in the absolute directories of the child's PATH.
	Argv []string
	Dir  string // absolute, an existing directory
	// Env beats what the child inherits; only a short list of our own variables is
	// inherited, see [Environment].
	Env map[string]string
	// EachError gets each line of the error output that is whole, with what a person needs of
	// it: only the values of secret variables are masked. It must not wait for anything.
	EachError func(line string)
}

// Exit is how a program ended.
type Exit struct {
	Code   int            // exit status, -1 when a signal ended it or nobody knows
	Signal syscall.Signal // 0 when it exited
	Lost   bool           // how it ended is not known
	Left   int            // processes of its tree that could not be ended; 0 is the rule
}

// SpawnError is the cause inside a SpawnFailed error, for errors.As.
type SpawnError struct {
	Program string
	Errno   syscall.Errno // 0 when the reason is none
	Err     error
}

// Error returns the system's words.
func (e *SpawnError) Error() string { return e.Program + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *SpawnError) Unwrap() error { return e.Err }

// Options of a Local. A zero field means its default.
type Options struct {
	EOFGrace    time.Duration // from closing stdin to SIGTERM, default 1 s
	TermGrace   time.Duration // from SIGTERM to SIGKILL, default 5 s
	StderrLines int           // lines kept of stderr, default 200
}

// Local starts programs on this machine.
type Local struct {
	runners *proc.Runners
	environ []string
	opts    Options
}

// NewLocal returns a Local that inherits from environ, our own environment. The main
// program must call [proc.MaybeRunner] first.
func NewLocal(runners *proc.Runners, environ []string, o Options) *Local {
	if o.EOFGrace <= 0 {
		o.EOFGrace = time.Second
	}
	if o.TermGrace <= 0 {
		o.TermGrace = 5 * time.Second
	}
	if o.StderrLines <= 0 {
		o.StderrLines = 200
	}
	return &Local{runners: runners, environ: environ, opts: o}
}

// Start starts the program in a session of its own. ctx bounds only the start: the program
// lives until [Process.Close], which the caller must call. On error nothing runs.
func (l *Local) Start(ctx context.Context, s Spec) (*Process, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	env := Environment(l.environ, s.Env)
	path, err := find(s.Argv[0], env)
	if err != nil {
		return nil, failed(s.Argv[0], err)
	}
	pipes, err := newPipes()
	if err != nil {
		return nil, failed(s.Argv[0], err)
	}
	started, mark := time.Now(), newMark()
	child, err := l.runners.Start(ctx, proc.Program{Path: path, Args: s.Argv, Env: marked(env, mark), Dir: s.Dir, Session: true},
		pipes.childIn, pipes.childOut, pipes.childErr)
	pipes.closeChild()
	if err != nil {
		pipes.closeOurs()
		return nil, failed(s.Argv[0], err)
	}
	return watch(ctx, child, pipes, l.opts, started, env, mark, s.EachError), nil
}

func (s Spec) check() error {
	const op = "launch.Start"
	if s.Target != "" && s.Target != TargetLocal || s.Runtime != "" && s.Runtime != RuntimeDirect {
		return fault.New(UnsupportedTarget, op, "this version starts agents on this machine only").
			WithHint("use target local and runtime direct")
	}
	if len(s.Argv) == 0 || s.Argv[0] == "" {
		return fault.New(SpawnFailed, op, "there is no program to start")
	}
	if !filepath.IsAbs(s.Dir) {
		return fault.New(InvalidCwd, op, "the working directory must be an absolute path")
	}
	info, err := os.Stat(s.Dir)
	if err != nil || !info.IsDir() {
		return fault.New(InvalidCwd, op, "the working directory is not an existing directory").WithHint("create it, or name another one")
	}
	return nil
}

func failed(program string, cause error) error {
	e := &SpawnError{Program: program, Err: cause}
	var no syscall.Errno
	if errors.As(cause, &no) {
		e.Errno = no
	}
	return fault.Wrap(e, SpawnFailed, "launch.Start", "%s cannot be started", filepath.Base(program)).
		WithHint("check that it is installed and on the PATH")
}

// find looks a name up in the absolute directories of PATH. Relative ones would depend on
// where we happen to be.
func find(name string, env []string) (string, error) {
	if filepath.IsAbs(name) {
		return name, nil
	}
	if strings.ContainsRune(name, filepath.Separator) {
		return "", syscall.ENOENT
	}
	result := error(syscall.ENOENT)
	for _, dir := range filepath.SplitList(lookup(env, "PATH")) {
		if !filepath.IsAbs(dir) {
			continue
		}
		path := filepath.Join(dir, name)
		info, err := os.Stat(path)
		switch {
		case err != nil || info.IsDir():
		case info.Mode()&0o111 == 0:
			result = syscall.EACCES
		default:
			return path, nil
		}
	}
	return "", result
}
