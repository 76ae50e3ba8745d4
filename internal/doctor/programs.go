package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/agent-knock-knock/akk/internal/version"
)

// programLimit bounds one question to a program for its version.
const programLimit = 2 * time.Second

// Program is one program of a release that belongs beside this one.
type Program struct {
	Path string // absolute
	// Without says what does not work while the program is not there, for one that an
	// install may leave out; "" means that every install needs it.
	Without string
}

// programs asks every sibling for its release: one of another release is refused by who
// starts it, so it is a problem even where none at all would not be.
func (m Machine) programs(ctx context.Context, r *MachineReport) {
	const hint = "install the programs of one release into one directory (make install)"
	for _, p := range m.Programs {
		name := filepath.Base(p.Path)
		got, err := programVersion(ctx, p.Path)
		switch {
		case errors.Is(err, fs.ErrNotExist) && p.Without != "":
			r.put(CheckPrograms, OK, "", "%s is not installed; without it: %s", name, p.Without)
		case errors.Is(err, fs.ErrNotExist):
			r.put(CheckPrograms, Failed, hint, "%s is missing", p.Path)
		case err != nil:
			r.put(CheckPrograms, Failed, hint, "%s does not say its version: %v", p.Path, err)
		case got != version.Version:
			r.put(CheckPrograms, Failed, hint, "%s is of release %s, this program of %s", name, got, version.Version)
		default:
			r.put(CheckPrograms, OK, "", "%s %s", name, got)
		}
	}
}

// programVersion asks a program for its release.
func programVersion(ctx context.Context, path string) (string, error) {
	if _, err := os.Stat(path); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, programLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "--version")
	cmd.WaitDelay = programLimit
	out, err := cmd.Output()
	if err != nil {
		return "", err
	}
	fields := strings.Fields(string(out[:min(len(out), 200)]))
	if len(fields) != 2 || fields[0] != filepath.Base(path) {
		return "", fmt.Errorf("it printed %q", strings.TrimSpace(string(out[:min(len(out), 200)])))
	}
	return fields[1], nil
}
