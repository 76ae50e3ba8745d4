// Package compat is the table of what works on which version of an agent: its form, and
// its place in a document. The figures come from a run of the real agents; this package
// runs nothing and knows no agent.
package compat

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// State is the verdict on one capability of one version.
type State string

// The states. Untried is what a run did not get to.
const (
	Yes      State = "yes"
	Degraded State = "degraded"
	No       State = "no"
	Untried  State = "untried"
)

// Cell is a verdict with its reason; only Yes has none.
type Cell struct {
	State State
	Why   string
}

// Run is one version, started in one way.
type Run struct {
	Version string
	How     string // "pane", "by hand"
	Mode    string // as the list shows it: mode, channel
	Cells   map[string]Cell
}

// Section is the table of one agent. Capabilities are its rows, in order.
type Section struct {
	Agent        string
	Date         time.Time
	Capabilities []string
	Runs         []Run
}

const intro = `# Compatibility

What works on which version of an agent. This file is written by ` + "`make compat`" + `, which installs each version from npm, drives the
real program in a real tmux through a real Bridge against a scripted model, and replaces the section of that agent.
Do not edit it by hand.

- **pane**: started by ` + "`agent-knock-knock pane`" + `, in the best mode of that version. **by hand**: started as a person does, with the
  agent's own defaults.
- **yes**: proved in this run. **degraded**: it works with less, see the note. **no**: it does not work, see the note. **–**: not tried,
  see the note.
`

// Render is the section as Markdown.
func (s Section) Render() string {
	var b strings.Builder
	fmt.Fprintf(&b, "## %s\n\nRun on %s.\n\n|  |", s.Agent, s.Date.UTC().Format("2006-01-02"))
	for _, r := range s.Runs {
		fmt.Fprintf(&b, " %s %s |", r.Version, r.How)
	}
	b.WriteString("\n| --- |" + strings.Repeat(" --- |", len(s.Runs)) + "\n| mode, channel |")
	for _, r := range s.Runs {
		fmt.Fprintf(&b, " %s |", cellText(r.Mode))
	}
	b.WriteString("\n")
	notes := map[string]int{}
	var order []string
	for _, name := range s.Capabilities {
		fmt.Fprintf(&b, "| %s |", name)
		for _, r := range s.Runs {
			c, ok := r.Cells[name]
			if !ok {
				c = Cell{Untried, "this run ended before"}
			}
			fmt.Fprintf(&b, " %s", map[State]string{Yes: "yes", Degraded: "degraded", No: "no"}[c.State])
			if c.State == Untried {
				b.WriteString("–")
			}
			if why := cellText(c.Why); why != "" {
				if notes[why] == 0 {
					order = append(order, why)
					notes[why] = len(order)
				}
				fmt.Fprintf(&b, " (%d)", notes[why])
			}
			b.WriteString(" |")
		}
		b.WriteString("\n")
	}
	if len(order) > 0 {
		b.WriteString("\n")
	}
	for i, why := range order {
		fmt.Fprintf(&b, "%d. %s\n", i+1, why)
	}
	return b.String()
}

const maxWhy = 240

// cellText makes text safe for one cell of a table.
func cellText(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > maxWhy {
		text = string(r[:maxWhy]) + "…"
	}
	return strings.NewReplacer("|", `\|`, "<", "&lt;").Replace(text)
}

// Put writes the section into the document at path, in the place of the same agent's
// former section or at the end. Nothing else of the document changes but its introduction.
func Put(path string, s Section) error {
	old, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("compat: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("compat: %w", err)
	}
	if err := os.WriteFile(path, []byte(place(string(old), s)), 0o644); err != nil {
		return fmt.Errorf("compat: %w", err)
	}
	return nil
}

func place(doc string, s Section) string {
	head := "## " + s.Agent + "\n"
	var kept []string
	done := false
	for _, part := range sections(doc) {
		if strings.HasPrefix(part, head) {
			part, done = s.Render(), true
		}
		kept = append(kept, part)
	}
	if !done {
		kept = append(kept, s.Render())
	}
	return intro + "\n" + strings.Join(kept, "\n")
}

// sections are the parts of a document that begin with a heading of the second level.
func sections(doc string) []string {
	var out []string
	for line := range strings.Lines(doc) {
		switch {
		case strings.HasPrefix(line, "## "):
			out = append(out, line)
		case len(out) > 0:
			out[len(out)-1] += line
		}
	}
	for i := range out {
		out[i] = strings.TrimRight(out[i], "\n") + "\n"
	}
	return out
}
