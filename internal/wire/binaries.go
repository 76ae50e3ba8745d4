package wire

import (
	"os"
	"path/filepath"

	"github.com/agent-knock-knock/akk/internal/fault"
)

// Binaries names the worker programs by absolute path. An empty name means: the program
// of the usual name next to our own executable, symlinks resolved.
type Binaries struct {
	Monitor  string
	Callback string
}

// Path returns the program of one kind, checked to be an executable regular file.
func (b Binaries) path(k kind) (string, error) {
	const op = "wire.binaries"
	path := b.Monitor
	if k == kindCallback {
		path = b.Callback
	}
	if path == "" {
		var err error
		if path, err = Sibling(string(k)); err != nil {
			return "", err
		}
	}
	hint := "put " + string(k) + " of the same release next to agent-knock-knock"
	if !filepath.IsAbs(path) {
		return "", fault.New(CodeBinary, op, "%s is not an absolute path", path).WithHint("%s", hint)
	}
	fi, err := os.Stat(path)
	switch {
	case err != nil:
		return "", fault.Wrap(err, CodeBinary, op, "%s is not there", path).WithHint("%s", hint)
	case !fi.Mode().IsRegular() || fi.Mode().Perm()&0o111 == 0:
		return "", fault.New(CodeBinary, op, "%s is not an executable file", path).WithHint("%s", hint)
	}
	return path, nil
}

// Sibling is the path of the program of that name next to our own executable, symlinks
// resolved. It does not look whether it is there.
func Sibling(name string) (string, error) {
	self, err := os.Executable()
	if err == nil {
		self, err = filepath.EvalSymlinks(self)
	}
	if err != nil {
		return "", fault.Wrap(err, CodeBinary, "wire.sibling", "cannot find the directory of this program, so not %s either", name).
			WithHint("start it by its full path")
	}
	return filepath.Join(filepath.Dir(self), name), nil
}

// Check reports the first worker program that cannot be used; nil means that both are
// there. It starts nothing, so it cannot see a wrong version.
func (b Binaries) Check() error {
	for _, k := range []kind{kindMonitor, kindCallback} {
		if _, err := b.path(k); err != nil {
			return err
		}
	}
	return nil
}

// inherited are the variables that every worker gets when they are present: they say
// where programs and files are, never who we are. Anything else of our environment,
// tokens above all, stays here.
var inherited = []string{"PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR"}

// inheritedByMonitor are the variables by which tmux and the agents are found.
var inheritedByMonitor = []string{"TMUX_TMPDIR", "CODEX_HOME", "CLAUDE_CONFIG_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"}

func environment(k kind, extra []string) []string {
	names := inherited
	if k == kindMonitor {
		names = append(names[:len(names):len(names)], inheritedByMonitor...)
	}
	env := make([]string, 0, len(names)+len(extra))
	for _, n := range names {
		if v, ok := os.LookupEnv(n); ok {
			env = append(env, n+"="+v)
		}
	}
	if k == kindMonitor {
		// The Go runtime keeps memory for every CPU from the start on; a monitor needs one.
		env = append(env, "GOMAXPROCS=1")
	}
	return append(env, extra...)
}
