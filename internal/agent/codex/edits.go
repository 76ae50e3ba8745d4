package codex

import (
	"fmt"
	"strings"

	"github.com/agent-knock-knock/akk/internal/agent/codex/screen"
	"github.com/agent-knock-knock/akk/internal/redact"
	"github.com/agent-knock-knock/akk/internal/turn"
)

// maxEdits bounds how many items of edits are remembered: the newest ones.
const maxEdits = 8

// fileChange is one file of an item of edits, as the server tells it.
type fileChange struct {
	Path string `json:"path"`
	Diff string `json:"diff"`
	Kind struct {
		Type string `json:"type"`
		To   string `json:"move_path"`
	} `json:"kind"`
}

// edits remembers the edits that items of the thread announced. A request to approve them
// names the item and says nothing of what is changed.
type edits []serverItem

// note remembers an item.
func (e *edits) note(it serverItem) {
	if *e = append(*e, it); len(*e) > maxEdits {
		*e = (*e)[len(*e)-maxEdits:]
	}
}

// describe adds to a prompt what its item changes, and is false when the item is not known.
// What cannot be shown whole, nobody may approve unseen.
func (e edits) describe(item string, p *turn.Prompt) bool {
	at := -1
	for i := range e {
		if e[i].ID == item && item != "" {
			at = i
		}
	}
	if at < 0 || len(e[at].Changes) == 0 {
		p.Approvable, p.Reason = false, "the agent's server did not say which files it would change"
		return false
	}
	var files []string
	var diff strings.Builder
	for _, c := range e[at].Changes {
		name := c.Path
		if c.Kind.To != "" {
			name += " to " + c.Kind.To
		}
		files = append(files, strings.TrimSpace(c.Kind.Type+" "+name))
		fmt.Fprintf(&diff, "%s\n%s\n", files[len(files)-1], strings.TrimRight(c.Diff, "\n"))
	}
	text := joinNonEmpty(p.Detail, shownLines(diff.String()))
	if len(text) > screen.MaxExcerpt {
		text = redact.Line(strings.Join(files, ", "), screen.MaxExcerpt)
		p.Approvable, p.Reason = false, screen.TooLong
	}
	p.Detail, p.Excerpt = text, text
	return true
}

// shownLines is a text of several lines without what could steer a terminal.
func shownLines(text string) string {
	var out []string
	for line := range strings.Lines(redact.String(text)) {
		out = append(out, redact.Line(line, screen.MaxExcerpt+1))
	}
	return strings.Join(out, "\n")
}
