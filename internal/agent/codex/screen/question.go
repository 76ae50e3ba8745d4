package screen

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/agent/codex/known"
	"github.com/agent-knock-knock/akk/internal/agent/codex/rollout"
	"github.com/agent-knock-knock/akk/internal/tmux"
	"github.com/agent-knock-knock/akk/internal/turn"
)

// notesScreen recognises the line for own words in a questionnaire. It has the cursor and
// looks like a composer, but what is entered there is an answer.
func notesScreen(c tmux.Capture, rows []string) (agent.Screen, bool) {
	p := questionnaire(c, dialogBody(rows))
	if p == nil {
		return agent.Screen{}, false
	}
	s := agent.Screen{State: agent.ScreenDialog, Composer: agent.ComposerUnknown, Prompt: p, Reason: p.Reason}
	if p.Step != nil && p.Step.Kind == turn.StepFreeText {
		s.Composer, s.Draft = notesDraft(c, rows)
	}
	return s, true
}

// notesDraft reads the line at the cursor. A line above it belongs to it when it begins
// further left than the text.
func notesDraft(c tmux.Capture, rows []string) (agent.ComposerState, string) {
	y := c.Pane.CursorY
	if y < 0 || y >= len(rows) {
		return agent.ComposerUnknown, ""
	}
	first := y
	for first >= 0 && !known.NotesLine.MatchString(rows[first]) {
		if strings.TrimSpace(rows[first]) == "" {
			return agent.ComposerUnknown, ""
		}
		first--
	}
	if first < 0 {
		return agent.ComposerUnknown, ""
	}
	text := known.NotesLine.FindStringSubmatch(rows[first])[1]
	if c.Pane.CursorX == known.NotesCol && first == y && (text == "" || text == known.NotesPlaceholder) {
		return agent.ComposerEmpty, ""
	}
	for i := first + 1; i < len(rows) && strings.TrimSpace(rows[i]) != ""; i++ {
		text += "\n" + strings.TrimSpace(rows[i])
	}
	return agent.ComposerDraft, text
}

// questionnaire reads one step of a questionnaire out of the rows below the conversation;
// nil when there is none. The prompt is the head, the question and the choices: where the
// marker stands and what is in the notes does not count. Manual says why no key may answer.
func questionnaire(c tmux.Capture, body []string) *turn.Prompt {
	head, heads := -1, 0
	for i, row := range body {
		if known.QuestionHead.MatchString(row) {
			head, heads = i, heads+1
		}
	}
	if head < 0 {
		return nil
	}
	region := trimBlank(body[head:])
	list := readChoices(region)
	if len(list.items) == 0 {
		return nil
	}
	shown := region[:list.end]
	p := newPrompt(c, turn.PromptQuestion, shown, nil, false)
	p.Reason = "questionnaire"
	p.Title, p.Detail = joined(region[1:list.start]), rollout.OneLine(region[0])
	p.Title = rollout.OneLine(p.Title)
	step := stepOf(region[0], p.Title, list.items)
	p.Step = &step
	footer := joined(region[list.end:])
	notes := known.NotesFooter.MatchString(lastRow(region))
	p.Manual = manual(c, heads, list, footer, notes, p.Title)
	for i, it := range list.items {
		o := turn.PromptOption{ID: fmt.Sprintf("o%d", i+1), Label: rollout.OneLine(it.label), Description: rollout.OneLine(it.description)}
		o.FreeText = i == len(list.items)-1 && it.label == known.NoneLabel
		switch {
		case p.Manual != "":
		case o.FreeText:
			for range i - list.marker {
				o.Keys = append(o.Keys, known.KeyDown)
			}
			o.Keys = append(o.Keys, known.KeyTab)
		default:
			o.Key = fmt.Sprint(i + 1)
		}
		p.Options = append(p.Options, o)
	}
	if notes && list.marker >= 0 && p.Options[list.marker].FreeText {
		p.Step.Kind = turn.StepFreeText
	}
	return p
}

// manual says why only a person can answer a step, "" when a key can.
func manual(c tmux.Capture, heads int, list choices, footer string, notes bool, question string) string {
	switch {
	case heads != 1:
		return "several questions are on the screen"
	case c.Pane.Width > 0 && c.Pane.Width < known.NarrowBelow:
		return fmt.Sprintf("the terminal is narrower than %d columns", known.NarrowBelow)
	case known.QuestionScrolled.MatchString(footer):
		return "not all choices are on the screen"
	case list.odd != "":
		return list.odd
	case known.SecretWords.MatchString(question):
		return "it seems to ask for a secret"
	case notes:
		return "the line for own words is open: somebody is writing an answer"
	case !known.QuestionFooter.MatchString(footer):
		return "unknown text follows the choices"
	}
	return ""
}

func lastRow(rows []string) string { return rows[len(rows)-1] }

// stepOf names a step. Its id stands for what is asked, not for where it is shown.
func stepOf(head, text string, items []choice) turn.QuestionStep {
	st := turn.QuestionStep{Kind: turn.StepSingle, Text: text}
	if m := known.QuestionHead.FindStringSubmatch(head); m != nil {
		fmt.Sscan(m[1], &st.Index)
		fmt.Sscan(m[2], &st.Total)
	}
	st.ID = stepID(st.Index, text, items)
	return st
}

func stepID(index int, text string, items []choice) string {
	h := sha256.New()
	fmt.Fprintln(h, text)
	for _, it := range items {
		fmt.Fprintln(h, it.label)
	}
	return fmt.Sprintf("q%d-%s", index, hex.EncodeToString(h.Sum(nil))[:12])
}

// choice is one numbered choice of a questionnaire or form.
type choice struct{ label, description string }

// choices is the last block of numbered choices of a region.
type choices struct {
	items      []choice
	marker     int // which one is marked
	start, end int // rows of the region; end is the first row after the block
	odd        string
}

// readChoices reads the first block of choices that is numbered from 1. Labels and
// descriptions are two columns; a row that continues a description begins in its column.
func readChoices(region []string) choices {
	list := choices{marker: -1}
	column := 0
	for i, row := range region {
		m := known.OptionLine.FindStringSubmatch(row)
		if len(list.items) == 0 {
			if m == nil || m[2] != "1" || i == 0 || region[i-1] != "" {
				continue
			}
			list.start = i
		}
		if row == "" || known.FooterBegin.MatchString(row) {
			break
		}
		list.end = i + 1
		switch {
		case m != nil && m[2] == fmt.Sprint(len(list.items)+1):
			it := choice{label: strings.TrimSpace(m[3])}
			if at := strings.Index(it.label, "  "); at >= 0 {
				it.description = strings.TrimSpace(it.label[at:])
				it.label = it.label[:at]
				column = strings.Index(row, it.description)
				column = len([]rune(row[:column]))
			}
			if strings.Contains(row[:len(row)-len(m[3])], string(known.ComposerGlyph)) {
				if list.marker >= 0 {
					list.odd = "several choices are marked"
				}
				list.marker = len(list.items)
			}
			list.items = append(list.items, it)
		case column > 0 && strings.HasPrefix(row, strings.Repeat(" ", column)):
			it := &list.items[len(list.items)-1]
			it.description = strings.TrimSpace(it.description + " " + strings.TrimSpace(row))
		default:
			list.odd = "the choices are not laid out as known"
		}
	}
	if list.marker < 0 && list.odd == "" {
		list.odd = "no choice is marked"
	}
	return list
}

// mcpApproval reads the question whether one MCP tool may be called; nil for another form.
func mcpApproval(c tmux.Capture, body []string) *turn.Prompt {
	head := -1
	for i, row := range body {
		if known.FormHead.MatchString(row) {
			head = i
		}
	}
	if head < 0 {
		return nil
	}
	region := trimBlank(body[head:])
	at := -1
	for i, row := range region {
		if known.MCPQuestion.MatchString(row) {
			at = i
			break
		}
	}
	list := readChoices(region)
	if at < 0 || len(list.items) == 0 || list.start <= at {
		return nil
	}
	p := newPrompt(c, turn.PromptApproval, region, nil, false)
	p.Title = rollout.OneLine(region[at])
	var whole bool
	p.Detail, whole = detailOf(region[at+1:])
	if p.Reason = mcpRefused(c, region, list); !whole {
		p.Reason = TooLong
	}
	p.Approvable = p.Reason == ""
	for i, it := range list.items {
		o := turn.PromptOption{Label: rollout.OneLine(it.label), Description: rollout.OneLine(it.description),
			OneTime: it.label == known.MCPOnce, Reject: it.label == known.MCPCancel}
		if p.Approvable {
			o.Key = fmt.Sprint(i + 1)
		}
		p.Options = append(p.Options, o)
	}
	return p
}

// mcpRefused says why that question may not be answered by key, "" when it may.
func mcpRefused(c tmux.Capture, region []string, list choices) string {
	if why := unreadable(c, region); why != "" {
		return why
	}
	once, last := 0, list.items[len(list.items)-1]
	for _, it := range list.items {
		if it.label == known.MCPOnce {
			once++
		}
	}
	m := known.FormHead.FindStringSubmatch(region[0])
	switch {
	case m == nil || m[1] != "1" || m[2] != "1":
		return "the form has more than one field"
	case list.odd != "":
		return list.odd
	case once != 1 || list.items[0].label != known.MCPOnce:
		return "the first choice is not the only one-time yes"
	case last.label != known.MCPCancel:
		return "the last choice is not a no"
	case !known.FormFooter.MatchString(joined(region[list.end:])):
		return "unknown text follows the choices"
	}
	return ""
}

// planChoices adds the keys of the dialog that follows a plan. The choice that goes on in
// another thread has none: where the work goes on is a person's decision.
func planChoices(c tmux.Capture, p *turn.Prompt, region []string) {
	list := readChoices(region)
	p.Options = nil
	items := list.items
	p.Step = &turn.QuestionStep{Kind: turn.StepSingle, Text: p.Title, Index: 1, Total: 1, ID: stepID(1, p.Title, items)}
	p.Manual = unreadable(c, region)
	switch {
	case p.Manual != "":
	case list.odd != "" || len(items) < 2:
		p.Manual = "the choices are not laid out as known"
	case !known.PlanFooter.MatchString(joined(region[list.end:])):
		p.Manual = "unknown text follows the choices"
	}
	for i, it := range items {
		o := turn.PromptOption{ID: fmt.Sprintf("o%d", i+1), Label: rollout.OneLine(it.label), Description: rollout.OneLine(it.description), Reject: it.label == known.PlanStay}
		if p.Manual == "" && it.label != known.PlanElsewhere {
			o.Key = fmt.Sprint(i + 1)
		}
		p.Options = append(p.Options, o)
	}
}
