package launch

import (
	"context"
	"os"
	"time"

	"github.com/creack/pty"

	"github.com/agent-knock-knock/akk/internal/proc"
)

// The size of a terminal that nobody looks at: wide, so that an address is never broken.
const (
	terminalColumns = 500
	terminalRows    = 50
)

// StartTerminal starts the program in a terminal of its own, for what a person would type at:
// a login. [Process.Stdin] and [Process.Stdout] are both the other side of it; reading fails
// when the tree is gone, and there is no error output apart from it. Everything else is as in
// [Local.Start]; closing hangs the terminal up first.
func (l *Local) StartTerminal(ctx context.Context, s Spec) (*Process, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	env := Environment(l.environ, terminalEnv(s.Env))
	path, err := find(s.Argv[0], env)
	if err != nil {
		return nil, failed(s.Argv[0], err)
	}
	ours, theirs, err := pty.Open()
	if err != nil {
		return nil, failed(s.Argv[0], err)
	}
	defer theirs.Close()
	err = pty.Setsize(ours, &pty.Winsize{Cols: terminalColumns, Rows: terminalRows})
	if err == nil {
		err = quiet(theirs)
	}
	// Nothing writes to stderr's pipe: it ends at once.
	var errOut, none *os.File
	if err == nil {
		errOut, none, err = os.Pipe()
	}
	if err != nil {
		ours.Close()
		return nil, failed(s.Argv[0], err)
	}
	none.Close()
	started, mark := time.Now(), newMark()
	child, err := l.runners.Start(ctx, proc.Program{Path: path, Args: s.Argv, Env: marked(env, mark), Dir: s.Dir, Terminal: true}, theirs, theirs, theirs)
	p := &pipes{in: ours, out: ours, err: errOut}
	if err != nil {
		p.closeOurs()
		return nil, failed(s.Argv[0], err)
	}
	return watch(ctx, child, p, l.opts, started, env, mark, nil), nil
}

// terminalEnv says what kind of terminal it is, unless the caller does.
func terminalEnv(explicit map[string]string) map[string]string {
	out := map[string]string{"TERM": "xterm"}
	for name, value := range explicit {
		out[name] = value
	}
	return out
}
