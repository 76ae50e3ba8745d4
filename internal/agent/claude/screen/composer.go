package screen

import (
	"strings"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/agent/claude/known"
	"github.com/agent-knock-knock/akk/internal/tmux"
)

// box is the composer's place on a screen: the lines of its two rules and of its prompt.
type box struct {
	top, prompt, bottom int
}

// findComposer proves the composer: the prompt glyph and U+00A0 at column 0 right under a
// rule, another rule below, and the cursor inside, right of the prompt. It returns a
// reason when it cannot.
func findComposer(c tmux.Capture) (box, string) {
	y := c.Pane.CursorY
	if y < 0 || y >= len(c.Lines) {
		return box{}, "the cursor is outside the capture"
	}
	if c.Pane.CursorX < 2 {
		return box{}, "the cursor is not in a composer"
	}
	prompt := y
	for prompt >= 0 && !isPromptLine(c, prompt) {
		if isRule(c.Lines[prompt]) || !isContinuation(c.Lines[prompt]) {
			return box{}, "there is no composer prompt at the cursor"
		}
		prompt--
	}
	if prompt < 1 || !isRule(c.Lines[prompt-1]) {
		return box{}, "there is no rule above the composer"
	}
	bottom := y + 1
	for bottom < len(c.Lines) && isContinuation(c.Lines[bottom]) {
		bottom++
	}
	if bottom >= len(c.Lines) || !isRule(c.Lines[bottom]) {
		return box{}, "there is no rule below the composer"
	}
	return box{top: prompt - 1, prompt: prompt, bottom: bottom}, ""
}

// isPromptLine reports whether line i begins with the composer's prompt. Choice markers
// and the input line of the agents view are the same glyph with a plain blank. The U+00A0
// of an empty composer may have been trimmed from the plain line; the styled one has it.
func isPromptLine(c tmux.Capture, i int) bool {
	rest, ok := strings.CutPrefix(c.Lines[i], string(known.PromptGlyph))
	if !ok {
		return false
	}
	if rest == "" && i < len(c.Styled) {
		return strings.Contains(c.Styled[i], string(known.PromptGlyph)+string(known.Nbsp))
	}
	return strings.HasPrefix(rest, string(known.Nbsp))
}

// isContinuation reports whether a line may be a further line of a draft: indented by two,
// or blank.
func isContinuation(line string) bool {
	return strings.TrimSpace(line) == "" || strings.HasPrefix(line, "  ")
}

// isRule reports whether a line is a horizontal rule. A rule may carry a short label.
func isRule(line string) bool {
	if !strings.HasPrefix(line, string(known.RuleRune)) {
		return false
	}
	rules, others := 0, 0
	for _, r := range line {
		if r == known.RuleRune {
			rules++
		} else {
			others++
		}
	}
	return rules >= known.RuleMin && rules > others
}

// draft returns the text in the composer, without the prompt, the indentation and
// whatever is dim. Without styles, any text counts as a draft.
func draft(c tmux.Capture, b box) string {
	var out []string
	var dim, reverse bool
	styled := len(c.Styled) == len(c.Lines)
	if styled {
		for i := 0; i < b.prompt; i++ {
			cells(c.Styled[i], &dim, &reverse)
		}
	}
	for i := b.prompt; i < b.bottom; i++ {
		text := strings.TrimRight(c.Lines[i], " ")
		if styled {
			text = typedText(cells(c.Styled[i], &dim, &reverse))
		}
		if i == b.prompt {
			text = strings.TrimPrefix(text, string(known.PromptGlyph))
			text = strings.TrimPrefix(text, string(known.Nbsp))
		} else {
			text = strings.TrimPrefix(text, "  ")
		}
		out = append(out, text)
	}
	return strings.TrimRight(strings.Join(out, "\n"), " \n"+string(known.Nbsp))
}

// composerState classifies the proved composer.
func composerState(text string) agent.ComposerState {
	if strings.TrimSpace(text) == "" {
		return agent.ComposerEmpty
	}
	return agent.ComposerDraft
}
