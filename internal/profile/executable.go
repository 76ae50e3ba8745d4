package profile

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/agent-knock-knock/akk/internal/fault"
)

const (
	shebangBytes = 256 // of the program are read to find its interpreter
	maxLinks     = 40  // symbolic links of a path, as in the kernel
)

// CheckExecutable returns [CodeExecutable] unless the callback program can be started now:
// the path and what its symbolic links lead to are no shell, the target is a regular file
// that this user may execute, and a script that finds its interpreter through env has
// PATH in the allowlist. It starts nothing, and promises nothing about a later moment.
func CheckExecutable(p Profile) error {
	path := p.Callback.Executable
	if rule := executableRule(path); rule != "" {
		return invalid("$.callback.executable", "%s", rule)
	}
	target, err := filepath.EvalSymlinks(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return notReady(err, "does not exist", "install the Host's callback program there, or correct callback.executable")
	case err != nil:
		return notReady(err, "cannot be reached", "let this user reach the path, or correct callback.executable")
	case isShell(target) || linksToShell(path):
		return notReady(nil, "leads to a shell or env through a symbolic link", "name a program that is not a shell")
	}
	info, err := os.Stat(target)
	switch {
	case err != nil:
		return notReady(err, "cannot be examined", "let this user reach the path")
	case !info.Mode().IsRegular():
		return notReady(nil, "is not a regular file", "name the program itself")
	}
	if err := unix.Access(target, unix.X_OK); err != nil {
		return notReady(err, "is not executable by this user", "make it executable (chmod +x)")
	}
	viaEnv, err := startsWithEnv(target)
	if err != nil {
		return err
	}
	if viaEnv && !slices.Contains(p.Callback.Environment.Allow, "PATH") {
		return notReady(nil, "finds its interpreter through env, and PATH is not in callback.environment.allow",
			"add PATH to the allowlist, or use a native program or an absolute interpreter")
	}
	return nil
}

// linksToShell reports whether a link on the way is named like a shell: /bin/sh may itself
// be a link to a program of many names.
func linksToShell(path string) bool {
	for range maxLinks {
		next, err := os.Readlink(path)
		if err != nil {
			return false // not a link: the end of the way
		}
		if !filepath.IsAbs(next) {
			next = filepath.Join(filepath.Dir(path), next)
		}
		if isShell(next) {
			return true
		}
		path = next
	}
	return true // EvalSymlinks refuses so many; if it did not, refuse here
}

func notReady(err error, what, hint string) error {
	f := fault.New(CodeExecutable, "profile.check_executable", "the callback program %s", what)
	f.Err = err
	return f.WithHint("%s", hint)
}

// startsWithEnv reports whether the file is a script whose interpreter line names env.
func startsWithEnv(path string) (bool, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrPermission) {
		return false, nil // executable but not readable: only a native program runs so
	}
	if err != nil {
		return false, notReady(err, "cannot be opened", "let this user read the file")
	}
	defer f.Close()
	head, err := io.ReadAll(io.LimitReader(f, shebangBytes))
	if err != nil {
		return false, notReady(err, "cannot be read", "let this user read the file")
	}
	return shebangIsEnv(head), nil
}

// shebangIsEnv reads the first line as a kernel does: blanks may follow the #!.
func shebangIsEnv(head []byte) bool {
	line, found := bytes.CutPrefix(head, []byte("#!"))
	if !found {
		return false
	}
	line, _, _ = bytes.Cut(line, []byte("\n"))
	words := bytes.Fields(line)
	return len(words) > 0 && (string(words[0]) == "/usr/bin/env" || string(words[0]) == "/bin/env")
}
