package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/agent-knock-knock/akk/internal/version"
)

// Program is one program of a release that belongs beside this one.
type Program struct {
	Path string // absolute
	// Without says what does not work while the program is not there, for one that an
	// install may leave out; "" means that every install needs it.
	Without string
}

// programs compares the release of every sibling: one of another release is refused by who
// starts it, so it is a problem even where none at all would not be.
func (m Machine) programs(r *MachineReport, said map[string]saying) {
	const hint = "install the programs of one release into one directory (make install)"
	for _, p := range m.Programs {
		name := filepath.Base(p.Path)
		got, err := said[p.Path].release(name)
		switch {
		case errors.Is(err, fs.ErrNotExist) && p.Without != "":
			r.put(CheckPrograms, OK, "", "%s is not installed; without it: %s", name, p.Without)
		case errors.Is(err, fs.ErrNotExist):
			r.put(CheckPrograms, Failed, hint, "%s is missing", p.Path)
		case errors.Is(err, context.DeadlineExceeded):
			r.put(CheckPrograms, Unchecked, "run `"+p.Path+" --version` by hand, then doctor again; if it hangs, "+hint, "%s does not say its version%s", p.Path, why(err))
		case err != nil:
			r.put(CheckPrograms, Failed, hint, "%s does not say its version%s", p.Path, why(err))
		case got != version.Version:
			r.put(CheckPrograms, Failed, hint, "%s is of release %s, this program of %s", name, got, version.Version)
		default:
			r.put(CheckPrograms, OK, "", "%s %s", name, got)
		}
	}
}

// why is the end of a sentence that says that a program does not say its version.
func why(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return " within " + programLimit.String()
	}
	return ": " + err.Error()
}

// release is the version in "name version", which every program of ours prints.
func (s saying) release(name string) (string, error) {
	if s.err != nil {
		return "", s.err
	}
	fields := strings.Fields(s.text)
	if len(fields) != 2 || fields[0] != name {
		return "", fmt.Errorf("it printed %q", s.text)
	}
	return fields[1], nil
}

// agents are the programs that we look for on PATH.
var agents = []string{"codex", "claude"}

func (m Machine) agents(r *MachineReport, said map[string]saying) {
	found := 0
	for _, name := range agents {
		path, err := m.lookPath(name)
		if err != nil {
			continue
		}
		found++
		s := said[path]
		line, _, _ := strings.Cut(s.text, "\n")
		switch {
		case s.err != nil:
			r.put(CheckAgents, Warned, "run `"+path+" --version` by hand", "%s does not say its version%s", path, why(s.err))
		case line == "":
			r.put(CheckAgents, Warned, "run `"+path+" --version` by hand", "%s prints no version", path)
		default:
			r.put(CheckAgents, OK, "", "%s: %s", path, line)
		}
		last := &r.Checks[len(r.Checks)-1]
		last.Path, last.Version = path, line
	}
	if found == 0 {
		r.put(CheckAgents, Warned, "install codex or claude, or put it on PATH; agents that run already are found without it", "neither codex nor claude is on PATH")
	}
}
