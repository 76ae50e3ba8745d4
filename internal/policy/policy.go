// Package policy decides whether an approval may be given without asking the Host: an
// administrator's rules name whole commands, word by word, and the directories in which
// they may run. What is not named exactly is asked.
//
// It owns the rules, the command parser and the path rules. It reads no file, presses
// nothing, and never widens a grant: every answer of "approve" is for one request.
package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/strictjson"
)

// MaxBytes bounds a policy file.
const MaxBytes = 1 << 20

// RunCommand is the one kind of request that is ever approved.
const RunCommand = "run_command"

// Rule allows exact commands of some agents inside some directories.
type Rule struct {
	ID         string     `json:"id"`
	Agents     []string   `json:"agents"`
	Workspaces []string   `json:"workspaces"` // absolute, or beginning with ~/
	Commands   [][]string `json:"commands"`   // each a whole command, word by word
}

// Policy is an administrator's file. The zero Policy approves nothing.
type Policy struct {
	Enabled bool   `json:"enabled"`
	Rules   []Rule `json:"rules"`

	fingerprint string
}

// ruleID keeps ids printable: they are shown in results and journals.
func ruleID(s string) bool {
	return s != "" && len(s) <= 64 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == ""
}

// Parse reads a policy. It refuses what it does not know and every rule that could never
// match: a rule that silently does nothing is a mistake. home stands for ~.
func Parse(data []byte, home string) (Policy, error) {
	const op = "policy.parse"
	var p Policy
	if err := strictjson.Decode(data, &p, strictjson.Limits{MaxBytes: MaxBytes, MaxDepth: 8}); err != nil {
		return Policy{}, fault.Wrap(err, fault.Invalid, op, "the policy is not what is expected").
			WithHint(`it is {"enabled":true,"rules":[{"id":"…","agents":["codex"],"workspaces":["/…"],"commands":[["npm","test"]]}]}`)
	}
	hash, err := strictjson.Hash(p)
	if err != nil {
		return Policy{}, fault.Wrap(err, fault.Invalid, op, "the policy cannot be named")
	}
	sum := sha256.Sum256([]byte(hash))
	p.fingerprint = hex.EncodeToString(sum[:])[:16]
	ids := map[string]bool{}
	for i := range p.Rules {
		r := &p.Rules[i]
		if !ruleID(r.ID) || ids[r.ID] {
			return Policy{}, fault.New(fault.Invalid, op, "rule %d needs an id of its own of letters, digits, '.', '_' and '-'", i+1)
		}
		ids[r.ID] = true
		if err := r.check(home); err != nil {
			return Policy{}, fault.New(fault.Invalid, op, "rule %s: %s", r.ID, err)
		}
	}
	return p, nil
}

func (r *Rule) check(home string) error {
	if len(r.Agents) == 0 || len(r.Workspaces) == 0 || len(r.Commands) == 0 {
		return fmt.Errorf("agents, workspaces and commands must not be empty")
	}
	for i, w := range r.Workspaces {
		if rest, ok := strings.CutPrefix(w, "~/"); ok && home != "" {
			w = filepath.Join(home, rest)
		}
		if !filepath.IsAbs(w) {
			return fmt.Errorf("workspace %d is not an absolute path", i+1)
		}
		r.Workspaces[i] = filepath.Clean(w)
		if r.Workspaces[i] == "/" {
			return fmt.Errorf("workspace %d is the whole machine", i+1)
		}
	}
	for i, c := range r.Commands {
		if len(c) == 0 || !programName().MatchString(c[0]) {
			return fmt.Errorf("command %d does not begin with a plain program name", i+1)
		}
	}
	return nil
}

// Fingerprint names this policy; "" for the zero one.
func (p Policy) Fingerprint() string { return p.fingerprint }

// Request is one open approval and what is proved of it.
type Request struct {
	Agent    string
	Kind     string // RunCommand
	Command  string // as the agent's own records hold it; "" when they do not tell
	Cwd      string // where it runs; "" when it is not known
	Evidence string // which records said so; "" for none
}

// Decision says whether to approve, by which rule, or why to ask.
type Decision struct {
	Approve     bool
	Reason      string // why it is asked
	RuleID      string
	Fingerprint string // of the policy
	Argv        []string
}

// Real returns the canonical path of a path whose last parts may not exist: no symbolic
// link is left in it.
type Real func(path string) (string, error)

// Decide holds a request against the policy. Whatever cannot be proved is asked.
func (p Policy) Decide(r Request, realpath Real) Decision {
	d := Decision{Fingerprint: p.fingerprint}
	ask := func(format string, args ...any) Decision {
		d.Reason = fmt.Sprintf(format, args...)
		return d
	}
	switch {
	case !p.Enabled || p.fingerprint == "":
		return ask("no policy is enabled")
	case r.Kind != RunCommand:
		return ask("it is no command")
	case r.Evidence == "" || r.Command == "":
		return ask("the agent's own records do not tell the command")
	case !filepath.IsAbs(r.Cwd):
		return ask("it is not known where the command runs")
	}
	argv, err := ParseCommand(r.Command)
	if err != nil {
		return ask("the command is not plain: %s", err)
	}
	d.Argv = argv
	cwd, err := realpath(r.Cwd)
	if err != nil {
		return ask("the directory of the command cannot be resolved")
	}
	why := "no rule names this command here"
	for _, rule := range p.Rules {
		if !slices.Contains(rule.Agents, r.Agent) || !slices.ContainsFunc(rule.Commands, func(c []string) bool { return slices.Equal(c, argv) }) {
			continue
		}
		for _, w := range rule.Workspaces {
			root, err := realpath(w)
			if err != nil || !within(root, cwd) {
				continue
			}
			if err := pathsInside(argv[1:], root, cwd, realpath); err != nil {
				why = err.Error()
				continue
			}
			d.Approve, d.RuleID = true, rule.ID
			return d
		}
	}
	return ask("%s", why)
}

// within reports whether path is root or below it. Both are canonical.
func within(root, path string) bool {
	return path == root || strings.HasPrefix(path, strings.TrimSuffix(root, "/")+"/")
}

// pathsInside refuses an argument that names something outside of root.
func pathsInside(args []string, root, cwd string, realpath Real) error {
	for _, a := range args {
		for _, part := range values(a) {
			if !pathLike(part) {
				continue
			}
			if strings.HasPrefix(part, "~") || strings.HasPrefix(part, "-") {
				return fmt.Errorf("an argument may name a path outside of the workspace")
			}
			full := part
			if !filepath.IsAbs(full) {
				full = cwd + "/" + full // not cleaned: the links before a .. count
			}
			target, err := realpath(full)
			if err != nil || !within(root, target) {
				return fmt.Errorf("an argument names a path outside of the workspace")
			}
		}
	}
	return nil
}

// values are the parts of an argument that a program may read as a path: the whole of it,
// or what follows the = of an option or a setting.
func values(arg string) []string {
	if _, v, ok := strings.Cut(arg, "="); ok {
		if strings.HasPrefix(arg, "-") {
			return []string{v}
		}
		return []string{arg, v}
	}
	return []string{arg}
}

func pathLike(s string) bool {
	return s == "." || s == ".." || strings.HasPrefix(s, "~") || strings.Contains(s, "/")
}

func letters(c rune) bool { return unicode.IsLetter(c) || unicode.IsDigit(c) }
