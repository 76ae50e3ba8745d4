package sessions

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/agent-knock-knock/akk/internal/harness"
	"github.com/agent-knock-knock/akk/internal/redact"
)

const (
	// loginPages is how many pages one login shows: an agent that names more asks nobody.
	loginPages = 20
	// pageQuiet is how long an agent prints nothing more until its page is shown, for a code
	// is often on the next line, and pageLong how long it may print without a pause until
	// then. For as long again a line that follows is added.
	pageQuiet = 300 * time.Millisecond
	pageLong  = 3 * time.Second
	// pageLines and pageBytes bound what is shown of the lines around a page.
	pageLines = 10
	pageBytes = 1000
)

// pages are what an agent shows beside the protocol while it logs in. live.mu guards it.
type pages struct {
	seen  []string      // those that were shown, or will be
	next  []string      // those that will be
	lines []string      // the newest that it printed, masked
	code  string        // the newest line with a code
	fresh bool          // code was never shown
	kick  chan struct{} // more was printed; nil while there is nothing to be shown
	asked time.Time     // when the newest page was shown
}

// loginSees looks for a page that the agent wants a person to open, and for its code, in what
// the agent prints or notifies while a login runs.
func (l *live) loginSees(text string) {
	n := l.login
	if n == nil || n.state != harness.AuthRunning && n.state != harness.AuthWaiting {
		return
	}
	p := &n.pages
	p.add(text)
	if page := pageIn(text); page != "" && !slices.Contains(p.seen, page) && len(p.seen) < loginPages {
		p.seen, p.next = append(p.seen, page), append(p.next, page)
		if p.kick == nil {
			p.kick = make(chan struct{}, 1)
			ctx, kick := l.loginContext(n), p.kick
			l.svc.group.Go(func(context.Context) { l.showPages(ctx, n, kick) })
		}
	}
	switch {
	case p.kick != nil:
		select {
		case p.kick <- struct{}{}:
		default:
		}
	case p.fresh && len(p.seen) > 0:
		l.askAgain(n)
	case l.now().Sub(p.asked) < pageLong:
		l.addLine(n)
	}
}

// add keeps a line, without what steers a terminal.
func (p *pages) add(text string) {
	line := redact.StrictLine(escapeForm().ReplaceAllString(text, ""), pageBytes)
	if line == "" {
		return
	}
	p.lines = append(p.lines, line)
	for len(p.lines) > pageLines || size(p.lines) > pageBytes {
		p.lines = slices.Delete(p.lines, 0, 1)
	}
	if codeIn(line) != "" && line != p.code {
		p.code, p.fresh = line, true
	}
}

// size is the length of lines with the breaks between them.
func size(lines []string) int {
	n := len(lines) - 1
	for _, line := range lines {
		n += len(line)
	}
	return n
}

// message is what stands beside a page: the newest lines, and the code also when it is older.
func (p *pages) message() string {
	lines := slices.Clone(p.lines)
	if p.code != "" && !slices.Contains(lines, p.code) {
		for size(lines)+1+len(p.code) > pageBytes && len(lines) > 0 {
			lines = lines[1:]
		}
		lines = append([]string{p.code}, lines...)
	}
	return strings.Join(lines, "\n")
}

// showPages asks for the new pages as soon as the agent pauses.
func (l *live) showPages(ctx context.Context, n *login, kick <-chan struct{}) {
	last := l.svc.clock.Now().Add(pageLong)
	for {
		timer, stop := l.svc.after(max(min(pageQuiet, last.Sub(l.svc.clock.Now())), time.Millisecond))
		select {
		case <-ctx.Done():
			stop()
			return
		case <-kick:
			stop()
			continue
		case <-timer:
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		n.pages.kick = nil
		if l.login == n && n.state.InFlight() {
			l.askPages(n, n.pages.next)
			n.pages.next = nil
		}
		return
	}
}

// askPages asks a person to open pages.
func (l *live) askPages(n *login, list []string) {
	p := &n.pages
	for _, page := range list {
		q := harness.Question{Kind: harness.AskURL, Style: harness.StyleAuth, Title: "Open this page to log in", Message: p.message(), URL: page, Schema: harness.OpenedSchema}
		if p.code != "" {
			q.Kind, q.Title = harness.AskAuthCode, "Open this page and enter the code to log in"
		}
		l.newQuestion(q, 0)
	}
	p.fresh, p.asked = false, l.now()
	n.to(l, harness.AuthAsked)
	_ = l.flush() // retried by the loop
}

// askAgain asks for the newest page anew: its code came late, and whoever has the question
// already would not see it there.
func (l *live) askAgain(n *login) {
	page := n.pages.seen[len(n.pages.seen)-1]
	for _, a := range l.pageQuestions() {
		if a.URL == page {
			l.endQuestion(a, harness.QuestionWithdrawn, "", harness.EventWithdrawn)
		}
	}
	l.askPages(n, []string{page})
}

// addLine shows what the agent printed soon after its page. It is no reason to ask anew.
func (l *live) addLine(n *login) {
	for _, a := range l.pageQuestions() {
		a.Message = n.pages.message()
		l.facts.visible = true
	}
	l.svc.nudge()
}

// pageQuestions are the open questions of ours about pages.
func (l *live) pageQuestions() []*asked {
	return slices.DeleteFunc(l.openQuestions(""), func(a *asked) bool {
		return a.Style != harness.StyleAuth || a.Kind != harness.AskURL && a.Kind != harness.AskAuthCode
	})
}
