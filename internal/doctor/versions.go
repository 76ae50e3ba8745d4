package doctor

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// programLimit bounds one question to a program for its version.
	programLimit = 2 * time.Second
	// killGrace bounds the wait for the output of a program that was killed, which what it
	// started elsewhere may hold open.
	killGrace = 100 * time.Millisecond
	// maxSaying bounds what is kept of an answer, in bytes.
	maxSaying = 200
)

// saying is what a program answered to --version, or why it did not.
type saying struct {
	text string
	err  error
}

// versions asks the programs of the release and the agents, all side by side: one that
// hangs costs its own bound and nobody else's.
func (m Machine) versions(ctx context.Context) map[string]saying {
	said := map[string]saying{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, path := range m.askable() {
		wg.Go(func() {
			s := ask(ctx, path)
			mu.Lock()
			defer mu.Unlock()
			said[path] = s
		})
	}
	wg.Wait()
	return said
}

func (m Machine) askable() (paths []string) {
	for _, p := range m.Programs {
		paths = append(paths, p.Path)
	}
	for _, name := range agents {
		if path, err := m.lookPath(name); err == nil {
			paths = append(paths, path)
		}
	}
	return paths
}

// lookPath finds a program by its name, as an absolute path.
func (m Machine) lookPath(name string) (string, error) {
	look := m.LookPath
	if look == nil {
		look = exec.LookPath
	}
	path, err := look(name)
	if err != nil {
		return "", err
	}
	return filepath.Abs(path)
}

// ask runs one program with --version, in a group of its own: a launcher's real program is
// ended with it.
func ask(ctx context.Context, path string) saying {
	if _, err := os.Stat(path); err != nil {
		return saying{err: err}
	}
	ctx, cancel := context.WithTimeout(ctx, programLimit)
	defer cancel()
	var out head
	cmd := exec.CommandContext(ctx, path, "--version")
	cmd.Stdout = &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = killGrace
	err := cmd.Run()
	switch {
	case errors.Is(err, exec.ErrWaitDelay): // it ended well; what it left behind holds the pipe
		err = nil
	case err != nil && ctx.Err() != nil: // "signal: killed" would not say by whom
		err = context.Cause(ctx)
	}
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what it left behind
	}
	return saying{strings.TrimSpace(out.kept.String()), err}
}

// head keeps the first bytes that are written to it.
type head struct{ kept bytes.Buffer }

func (h *head) Write(b []byte) (int, error) {
	h.kept.Write(b[:min(len(b), maxSaying-h.kept.Len())])
	return len(b), nil
}
