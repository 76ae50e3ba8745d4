package pane

import (
	"bytes"
	"context"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/pattern"
)

const (
	maxAnswer = 256 << 10 // bytes of a program's answer
	killGrace = time.Second
)

var versionNumber = pattern.New(`(\d+\.\d+\.\d+[-.\w]*)`)

// program is the agent's executable, for questions that it answers and ends.
type program struct {
	path, dir string
	env       []string
}

// ask runs the program with one argument and returns its whole stdout.
func (p program) ask(ctx context.Context, arg string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.path, arg)
	cmd.Env, cmd.Dir = p.env, p.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = killGrace
	out := &head{max: maxAnswer}
	cmd.Stdout = out
	if err := cmd.Run(); err != nil {
		return "", fault.Wrap(err, fault.Unavailable, "pane.ask", "%s %s fails", p.path, arg).WithHint("run it by hand and mend the installation")
	}
	return out.buf.String(), nil
}

func (p program) version(ctx context.Context) (string, error) {
	out, err := p.ask(ctx, "--version")
	if m := versionNumber.FindStringSubmatch(out); m != nil {
		return m[1], err
	}
	return "", err // a version that nobody can read changes nothing
}

// head keeps the first max bytes of what is written.
type head struct {
	buf bytes.Buffer
	max int
}

func (h *head) Write(b []byte) (int, error) {
	h.buf.Write(b[:min(len(b), max(0, h.max-h.buf.Len()))])
	return len(b), nil
}

// tail keeps the last max bytes of what is written.
type tail struct {
	buf []byte
	max int
}

func (t *tail) Write(b []byte) (int, error) {
	t.buf = append(t.buf, b...)
	if over := len(t.buf) - t.max; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	return len(b), nil
}

// shell is an argv as a line for a POSIX shell.
func shell(argv ...string) string {
	words := make([]string, len(argv))
	for i, w := range argv {
		words[i] = quote(w)
	}
	return strings.Join(words, " ")
}

var plainWord = pattern.New(`^[A-Za-z0-9_@%+=:,./-]+$`)

func quote(w string) string {
	if plainWord.MatchString(w) && !strings.HasPrefix(w, "=") {
		return w
	}
	return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
}
