package top

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/text/width"

	"github.com/agent-knock-knock/akk/internal/outbox"
	"github.com/agent-knock-knock/akk/internal/redact"
	"github.com/agent-knock-knock/akk/internal/turn"
	"github.com/agent-knock-knock/akk/internal/watch"
)

// Frame is how a Snapshot is looked at.
type Frame struct {
	Width, Height int
	Color         bool
	Now           time.Time
	Focus         int // the section that gets the free lines, from 0
	Scroll        int // of that section
}

const (
	minWidth = 40
	maxCell  = 300 // bytes of one cell before it is cut to its column
	reset    = "\x1b[0m"
	bold     = "\x1b[1m"
	dim      = "\x1b[2m"
	red      = "\x1b[31m"
	green    = "\x1b[32m"
	yellow   = "\x1b[33m"
)

// section is a titled table whose last column takes what is left of a line.
type section struct {
	title  string
	widths []int // of all columns but the last
	head   []string
	rows   []line
	none   string // shown when there is no row
}

type line struct {
	cells []string
	color string
}

// unknown keeps a section from saying that there is nothing where nobody could look.
func (p *section) unknown(ofBridges bool, s Snapshot) {
	switch {
	case ofBridges && s.Unasked != "":
		p.none = redact.Line("not asked: "+s.Unasked, maxCell)
	case !ofBridges && s.Unread != "":
		p.none = redact.Line("not read: "+s.Unread, maxCell)
	}
}

// Sections is how many there are, for whoever moves the focus.
const Sections = 4

// Render draws at most Height lines, none wider than Width.
func Render(s Snapshot, f Frame) string {
	f.Width = max(f.Width, minWidth)
	parts := []section{bridges(s, f.Now), turns(s, f.Now), watches(s, f.Now), callbacks(s, f.Now)}
	for i := range parts {
		parts[i].unknown(i == 0, s)
	}
	out := []string{paint(f, bold, title(s, f)), summary(s, f)}
	for i, n := range share(parts, f) {
		out = append(out, parts[i].draw(f, i == f.Focus, n)...)
	}
	foot := "tab section   ↑↓ scroll   q quit"
	if problem := s.problem(); problem != "" {
		out = append(out, paint(f, red, cut(redact.Line(problem, maxCell), f.Width)))
	} else {
		out = append(out, paint(f, dim, cut(foot, f.Width)))
	}
	return strings.Join(out[:min(len(out), max(f.Height, 1))], "\n")
}

func title(s Snapshot, f Frame) string {
	right := f.Now.Format("15:04:05")
	left := cut("agent-knock-knock top  "+s.StoreDir, f.Width-len(right)-1)
	return left + strings.Repeat(" ", max(f.Width-columns(left)-len(right), 1)) + right
}

func summary(s Snapshot, f Frame) string {
	workers, running, watched := 0, 0, 0
	for _, b := range s.Bridges {
		workers += len(b.Workers)
	}
	for _, t := range s.Turns {
		if t.Status.Blocking() {
			running++
		}
	}
	for _, w := range s.Watches {
		if w.Status == watch.Active {
			watched++
		}
	}
	if s.Unread != "" {
		return paint(f, red, cut(many(len(s.Bridges), "bridge", "s")+", "+many(workers, "worker", "s")+", the Store was not read", f.Width))
	}
	text := strings.Join([]string{many(len(s.Bridges), "bridge", "s"), many(workers, "worker", "s"), many(running, "turn", "s"), many(watched, "watch", "es"),
		many(s.Counts[outbox.Pending]+s.Counts[outbox.Delivering], "callback", "s") + " on the way"}, ", ")
	color := ""
	if n := s.dead(); n > 0 {
		text, color = text+fmt.Sprintf(", %d DEAD", n), red
	}
	if s.Damaged > 0 {
		text, color = text+fmt.Sprintf(", %d records damaged", s.Damaged), red
	}
	return paint(f, color, cut(text, f.Width))
}

// many is a number with its word.
func many(n int, word, plural string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %s%s", n, word, plural)
}

// share gives each section its rows: one each, then those that need more in turn, the one
// in focus first.
func share(parts []section, f Frame) []int {
	free := f.Height - 3 // title, summary, foot
	got := make([]int, len(parts))
	for i := range parts {
		got[i] = 1
		free -= 2 // its heading and one row
	}
	give := func(i int) bool {
		if free <= 0 || got[i] >= len(parts[i].rows) {
			return false
		}
		got[i]++
		free--
		return true
	}
	for free > 0 && give(f.Focus) && got[f.Focus] < (f.Height-3)/2 {
	}
	for more := true; more; {
		more = false
		for i := range parts {
			more = give(i) || more
		}
	}
	return got
}

// draw is the heading and n rows.
func (p section) draw(f Frame, focus bool, n int) []string {
	mark := " "
	if focus {
		mark = "▸"
	}
	from := 0
	if focus {
		from = min(f.Scroll, max(len(p.rows)-n, 0))
	}
	shown := p.rows[from:min(from+n, len(p.rows))]
	head := append([]string{p.title}, p.head[1:]...)
	if hidden := len(p.rows) - len(shown); hidden > 0 {
		head[0] = fmt.Sprintf("%s +%d", p.title, hidden)
	}
	out := []string{paint(f, bold, mark+p.join(head, f.Width-1))}
	if len(p.rows) == 0 {
		return append(out, paint(f, dim, cut("  "+p.none, f.Width)))
	}
	for _, r := range shown {
		out = append(out, paint(f, r.color, " "+p.join(r.cells, f.Width-1)))
	}
	return out
}

// join puts cells into their columns.
func (p section) join(cells []string, wide int) string {
	var b strings.Builder
	used := 0
	for i, c := range cells {
		c = redact.Line(c, maxCell)
		if i == len(cells)-1 {
			b.WriteString(cut(c, max(wide-used, 0)))
			break
		}
		c = cut(c, min(p.widths[i], max(wide-used, 0)))
		pad := strings.Repeat(" ", max(p.widths[i]-columns(c), 0)+1)
		b.WriteString(c + pad)
		used += columns(c) + len(pad)
	}
	return cut(strings.TrimRight(b.String(), " "), wide)
}

func bridges(s Snapshot, now time.Time) section {
	p := section{title: "BRIDGE, WORKER", widths: []int{18, 14, 9, 7, 5, 7}, head: []string{"", "SERVES", "STATE", "PID", "AGE", "MEMORY", "PROBLEM"}, none: "no Bridge runs; a Host starts one when it needs it"}
	for _, b := range s.Bridges {
		color, state := green, "serving"
		if b.Problem != "" {
			color, state = red, "problem"
		}
		p.rows = append(p.rows, line{[]string{"bridge", b.Host, state, fmt.Sprint(b.PID), since(now, b.StartedAt), mib(b.Memory), b.Problem}, color})
		for _, w := range b.Workers {
			color, problem := "", w.Problem
			if problem == "" {
				problem = w.LastError
			} else {
				color = red
			}
			p.rows = append(p.rows, line{[]string{" " + w.Name, tail(w.Serves, 14), w.State, fmt.Sprint(w.PID), span(time.Duration(w.AgeSeconds) * time.Second), mib(w.Memory), problem}, color})
		}
	}
	return p
}

func turns(s Snapshot, now time.Time) section {
	p := section{title: "TURN", widths: []int{18, 22, 7, 5}, head: []string{"", "STATUS", "AGENT", "AGE", "REQUEST"}, none: "no task was sent yet"}
	for _, t := range s.Turns {
		text, color := t.RequestSummary, ""
		switch t.Status {
		case turn.Stalled, turn.Failed:
			color, text = red, t.Reason
		case turn.WaitingForController:
			color = yellow
		case turn.Idle, turn.Closed, turn.Cancelled:
			color = dim
		}
		p.rows = append(p.rows, line{[]string{tail(string(t.ID), 18), string(t.Status), t.Agent, since(now, t.CreatedAt), text}, color})
	}
	return p
}

func watches(s Snapshot, now time.Time) section {
	p := section{title: "WATCH", widths: []int{18, 22, 7, 5}, head: []string{"", "STATUS", "AGENT", "AGE", "WHERE"}, none: "nothing is watched"}
	for _, w := range s.Watches {
		color := ""
		if w.Status != watch.Active {
			color = dim
		}
		p.rows = append(p.rows, line{[]string{tail(string(w.ID), 18), string(w.Status), w.Agent, since(now, w.CreatedAt), filepath.Base(w.Workspace)}, color})
	}
	return p
}

func callbacks(s Snapshot, now time.Time) section {
	p := section{title: "CALLBACK", widths: []int{18, 22, 7, 5}, head: []string{"", "STATUS", "TRIES", "AGE", "OF"}, none: "no callback was needed yet"}
	for _, d := range s.Outbox {
		color, of := dim, d.Event.Kind+" of "+tail(d.Source.ID, 18)
		switch {
		case d.Status.Dead():
			color, of = red, of+": "+d.LastError
		case d.Status.Open():
			color = yellow
			if !d.NextAttemptAt.IsZero() && d.NextAttemptAt.After(now) {
				of += ", next " + span(now.Sub(d.NextAttemptAt))
			}
		}
		p.rows = append(p.rows, line{[]string{tail(string(d.DeliveryID), 18), string(d.Status), fmt.Sprint(d.Attempts), since(now, d.CreatedAt), of}, color})
	}
	return p
}

func mib(n uint64) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1fM", float64(n)/(1<<20))
}

// tail is the end of an id: ids of one kind differ there.
func tail(id string, n int) string {
	if len(id) <= n {
		return id
	}
	return "…" + id[len(id)-n+1:]
}

func paint(f Frame, color, text string) string {
	if !f.Color || color == "" {
		return text
	}
	return color + text + reset
}

// columns is how many cells of a terminal a text takes.
func columns(s string) (n int) {
	for _, r := range s {
		n += cells(r)
	}
	return n
}

func cells(r rune) int {
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// cut shortens a text to so many cells.
func cut(s string, limit int) string {
	if columns(s) <= limit {
		return s
	}
	n, at := 0, 0
	for at < len(s) {
		r, size := utf8.DecodeRuneInString(s[at:])
		if n+cells(r) > limit-1 {
			break
		}
		n += cells(r)
		at += size
	}
	if limit <= 0 {
		return ""
	}
	return s[:at] + "…"
}
