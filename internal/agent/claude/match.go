package claude

import (
	"path"
	"strings"

	"github.com/agent-knock-knock/akk/internal/agent/claude/known"
	"github.com/agent-knock-knock/akk/internal/procinfo"
)

// Match reports whether p is an interactive Claude Code process: the program itself, not
// a wrapper, and not one of its batch subcommands or print mode.
func (*Adapter) Match(p procinfo.Process) bool {
	args, ok := programArgs(p)
	return ok && interactive(args)
}

// programArgs returns the arguments after the program (and its script), and whether the
// program is Claude Code at all.
func programArgs(p procinfo.Process) ([]string, bool) {
	if len(p.Args) == 0 {
		return nil, false
	}
	argv0 := path.Base(p.Args[0])
	switch {
	case isProgramName(argv0), known.NativeInstall.MatchString(p.Exe), known.NativeInstall.MatchString(p.Args[0]):
		if p.Exe != "" && isInterpreter(p.Exe) && !isProgramName(argv0) {
			return nil, false
		}
		return p.Args[1:], true
	case known.ScriptRunners[argv0]:
		for i, a := range p.Args[1:] {
			if strings.HasPrefix(a, "-") {
				continue
			}
			if known.ScriptInstall.MatchString(a) || path.Base(a) == known.ProgramName {
				return p.Args[i+2:], true
			}
			return nil, false
		}
	}
	return nil, false
}

func isProgramName(base string) bool {
	return base == known.ProgramName || base == known.ProgramNameExe
}

func isInterpreter(exe string) bool {
	switch path.Base(exe) {
	case "sh", "bash", "dash", "zsh", "fish":
		return true
	}
	return false
}

// interactive reports whether args open the terminal program. The first argument that is
// neither a flag nor a flag's value is a subcommand or the first prompt.
func interactive(args []string) bool {
	first := true
	for i := 0; i < len(args); i++ {
		a := args[i]
		if a == "--" {
			return true // the rest is a prompt
		}
		if strings.HasPrefix(a, "-") {
			name, _, joined := strings.Cut(a, "=")
			if known.BatchFlags[name] {
				return false
			}
			if !joined && known.ValueFlags[name] {
				i++
			}
			continue
		}
		if first && known.BatchCommands[a] {
			return false
		}
		first = false
	}
	return true
}
