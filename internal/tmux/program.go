package tmux

import (
	"os/exec"

	"github.com/agent-knock-knock/akk/internal/fault"
)

// Program is the path of the tmux program that this package runs, for a caller that a
// person has asked to make a session. It is found as in [Installed].
func Program() (string, error) {
	for _, name := range binaries {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fault.Wrap(errNoBinary, fault.NotFound, "tmux.program", "tmux is not installed").
		WithHint("install it (for example: sudo apt-get install tmux, or brew install tmux)")
}
