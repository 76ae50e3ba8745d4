package profile

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/agent-knock-knock/akk/internal/fault"
)

const maxSession = 1024 // characters

// ResolveSession reads the trusted controller session from the variable that the Profile
// names. The Bridge calls it once, before it speaks MCP. A refusal has [CodeSession] and
// names the variable, never the value; callers must not print or store the value.
func ResolveSession(p Profile, lookup func(string) (string, bool)) (string, error) {
	name := p.ControllerContext.SessionIDVariable
	refuse := func(what string) error {
		return fault.New(CodeSession, "profile.resolve_session", "the environment variable %s %s", name, what).
			WithHint("let the Host set %s to its trusted current session id", name)
	}
	value, found := lookup(name)
	switch {
	case !found:
		return "", refuse("is not set")
	case value == "":
		return "", refuse("is empty")
	case !utf8.ValidString(value):
		return "", refuse("is not valid UTF-8")
	case strings.TrimSpace(value) != value:
		return "", refuse("has blanks at an end")
	case length(value) > maxSession:
		return "", refuse("is longer than 1024 characters")
	case strings.ContainsFunc(value, unicode.IsControl):
		return "", refuse("holds control characters")
	}
	return value, nil
}
