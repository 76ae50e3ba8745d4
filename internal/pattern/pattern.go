// Package pattern is regular expressions that are compiled at their first use. A table of
// markers costs a start of the product nothing that way, and a worker compiles only what
// the agent that it watches needs.
//
// It is a table's form and nothing else: it knows no expression.
package pattern

import (
	"os"
	"regexp"
	"strings"
	"sync"
)

// Pattern is one expression of the syntax of package regexp. It is safe for concurrent
// use.
type Pattern struct {
	text    string
	compile func() *regexp.Regexp
}

// inTest is true in a test binary, where New compiles at once: a wrong expression then
// fails every test of its package and never waits for its first use.
var inTest = len(os.Args) > 0 && strings.HasSuffix(os.Args[0], ".test")

// New returns the pattern of text. A text that is no expression is a programming error and
// panics, at the latest at the first use.
func New(text string) *Pattern {
	p := &Pattern{text: text, compile: sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })}
	if inTest {
		p.compile()
	}
	return p
}

// String returns the text of the pattern.
func (p *Pattern) String() string { return p.text }

// MatchString is [regexp.Regexp.MatchString].
func (p *Pattern) MatchString(s string) bool { return p.compile().MatchString(s) }

// FindStringSubmatch is [regexp.Regexp.FindStringSubmatch].
func (p *Pattern) FindStringSubmatch(s string) []string { return p.compile().FindStringSubmatch(s) }

// FindSubmatch is [regexp.Regexp.FindSubmatch].
func (p *Pattern) FindSubmatch(b []byte) [][]byte { return p.compile().FindSubmatch(b) }

// FindAllString is [regexp.Regexp.FindAllString].
func (p *Pattern) FindAllString(s string, n int) []string { return p.compile().FindAllString(s, n) }

// ReplaceAllString is [regexp.Regexp.ReplaceAllString].
func (p *Pattern) ReplaceAllString(s, with string) string {
	return p.compile().ReplaceAllString(s, with)
}
