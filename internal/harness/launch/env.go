package launch

import (
	"crypto/rand"
	"maps"
	"slices"
	"strings"
)

// inherited are the variables that a program gets from us. Everything else, above all the
// keys of providers and the marks that other agents leave for their children, must be
// given for the session.
var inherited = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TMPDIR", "SSH_AUTH_SOCK",
}

// inheritedPrefixes are families of such variables.
var inheritedPrefixes = []string{"LC_", "XDG_", "DOCKER_"}

// Environment is what a child gets: the few inherited variables of ours, the settings of a
// program without a terminal, and above both the explicit ones. The result is sorted.
func Environment(ours []string, explicit map[string]string) []string {
	env := map[string]string{}
	for _, entry := range ours {
		name, value, ok := strings.Cut(entry, "=")
		if ok && mayInherit(name) {
			env[name] = value
		}
	}
	env["TERM"], env["NO_COLOR"] = "dumb", "1"
	maps.Copy(env, explicit)
	list := make([]string, 0, len(env))
	for name, value := range env {
		list = append(list, name+"="+value)
	}
	slices.Sort(list)
	return list
}

// EnvLaunch marks a program and what it starts, so that a tree is found again when the
// process that held it was killed. It names nothing and opens nothing.
const EnvLaunch = "AKK_LAUNCH"

func newMark() string { return rand.Text() }

func marked(env []string, mark string) []string { return append(env, EnvLaunch+"="+mark) }

func mayInherit(name string) bool {
	return slices.Contains(inherited, name) ||
		slices.ContainsFunc(inheritedPrefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

func lookup(env []string, name string) string {
	for _, entry := range env {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}
