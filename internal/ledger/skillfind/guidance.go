package skillfind

import (
	"path"
	"slices"
	"strings"

	"github.com/agent-knock-knock/akk/internal/ledger"
)

var (
	guideFormats  = []string{"agents_md", "claude_md", "gemini_md", "cursor_rule", "cursor_rules", "github_instruction", "github_instructions", "devin_rule", "devin_rules", "windsurf_rule", "windsurf_rules"}
	guideNames    = []string{"AGENTS.md", "CLAUDE.md", "CLAUDE.local.md", "GEMINI.md", "GEMINI.local.md", "copilot-instructions.md"}
	guidePrefixes = []string{".cursor/rules/", ".github/instructions/", ".devin/rules/", ".windsurf/rules/"}
	worktrees     = []string{".worktrees/", ".claude/worktrees/"}
)

// guides reports whether a source is a guidance file of the root.
func guides(s ledger.Source, r ledger.Root) bool {
	file := s.Locator
	if !s.Enabled || !inside(file) {
		return false
	}
	if of := s.Metadata["root_id"]; of != "" && r.ID != "" && of != r.ID {
		return false
	}
	file = path.Clean(file)
	for _, w := range worktrees {
		if strings.HasPrefix(file, w) {
			return false
		}
	}
	if s.Kind == "workspace_instruction" || slices.Contains(guideFormats, s.Format) || slices.Contains(guideNames, path.Base(file)) {
		return true
	}
	return slices.ContainsFunc(guidePrefixes, func(p string) bool { return strings.HasPrefix(file, p) })
}

// inside reports whether a locator is a relative path that stays below its root.
func inside(p string) bool {
	if p == "" || strings.Contains(p, ":") || path.IsAbs(p) || strings.Contains(p, `\`) {
		return false
	}
	return !slices.Contains(strings.Split(p, "/"), "..")
}

// named lists the folders of skills that a guidance text names, relative to its folder.
func named(dir, text string) []string {
	var out []string
	for _, token := range strings.FieldsFunc(text, func(c rune) bool {
		return c <= ' ' || strings.ContainsRune("()[]{}<>\"'`,;|", c)
	}) {
		token = strings.TrimPrefix(strings.TrimRight(token, ".:!?"), "./")
		if !inside(token) {
			continue
		}
		b := baseOf(token)
		if b == "" {
			continue
		}
		if b = path.Join(dir, b); inside(b) && !slices.Contains(out, b) {
			out = append(out, b)
		}
	}
	return out
}

func baseOf(token string) string {
	token = strings.TrimSuffix(token, "/")
	switch {
	case strings.HasSuffix(token, "/SKILL.md"):
		folder := path.Dir(token)
		if up := path.Dir(folder); up != "." {
			return up
		}
		return ""
	case strings.HasSuffix(token, "/skills"):
		return token
	case strings.Contains(token, "/skills/"):
		return token[:strings.Index(token, "/skills/")+len("/skills")]
	}
	return ""
}
