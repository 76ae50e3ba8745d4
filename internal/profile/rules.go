package profile

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// The limits of the fields, in characters (Unicode code points) where they bound text.
const (
	maxName       = 64
	maxRevision   = 128
	maxVariable   = 128
	maxExecutable = 4096
	maxArguments  = 64
	maxArgument   = 4096
	maxArgvTotal  = 16384
	maxAllow      = 32
	maxMapping    = 16
	maxMappingKey = 64
	maxPointer    = 256
	maxTokens     = 16

	maxTimeoutMs   = 30_000
	maxOutputBytes = 1_048_576
)

const nameRule = "must be 1 to 64 lower-case letters and digits, in parts joined by single . _ - and starting with a letter"

// Patterns are compiled when the first Profile is read: a start that reads none, such as
// --help, pays nothing.
var (
	namePattern     = lazyPattern(`^[a-z][a-z0-9]*(?:[._-][a-z0-9]+)*$`)
	wordPattern     = lazyPattern(`^[A-Za-z0-9][A-Za-z0-9._:-]*$`)
	variablePattern = lazyPattern(`^[A-Z_][A-Z0-9_]*$`)
)

func lazyPattern(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

func length(s string) int { return utf8.RuneCountInString(s) }

func isName(s string) bool { return length(s) <= maxName && namePattern().MatchString(s) }

func isRevision(s string) bool { return length(s) <= maxRevision && wordPattern().MatchString(s) }

func isMappingKey(s string) bool { return length(s) <= maxMappingKey && wordPattern().MatchString(s) }

// at is the path of an array's item.
func at(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }

// isClean reports that s is not empty, has no blank at an end and no control character.
func isClean(s string) bool {
	return s != "" && strings.TrimSpace(s) == s && !strings.ContainsFunc(s, unicode.IsControl)
}

// unsafeVariables change what a child loads or runs before its first instruction.
var unsafeVariables = []string{"BASH_ENV", "ENV", "LD_LIBRARY_PATH", "LD_PRELOAD", "NODE_OPTIONS", "NODE_PATH", "SHELLOPTS"}

const (
	dyldPrefix  = "DYLD_"
	relayPrefix = "AKK_HOST_PROFILE_"
)

// variableRule returns the rule that an environment variable's name breaks, or "".
func variableRule(name string) string {
	switch {
	case length(name) > maxVariable || !variablePattern().MatchString(name):
		return fmt.Sprintf("must be 1 to %d upper-case letters, digits and _ and not start with a digit", maxVariable)
	case slices.Contains(unsafeVariables, name) || strings.HasPrefix(name, dyldPrefix):
		return "must not be a variable that steers a shell or the dynamic loader"
	case strings.HasPrefix(name, relayPrefix):
		return fmt.Sprintf("must not start with %s, which is reserved for the Bridge", relayPrefix)
	}
	return ""
}

// shells are the names of programs that would read a callback's argv or stdin as code.
var shells = []string{"bash", "cmd", "cmd.exe", "csh", "dash", "env", "fish", "ksh",
	"powershell", "powershell.exe", "pwsh", "sh", "tcsh", "zsh"}

func isShell(path string) bool {
	return slices.Contains(shells, strings.ToLower(filepath.Base(path)))
}

// executableRule returns the rule that a callback's path breaks by its text alone, or "".
func executableRule(path string) string {
	switch {
	case !isClean(path) || length(path) > maxExecutable:
		return fmt.Sprintf("must be 1 to %d characters without control characters and without blanks at an end", maxExecutable)
	case strings.Contains(path, "${"):
		return "must not hold a placeholder"
	case !filepath.IsAbs(path):
		return "must be an absolute path"
	case filepath.Clean(path) != path || path == "/":
		return "must be a normalised path of a program: no . or .., no double or trailing slash"
	case isShell(path):
		return "must not be a shell or env"
	}
	return ""
}

// argvPlaceholders lists what argv may hold; required says which it must.
var argvPlaceholders = []struct {
	text     string
	required bool
}{
	{PlaceholderSession, true},
	{PlaceholderDelivery, true},
	{PlaceholderMessage, true},
	{PlaceholderIdempotencyKey, false},
}

func checkArguments(args []string) error {
	const path = "$.callback.arguments"
	if len(args) < 1 || len(args) > maxArguments {
		return invalid(path, "must have 1 to %d items", maxArguments)
	}
	total := 0
	for i, arg := range args {
		if rule := argumentRule(arg); rule != "" {
			return invalid(at(path, i), "%s", rule)
		}
		total += length(arg)
	}
	if total > maxArgvTotal {
		return invalid(path, "must not be longer than %d characters together", maxArgvTotal)
	}
	for _, p := range argvPlaceholders {
		if p.required && !slices.ContainsFunc(args, func(a string) bool { return strings.Contains(a, p.text) }) {
			return invalid(path, "must hold %s", p.text)
		}
	}
	return nil
}

// argumentRule returns the rule that one argv template breaks, or "". The template alone
// is judged: what is put in later is passed as it is and never read as a template again.
func argumentRule(arg string) string {
	switch {
	case length(arg) > maxArgument:
		return fmt.Sprintf("must not be longer than %d characters", maxArgument)
	case strings.ContainsAny(arg, "\x00\r\n"):
		return "must not hold NUL or a line break"
	case strings.ContainsAny(arg, ";`<>|") || strings.Contains(arg, "&&"):
		return "must not hold shell syntax (; ` < > | &&)"
	case strings.Contains(arg, PlaceholderBody):
		return "must not hold the body; the body goes to stdin only"
	}
	rest := arg
	for _, p := range argvPlaceholders {
		// A blank in its place, so that two halves cannot join to something new.
		rest = strings.ReplaceAll(rest, p.text, " ")
	}
	if strings.Contains(rest, "$") {
		return "every $ must begin one of the allowed placeholders"
	}
	return ""
}

// pointerRule returns the rule that a JSON Pointer breaks, or "".
func pointerRule(pointer string) string {
	switch {
	case !isClean(pointer) || length(pointer) > maxPointer || pointer[0] != '/':
		return fmt.Sprintf("must be a JSON Pointer of at most %d characters that starts with /", maxPointer)
	case strings.Count(pointer, "/") > maxTokens:
		return fmt.Sprintf("must have at most %d tokens", maxTokens)
	}
	for rest := pointer; ; {
		_, after, found := strings.Cut(rest, "~")
		if !found {
			return ""
		}
		if after == "" || after[0] != '0' && after[0] != '1' {
			return "must use ~ only as ~0 or ~1"
		}
		rest = after
	}
}
