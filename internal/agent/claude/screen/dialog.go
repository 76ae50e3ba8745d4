package screen

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/agent/claude/known"
	"github.com/agent-knock-knock/akk/internal/redact"
	"github.com/agent-knock-knock/akk/internal/tmux"
	"github.com/agent-knock-knock/akk/internal/turn"
)

// choice is one numbered option as shown.
type choice struct {
	line     int // in the capture
	number   int
	label    string
	selected bool
}

// readDialog classifies a screen without a proved composer. A numbered choice with a
// marker, or a dialog's footer, at the end of the screen is a dialog; a known permission
// question above exactly such choices is an approval; anything else is unknown.
func readDialog(c tmux.Capture, noComposer string) agent.Screen {
	s := agent.Screen{State: agent.ScreenUnknown, Composer: agent.ComposerUnknown, Reason: noComposer}
	choices := lastChoices(c)
	footer := dialogFooter(c.Lines)
	if len(choices) == 0 && footer == "" {
		return s
	}
	s.State, s.Composer = agent.ScreenDialog, agent.ComposerAbsent
	s.Reason = "a dialog has the focus"
	if footer != "" {
		s.Reason = "a dialog has the focus: " + footer
	}
	if len(choices) == 0 {
		s.Prompt = cutQuestion(c)
		return s
	}
	p, g := describe(c, choices)
	s.Prompt = &p
	if s.OwnWords() {
		s.Composer, s.Draft = g.ownWords()
	}
	if p.Kind == turn.PromptApproval {
		s.State = agent.ScreenApproval
	}
	return s
}

// dialogFooter returns the dialog footer at the end of the screen, or "".
func dialogFooter(lines []string) string {
	for _, l := range lastLines(lines, known.DialogTail) {
		for _, m := range known.DialogFooters {
			if strings.Contains(l, m) {
				return m
			}
		}
	}
	return ""
}

// lastChoices returns the last block of options, numbered from 1 in order, with exactly
// one marker and the cursor in its rows: only an open dialog has the cursor there, and not a
// list in a prompt or an answer that looks the same. Lines between two options (wrapped
// labels, descriptions) are allowed; a block that is not well formed is no block.
func lastChoices(c tmux.Capture) []choice {
	var block []choice
	for i, l := range c.Lines {
		m := known.OptionLine.FindStringSubmatch(l)
		if m == nil {
			continue
		}
		ch := choice{line: i, label: strings.TrimRight(m[3], " "), selected: m[1] != ""}
		fmt.Sscanf(m[2], "%d", &ch.number)
		switch {
		case ch.number == 1:
			block = []choice{ch}
		case len(block) > 0 && ch.number == block[len(block)-1].number+1:
			block = append(block, ch)
		}
	}
	marked := 0
	for _, ch := range block {
		if ch.selected && cursorIn(c, ch) {
			marked++
		} else if ch.selected {
			return nil
		}
	}
	if marked != 1 || len(block) < 2 {
		return nil
	}
	return block
}

// cursorIn reports whether the cursor stands in the rows of a choice: in a long text that
// is written there it is on the last of them.
func cursorIn(c tmux.Capture, ch choice) bool {
	y := ch.line
	for y < c.Pane.CursorY && y+1 < len(c.Lines) {
		l := c.Lines[y+1]
		if strings.TrimSpace(l) == "" || isRule(l) || known.OptionLine.MatchString(l) {
			return false
		}
		y++
	}
	return y == c.Pane.CursorY
}

// wrappedLabel joins a label with its continuation lines: those directly below it that
// are indented deeper than the option itself. In a questionnaire such lines are a
// description, so it is for approvals only.
func wrappedLabel(lines []string, block []choice, i int) string {
	label := block[i].label
	indent := len(lines[block[i].line]) - len(strings.TrimLeft(lines[block[i].line], " ❯"))
	for j := block[i].line + 1; j < len(lines); j++ {
		if i+1 < len(block) && j >= block[i+1].line {
			break
		}
		l := lines[j]
		if strings.TrimSpace(l) == "" || isRule(l) || len(l)-len(strings.TrimLeft(l, " ")) < max(3, indent) {
			break
		}
		label += " " + strings.TrimSpace(l)
	}
	return label
}

// describe reads the prompt region: from the dialog's top rule to the end of the screen.
func describe(c tmux.Capture, choices []choice) (turn.Prompt, page) {
	top, whole := regionTop(c.Lines, choices[0].line)
	region := trimBlank(c.Lines[top:])
	questionnaire := choices[len(choices)-1].label == known.ChatChoice // whatever the agent asks in it
	if isQuestion(region) {
		top = planTop(c.Lines, top)
		region = trimBlank(c.Lines[top:])
	}
	p := turn.Prompt{
		Kind:        turn.PromptDialog,
		Fingerprint: fingerprint(c.Pane, region),
		Excerpt:     excerpt(region),
	}
	question, at := approvalQuestion(c.Lines, top, choices[0].line)
	switch {
	case question != "" && !questionnaire:
		p.Kind, p.Title = turn.PromptApproval, redact.String(question)
		var all bool
		p.Detail, all = detail(c.Lines[top:at])
		for i := range choices {
			choices[i].label = wrappedLabel(c.Lines, choices, i)
		}
		p.Options = approvalOptions(choices)
		p.Reason = notApprovable(choices, whole)
		if c.Pane.Width > 0 && c.Pane.Width < known.NarrowBelow {
			p.Reason = fmt.Sprintf("the terminal is narrower than %d columns", known.NarrowBelow)
		}
		if !all {
			p.Reason = "the request is longer than what can be shown; a person must read all of it in the terminal"
		}
		p.Approvable = p.Reason == ""
		return p, page{}
	case isQuestion(region):
		p.Kind = turn.PromptQuestion
		g := describeQuestion(c, top, whole, choices, &p)
		return p, g
	}
	p.Reason = "only a person may answer this dialog"
	p.Title = redact.String(titleLine(c.Lines, top, choices[0].line))
	for _, ch := range choices {
		p.Options = append(p.Options, turn.PromptOption{Label: redact.String(ch.label)})
	}
	return p, page{}
}

// planTop returns the first row of a dialog that shows a plan above a rule of its own, or
// top.
func planTop(lines []string, top int) int {
	for i := top - 1; i >= 0; i-- {
		if isRule(lines[i]) {
			if i+1 < top && strings.TrimSpace(lines[i+1]) == known.PlanTitle {
				return i
			}
			return top
		}
	}
	return top
}

// regionTop returns the line of the rule that opens the dialog, and whether it is on the
// screen. A questionnaire has a second rule below its first options.
func regionTop(lines []string, firstOption int) (top int, whole bool) {
	for i := firstOption - 1; i >= 0; i-- {
		if isRule(lines[i]) {
			return i, true
		}
	}
	return 0, false
}

// approvalQuestion finds the one permission question between the rule and the options. It
// must end with a question mark and be followed only by blank lines, so that a question
// inside a diff or a command does not count.
func approvalQuestion(lines []string, top, firstOption int) (string, int) {
	end := firstOption - 1
	for end > top && strings.TrimSpace(lines[end]) == "" {
		end--
	}
	text := ""
	for i := end; i > top && i > end-4; i-- { // a narrow pane wraps the question
		l := strings.TrimSpace(lines[i])
		if l == "" {
			break
		}
		text = strings.TrimSpace(l + " " + text)
		for _, q := range known.ApprovalQuestions {
			if strings.HasPrefix(l, q) && strings.HasSuffix(text, "?") {
				return text, i
			}
		}
	}
	return "", 0
}

// approvalOptions names the options. A digit acts at once, whatever is marked. Only the
// exact label "Yes" grants one request; every longer Yes grants more, or asks for text.
func approvalOptions(choices []choice) []turn.PromptOption {
	var out []turn.PromptOption
	for _, ch := range choices {
		out = append(out, turn.PromptOption{
			Label:   redact.String(ch.label),
			Key:     fmt.Sprint(ch.number),
			OneTime: ch.label == known.LabelYes,
			Reject:  strings.HasPrefix(ch.label, known.LabelNoPrefix),
		})
	}
	return out
}

// notApprovable says why the one-time yes may not be pressed, or "".
func notApprovable(choices []choice, whole bool) string {
	if !whole {
		return "the beginning of the prompt is not on the screen"
	}
	if choices[0].label != known.LabelYes {
		return "the first choice is not the one-time yes"
	}
	for _, ch := range choices[1:] {
		if ch.label == known.LabelYes {
			return "there is more than one yes"
		}
	}
	if !strings.HasPrefix(choices[len(choices)-1].label, known.LabelNoPrefix) {
		return "the last choice is not a refusal"
	}
	if !choices[0].selected {
		return "a person has moved the marker to another choice"
	}
	return ""
}

func isQuestion(region []string) bool {
	for _, l := range region {
		for _, m := range known.QuestionMarks {
			if strings.Contains(l, m) {
				return true
			}
		}
	}
	return false
}

// titleLine returns the last line above the options that ends with a question mark, or
// the first line of the region.
func titleLine(lines []string, top, firstOption int) string {
	first := ""
	for i := firstOption - 1; i > top; i-- {
		l := strings.TrimSpace(lines[i])
		if strings.HasSuffix(l, "?") {
			return l
		}
		if l != "" {
			first = l
		}
	}
	return first
}

// detail joins the lines between the rule and the question, without decoration.
func detail(lines []string) (text string, all bool) {
	var out []string
	for _, l := range lines {
		l = strings.TrimSpace(l)
		if l == "" || strings.Trim(l, "─╌") == "" {
			continue
		}
		out = append(out, l)
	}
	text = redact.String(strings.Join(out, "\n"))
	return cutBytes(text, known.ExcerptMax), len(text) <= known.ExcerptMax
}

// fingerprint is over the agent, the endpoint and the prompt region alone: output that
// scrolls above an open prompt does not change it, any byte of the prompt does (T20).
func fingerprint(p tmux.Pane, region []string) string {
	h := sha256.New()
	for _, s := range append([]string{"akk-prompt/1", known.Kind, p.Socket, p.ID, fmt.Sprint(p.PID)}, region...) {
		fmt.Fprintf(h, "%d:%s", len(s), s)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func excerpt(region []string) string {
	return cutBytes(redact.String(strings.Join(region, "\n")), known.ExcerptMax)
}

func trimBlank(lines []string) []string {
	out := make([]string, 0, len(lines))
	for _, l := range lines {
		out = append(out, strings.TrimRight(l, " "))
	}
	for len(out) > 0 && out[len(out)-1] == "" {
		out = out[:len(out)-1]
	}
	return out
}

// cutBytes cuts s to at most n bytes at a rune boundary.
func cutBytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
