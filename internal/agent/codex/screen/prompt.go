package screen

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/agent/codex/known"
	"github.com/agent-knock-knock/akk/internal/agent/codex/rollout"
	"github.com/agent-knock-knock/akk/internal/redact"
	"github.com/agent-knock-knock/akk/internal/tmux"
	"github.com/agent-knock-knock/akk/internal/turn"
)

// MaxExcerpt is the limit of a prompt region that is shown to the Host, in bytes.
const MaxExcerpt = 4000

// TooLong is why nobody may approve what a Host can be shown only a part of.
const TooLong = "the request is longer than what can be shown; a person must read all of it in the terminal"

// dialogScreen classifies a screen whose program hides the cursor: something else than
// the composer has the keyboard, or the screen is being drawn.
func dialogScreen(c tmux.Capture, rows []string, title Title) agent.Screen {
	s := agent.Screen{State: agent.ScreenUnknown, Composer: agent.ComposerAbsent}
	body := dialogBody(rows)
	p := approval(c, rows)
	if p == nil {
		p = mcpApproval(c, body)
	}
	if p != nil {
		s.State, s.Prompt, s.Reason = agent.ScreenApproval, p, p.Reason
		return s
	}
	if p := questionnaire(c, body); p != nil {
		s.State, s.Prompt, s.Reason = agent.ScreenDialog, p, p.Reason
		return s
	}
	for _, d := range known.Dialogs {
		for i, row := range body {
			if !d.Find.MatchString(row) {
				continue
			}
			if d.Name == "picker" {
				i = 0
			}
			s.State, s.Reason = agent.ScreenDialog, d.Name
			s.Prompt = dialogPrompt(c, d.Name, body[i:], d.Question)
			if d.Name == "plan picker" {
				planChoices(c, s.Prompt, trimBlank(body[i:]))
			}
			return s
		}
	}
	s.Reason = "the cursor is hidden and no known dialog is shown"
	if title == TitleAction {
		s.State, s.Reason = agent.ScreenDialog, "the title asks for a decision; the dialog is not known"
		s.Prompt = dialogPrompt(c, s.Reason, body, false)
	}
	return s
}

// dialogBody returns the rows below the conversation, without blank rows at both ends.
func dialogBody(rows []string) []string {
	from := 0
	for i, row := range rows {
		if known.HistoryLine.MatchString(row) {
			from = i + 1
		}
	}
	return trimBlank(rows[from:])
}

func trimBlank(rows []string) []string {
	for len(rows) > 0 && rows[0] == "" {
		rows = rows[1:]
	}
	for len(rows) > 0 && rows[len(rows)-1] == "" {
		rows = rows[:len(rows)-1]
	}
	return rows
}

// option is one numbered choice with its rows joined.
type option struct {
	number int
	label  string
	key    string // as Codex prints it: y, p, esc
}

// approval reads an approval prompt. The region runs from the last question line to the
// end of the screen; nothing above it takes part, so that output which scrolls there
// changes nothing (case T20). It returns nil when the screen shows no approval.
func approval(c tmux.Capture, rows []string) *turn.Prompt {
	marker, markers, title, high := -1, 0, "", 0
	for i := range rows {
		if q, n := approvalQuestion(rows[i:]); n > 0 {
			marker, title, high, markers = i, q, n, markers+1
		}
	}
	if marker < 0 {
		return cutApproval(c, rows)
	}
	region := trimBlank(rows[marker:])
	opts, tail, spare := readOptions(region)
	if len(opts) == 0 {
		return nil
	}
	p := newPrompt(c, turn.PromptApproval, region, opts, true)
	p.Title = rollout.OneLine(title)
	var whole bool
	p.Detail, whole = detailOf(region[high:])
	p.Reason = notApprovable(opts, tail, spare, markers)
	if why := unreadable(c, region); why != "" {
		p.Reason = why
	}
	if !whole {
		p.Reason = TooLong
	}
	p.Approvable = p.Reason == ""
	return p
}

// approvalQuestion returns the approval's question that begins with the first of rows, and
// on how many rows it stands, 0 for none. A narrow pane wraps it.
func approvalQuestion(rows []string) (string, int) {
	text := ""
	for i := 0; i < len(rows) && i < 3 && rows[i] != ""; i++ {
		text = strings.TrimSpace(text + " " + strings.TrimSpace(rows[i]))
		for _, m := range known.ApprovalMarkers {
			if m.MatchString(text) {
				return text, i + 1
			}
		}
		if i == 0 && !known.ApprovalBegin.MatchString(text) {
			break
		}
	}
	return "", 0
}

// unreadable says why a person must look at the terminal itself, "" when all of the region
// is on the screen as it is.
func unreadable(c tmux.Capture, region []string) string {
	if c.Pane.Width > 0 && c.Pane.Width < known.NarrowBelow {
		return fmt.Sprintf("the terminal is narrower than %d columns", known.NarrowBelow)
	}
	for _, row := range region {
		if known.ElidedLine.MatchString(row) {
			return "a part of the request is not on the screen"
		}
	}
	return ""
}

// cutApproval finds an approval whose question does not fit the screen: it is reported,
// and nobody may answer it unseen.
func cutApproval(c tmux.Capture, rows []string) *turn.Prompt {
	body := dialogBody(rows)
	opts, tail, _ := readOptions(body)
	if len(opts) == 0 || opts[0].key == "" || !known.ApprovalFooter.MatchString(joined(tail)) {
		return nil
	}
	p := newPrompt(c, turn.PromptApproval, body, opts, true)
	p.Title, p.Reason = "an approval whose question is not on the screen", "the prompt does not fit the screen or its question is not known"
	return p
}

// joined is rows as one line.
func joined(rows []string) string {
	return strings.Join(strings.Fields(strings.Join(rows, " ")), " ")
}

// notApprovable says why a prompt may not be answered by key, "" when it may.
func notApprovable(opts []option, tail []string, spare, markers int) string {
	oneTime := 0
	for _, o := range opts {
		if oneTimeYes(o) {
			oneTime++
		}
	}
	last := opts[len(opts)-1]
	switch {
	case markers != 1:
		return "several approval questions are on the screen"
	case spare > 0:
		return "the request itself has lines that look like choices"
	case len(opts) < 2:
		return "fewer than two choices are shown"
	case !oneTimeYes(opts[0]) || oneTime != 1:
		return "the first choice is not the only one-time yes with the key " + known.OneTimeKey
	case !known.RejectLabel.MatchString(last.label) || last.key == "" || last.key == known.OneTimeKey:
		return "the last choice is not a no with a key of its own"
	case len(tail) > 0 && !known.ApprovalFooter.MatchString(joined(tail)):
		return "unknown text follows the choices"
	}
	return ""
}

func oneTimeYes(o option) bool {
	return known.YesLabel.MatchString(o.label) && o.key == known.OneTimeKey && !known.LastingLabel.MatchString(o.label)
}

// readOptions returns the last block of choices numbered from 1, the visible rows after
// it, and how many rows before it look like choices too. Blank rows end a block, indented
// rows continue the choice above.
func readOptions(region []string) (opts []option, tail []string, spare int) {
	start := -1
	for i, row := range region {
		if m := known.OptionLine.FindStringSubmatch(row); m != nil && m[2] == "1" {
			start = i
		}
	}
	if start < 0 {
		return nil, nil, 0
	}
	i := start
	for ; i < len(region) && region[i] != "" && !known.FooterBegin.MatchString(region[i]); i++ {
		m := known.OptionLine.FindStringSubmatch(region[i])
		switch {
		case m != nil && m[2] == fmt.Sprint(len(opts)+1):
			opts = append(opts, option{number: len(opts) + 1, label: m[3]})
		case m == nil && strings.HasPrefix(region[i], "    "):
			o := &opts[len(opts)-1]
			o.label += " " + strings.TrimSpace(region[i])
		default:
			return nil, nil, 0 // out of order, or a row that is no choice
		}
	}
	for j := range opts {
		opts[j].label = strings.TrimSpace(opts[j].label)
		if m := known.OptionKey.FindStringSubmatch(opts[j].label); m != nil {
			opts[j].key = m[1]
		}
	}
	for _, row := range region[i:] {
		if row != "" {
			tail = append(tail, row)
		}
	}
	for _, row := range region[:start] {
		if known.OptionLine.MatchString(row) {
			spare++
		}
	}
	return opts, tail, spare
}

// dialogPrompt describes any other dialog. Its choices are shown without keys: a person
// answers it.
func dialogPrompt(c tmux.Capture, name string, region []string, question bool) *turn.Prompt {
	region = trimBlank(region)
	opts, _, _ := readOptions(region)
	kind := turn.PromptDialog
	if question {
		kind = turn.PromptQuestion
	}
	p := newPrompt(c, kind, region, opts, false)
	p.Reason = name
	if question {
		p.Manual = "this kind of question is not known exactly"
	}
	return p
}

func newPrompt(c tmux.Capture, kind turn.PromptKind, region []string, opts []option, approvalKeys bool) *turn.Prompt {
	p := &turn.Prompt{Kind: kind, Fingerprint: fingerprint(c, region), Excerpt: rollout.Clip(redact.String(strings.Join(region, "\n")), MaxExcerpt)}
	if len(region) > 0 {
		p.Title = rollout.OneLine(region[0])
	}
	for _, o := range opts {
		p.Options = append(p.Options, turn.PromptOption{
			Label: rollout.OneLine(o.label), Key: tmuxKey(o.key), OneTime: approvalKeys && oneTimeYes(o),
			Reject: approvalKeys && known.RejectLabel.MatchString(o.label),
		})
	}
	return p
}

// fingerprint covers the agent, the pane and the prompt region. Which choice is marked
// does not count: a key answers whatever is marked.
func fingerprint(c tmux.Capture, region []string) string {
	h := sha256.New()
	fmt.Fprintf(h, "codex\n%s\n%s\n%d\n", c.Pane.Socket, c.Pane.ID, c.Pane.PID)
	for _, row := range region {
		if known.OptionLine.MatchString(row) {
			row = strings.Replace(row, string(known.ComposerGlyph)+" ", "  ", 1)
		}
		fmt.Fprintln(h, row)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// detailOf joins the rows before the choices: reason and command.
func detailOf(region []string) (detail string, whole bool) {
	var out []string
	for _, row := range region {
		if known.OptionLine.MatchString(row) {
			break
		}
		if row = strings.TrimSpace(row); row != "" {
			out = append(out, row)
		}
	}
	return redact.Whole(strings.Join(out, " · "), MaxExcerpt)
}

func tmuxKey(key string) string {
	switch key {
	case "esc":
		return "Escape"
	case "enter":
		return "Enter"
	}
	return key
}
