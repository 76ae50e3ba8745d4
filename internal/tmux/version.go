package tmux

import (
	"context"
	"errors"
	"os/exec"
	"strings"

	"github.com/agent-knock-knock/akk/internal/fault"
)

// Version asks the installed client what it is, such as "tmux 3.3a". It talks to no
// server: one that runs may be of another version.
func Version(ctx context.Context) (string, error) {
	const op = "tmux.version"
	if err := Installed(); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, readBound)
	defer cancel()
	var last error
	for _, name := range binaries {
		cmd := exec.CommandContext(ctx, name, "-V")
		cmd.Env, cmd.WaitDelay = clientEnv(), killGrace
		out, err := cmd.Output()
		if err == nil {
			return strings.TrimSpace(string(out[:min(len(out), 100)])), nil
		}
		if last = err; !mayTryAnother(err) && !errors.Is(err, exec.ErrNotFound) {
			break
		}
	}
	return "", fault.Wrap(last, fault.Unavailable, op, "tmux does not say its version").WithHint("run `tmux -V` by hand")
}
