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

// page is one page of a questionnaire, a plan, or the page that sends all answers.
type page struct {
	c       tmux.Capture
	top     int // the dialog's first row
	whole   bool
	list    []choice
	tabs    int // questions, 0 when they are not shown
	current int // which tab is highlighted, from 1; tabs+1 is the last page; 0 when unknown
	header  string
	text    string
	lines   []string   // of the text
	rows    [][]string // below each choice
	free    int        // index of the choice that opens a line for own words, -1 for none
	last    int        // how many choices belong to the question
	odd     string     // why the layout is not the known one
}

// describeQuestion reads the page into p: a step with its choices and their keys, or why
// only a person can answer. Where the marker stands and what is written in the line for
// own words are no part of the prompt.
func describeQuestion(c tmux.Capture, top int, whole bool, list []choice, p *turn.Prompt) page {
	g := readPage(c, top, whole, list)
	p.Reason = "a question needs an answer, not an approval"
	title, rest := g.asked()
	p.Title, p.Detail = redact.String(cutBytes(title, known.ExcerptMax)), cutBytes(redact.String(rest), known.ExcerptMax)
	p.Fingerprint = fingerprint(c.Pane, g.lasting())
	step := turn.QuestionStep{Header: g.header, Text: p.Title, Kind: turn.StepSingle, Index: g.current}
	switch {
	case strings.HasSuffix(g.text, known.SubmitQuestion):
		step.Kind, step.Total = turn.StepConfirm, g.tabs+1
	case known.MultiMark.MatchString(list[0].label):
		step.Kind = turn.StepMulti
	case g.open():
		step.Kind = turn.StepFreeText
	}
	if g.tabs > 0 {
		step.Total = g.tabs
		if g.paged() {
			step.Total++ // the page that sends the answers
		}
	}
	if g.plan() {
		step.Index, step.Total = 1, 1
	}
	step.ID = g.id()
	p.Step, p.Manual = &step, g.manual(step.Kind)
	for i, ch := range list[:g.last] {
		o := turn.PromptOption{ID: fmt.Sprintf("o%d", i+1), Label: redact.String(ch.label), FreeText: i == g.free,
			Description: redact.String(strings.Join(g.rows[i], " ")), Reject: known.RefusingChoices[ch.label]}
		if m := known.MultiMark.FindStringSubmatch(o.Label); m != nil {
			o.Label = strings.TrimPrefix(o.Label, m[0])
		}
		if i == g.free {
			o.Label, o.Description = g.freeLabel(), ""
		}
		if p.Manual == "" && !known.LastingChoices.MatchString(ch.label) && (i != g.free || g.blank()) {
			o.Key = fmt.Sprint(ch.number)
		}
		p.Options = append(p.Options, o)
	}
	return g
}

// readPage takes the page apart.
func readPage(c tmux.Capture, top int, whole bool, list []choice) page {
	g := page{c: c, top: top, whole: whole, list: list, free: -1, last: len(list)}
	first := list[0].line
	at := top
	if at < first && isRule(c.Lines[at]) {
		at++
	}
	var text []string
	for ; at < first; at++ {
		l := strings.TrimSpace(c.Lines[at])
		switch {
		case l == "" || strings.Trim(l, "╌─") == "":
		case len(text) == 0 && g.header == "" && g.tabs == 0 && known.TabRow.MatchString(l):
			g.readTabs(at)
		default:
			text = append(text, l)
		}
	}
	g.text, g.lines = strings.Join(text, " "), text
	for i, ch := range list {
		end := len(c.Lines)
		if i+1 < len(list) {
			end = list[i+1].line
		}
		var below []string
		for _, l := range c.Lines[ch.line+1 : end] {
			if isRule(l) || strings.TrimSpace(l) == "" {
				if isRule(l) && i+1 < len(list) {
					g.last = i + 1
				}
				break
			}
			if i+1 == len(list) && isFooter(l) {
				break
			}
			if utf8.RuneCountInString(l)-utf8.RuneCountInString(strings.TrimLeft(l, " ")) < known.DescriptionIndent {
				g.odd = "the choices are not laid out as known"
			}
			below = append(below, strings.TrimSpace(l))
		}
		g.rows = append(g.rows, below)
	}
	switch after := list[g.last:]; {
	case g.questionnaire():
		g.free = g.last - 1
	case len(after) > 0:
		g.odd = "choices of an unknown kind follow the question's own"
	case g.plan() && len(list) > 2:
		g.free = len(list) - 1
		if n := len(g.rows[g.free]); n > 0 && g.rows[g.free][n-1] == known.PlanFeedback {
			g.rows[g.free] = g.rows[g.free][:n-1]
		}
	}
	return g
}

// asked splits the text into the question itself and what stands around it.
func (g page) asked() (title, rest string) {
	if !g.plan() && !g.confirm() {
		return g.text, ""
	}
	var around []string
	for _, l := range g.lines {
		if title == "" && (strings.HasSuffix(l, known.SubmitQuestion) || isPlanQuestion(l)) {
			title = l
			continue
		}
		around = append(around, l)
	}
	if title == "" { // wrapped
		return g.text, ""
	}
	return title, strings.Join(around, "\n")
}

func (g page) questionnaire() bool {
	after := g.list[g.last:]
	return len(after) == 1 && after[0].label == known.ChatChoice && g.last > 1
}

func (g page) confirm() bool { return strings.HasSuffix(g.text, known.SubmitQuestion) }

func (g page) plan() bool { return !g.questionnaire() && isPlanQuestion(g.text) }

func isPlanQuestion(text string) bool {
	for _, q := range known.PlanQuestions {
		if strings.Contains(text, q) {
			return true
		}
	}
	return false
}

// paged reports whether a last page sends all answers.
func (g page) paged() bool {
	for i := g.top; i < g.list[0].line; i++ {
		if strings.Contains(g.c.Lines[i], known.SubmitTab) {
			return true
		}
	}
	return false
}

// open reports whether the line for own words has the focus: a digit is text in it then.
func (g page) open() bool { return g.free >= 0 && g.list[g.free].selected }

// freeLabel is what the line for own words shows while it is blank.
func (g page) freeLabel() string {
	if g.plan() {
		return known.PlanOwnWords
	}
	return known.OwnWordsLabel
}

// blank reports whether nothing is written in that line.
func (g page) blank() bool {
	return g.free >= 0 && g.list[g.free].label == g.freeLabel() && len(g.rows[g.free]) == 0
}

// manual says why only a person can answer, "" when a key can.
func (g page) manual(kind turn.StepKind) string {
	switch {
	case !g.whole:
		return "the beginning of the question is not on the screen"
	case g.c.Pane.Width > 0 && g.c.Pane.Width < known.NarrowBelow:
		return fmt.Sprintf("the terminal is narrower than %d columns", known.NarrowBelow)
	case kind == turn.StepMulti:
		return "several choices may be taken together"
	case g.odd != "":
		return g.odd
	case !g.questionnaire() && !g.plan() && !g.confirm():
		return "this kind of question is not known exactly"
	case g.confirm() && strings.Contains(g.text, known.UnansweredMark):
		return "some questions have no answer yet"
	case known.SecretWords.MatchString(g.text):
		return "it seems to ask for a secret"
	case g.open():
		return "the line for own words is open: somebody is writing an answer"
	}
	return ""
}

// id stands for what is asked.
func (g page) id() string {
	h := sha256.New()
	fmt.Fprintln(h, g.text)
	for i, ch := range g.list[:g.last] {
		if i != g.free {
			fmt.Fprintln(h, ch.label)
		}
	}
	return fmt.Sprintf("q%d-%s", g.current, hex.EncodeToString(h.Sum(nil))[:12])
}

// lasting is what stays the same while the page waits for an answer.
func (g page) lasting() []string {
	var out []string
	for _, l := range trimBlank(g.c.Lines[g.top:g.list[0].line]) {
		if l = strings.TrimRight(l, " "); l != "" {
			out = append(out, l)
		}
	}
	for i, ch := range g.list {
		if i == g.free {
			out = append(out, "own words")
			continue
		}
		out = append(append(out, fmt.Sprintf("%d. %s", ch.number, ch.label)), g.rows[i]...)
	}
	return out
}

// readTabs reads the row of tabs. The page that is shown is the one with a background.
func (g *page) readTabs(row int) {
	names := tabNames(g.c.Lines[row])
	g.tabs = len(names)
	lit := ""
	if row < len(g.c.Styled) {
		lit = strings.TrimSpace(highlighted(g.c.Styled[row]))
	}
	if strings.Contains(lit, known.SubmitTab) {
		g.current = g.tabs + 1
		return
	}
	lit = strings.TrimLeft(lit, known.TabBoxes+" ")
	for i, name := range names {
		if lit == name || len(names) == 1 && lit == "" {
			g.current, g.header = i+1, redact.String(name)
		}
	}
}

// tabNames returns the names of the questions in a row of tabs.
func tabNames(row string) []string {
	var out []string
	row = row[max(0, strings.IndexAny(row, known.TabBoxes)):]
	for _, part := range strings.FieldsFunc(row, func(r rune) bool { return strings.ContainsRune(known.TabBoxes, r) }) {
		name, _, _ := strings.Cut(strings.TrimSpace(part), "  ")
		out = append(out, name)
	}
	return out
}

// highlighted returns the text of a styled row that has a background of its own.
func highlighted(row string) string {
	var out strings.Builder
	on := false
	for i := 0; i < len(row) && i < maxStyledLine; {
		if row[i] != 0x1b {
			_, n := utf8.DecodeRuneInString(row[i:])
			if on {
				out.WriteString(row[i : i+n])
			}
			i += n
			continue
		}
		var dim, reverse bool
		n := escape(row[i:], &dim, &reverse)
		switch seq := row[i : i+n]; {
		case strings.Contains(seq, "48;") || strings.Contains(seq, "[7m"):
			on = true
		case strings.Contains(seq, "[49") || strings.Contains(seq, ";49") || strings.Contains(seq, "[0") || seq == "\x1b[m":
			on = false
		}
		i += n
	}
	return out.String()
}

// ownWords reads the line for own words as a composer: empty while it shows what it is
// for and the cursor stands at its beginning, else what is written in it.
func (g page) ownWords() (agent.ComposerState, string) {
	ch := g.list[g.free]
	if g.blank() && g.c.Pane.CursorX == utf8.RuneCountInString(before(g.c.Lines[ch.line], ch.label)) {
		return agent.ComposerEmpty, ""
	}
	return agent.ComposerDraft, strings.Join(append([]string{ch.label}, g.rows[g.free]...), "\n")
}

func before(s, part string) string {
	head, _, _ := strings.Cut(s, part)
	return head
}

// cutQuestion describes a questionnaire of which only a part is on the screen, or whose
// choices are not numbered as known: it is reported, and a person answers it.
func cutQuestion(c tmux.Capture) *turn.Prompt {
	cut, footer := false, false
	for _, l := range lastLines(c.Lines, known.DialogTail) {
		cut = cut || strings.Contains(l, known.ChatChoice)
		footer = footer || strings.Contains(l, known.SelectFooter)
	}
	if !cut || !footer {
		return nil
	}
	return &turn.Prompt{
		Kind: turn.PromptQuestion, Title: "a question that cannot be read as a whole",
		Fingerprint: fingerprint(c.Pane, []string{"cut question"}), Excerpt: excerpt(trimBlank(c.Lines)),
		Reason: "a question needs an answer, not an approval", Manual: "the question is not on the screen as a whole, or its layout is not known",
	}
}

func isFooter(line string) bool {
	for _, m := range append(known.DialogFooters, known.PlanFooter) {
		if strings.Contains(line, m) {
			return true
		}
	}
	return false
}
