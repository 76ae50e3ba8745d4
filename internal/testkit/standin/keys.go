package standin

import (
	"strings"
	"time"

	"golang.org/x/text/unicode/norm"

	"github.com/agent-knock-knock/akk/internal/testkit/standin/term"
)

// keys applies what came from the terminal.
func (a *app) keys(keys []term.Key) {
	for _, k := range keys {
		now := time.Now()
		if a.deaf && k.Kind != term.Paste && k.Kind != term.Enter {
			continue
		}
		if a.state == waiting && a.dlg != nil {
			a.dialogKey(k)
			continue
		}
		a.composerKey(k, now)
	}
}

func (a *app) composerKey(k term.Key, now time.Time) {
	switch k.Kind {
	case term.Text:
		a.countBurst(k.Text, now)
		a.comp.add(k.Text)
	case term.Paste:
		a.pasted, a.burst = now, 0
		a.paste(k.Text)
	case term.Newline:
		a.comp.add("\n")
	case term.Enter:
		a.enter(now)
	case term.Tab:
		a.tab()
	case term.Backspace:
		a.comp.backspace()
	case term.CtrlU:
		a.comp.killLine()
	case term.CtrlC:
		a.ctrlC()
	case term.Esc:
		a.escape()
	}
}

// countBurst notes characters that come too fast for a person.
func (a *app) countBurst(text string, now time.Time) {
	n := len([]rune(text))
	if n == 1 && now.Sub(a.lastKey) > burstStep {
		a.burst = 0
	}
	a.burst += n
	a.lastKey = now
}

// paste adds one bracketed paste. tmux sends CR for every LF.
func (a *app) paste(text string) {
	text = strings.ReplaceAll(text, "\r", "\n")
	n := len([]rune(text))
	a.pastes++
	switch {
	case a.cfg.Agent == Codex && n >= 1000:
		a.comp.addFolded(text, pastedContent(n))
	case a.cfg.Agent == Claude && (strings.Count(text, "\n") >= 4 || n > 800):
		a.comp.addFolded(text, pastedText(a.pastes, strings.Count(text, "\n")))
	case a.cfg.Agent == Claude:
		text = norm.NFC.String(strings.ReplaceAll(text, "\t", "    "))
		if !strings.Contains(text, "\n") {
			text = strings.TrimRight(text, " ")
		}
		a.comp.add(text)
	default:
		a.comp.add(text)
	}
}

func (a *app) enter(now time.Time) {
	m := a.cfg.Mode
	burst := a.cfg.Agent == Codex && !m.NoBracketed && a.burst >= burstMin && now.Sub(a.lastKey) < burstHold
	switch {
	case burst:
		a.comp.add("\n")
		a.lastKey = now
	case m.IgnoreEnter, m.SwallowEnter && now.Sub(a.pasted) < swallow:
	case strings.TrimSpace(a.comp.text()) == "":
	default:
		a.submit()
	}
}

// submit takes the draft. What it becomes depends on how it begins and on what runs.
func (a *app) submit() {
	a.die("submit")
	text := a.comp.text()
	if a.cfg.Agent == Codex {
		text = strings.TrimSpace(text)
	}
	shown := a.comp.text()
	if a.cfg.Mode.QueuedForever {
		a.comp.clear()
		a.parked = true
		a.j.event("queue", text)
		return
	}
	switch {
	case strings.HasPrefix(shown, "!"):
		a.comp.clear()
		a.j.event("shell", shown[1:])
		a.face.shell(strings.TrimSpace(shown[1:]))
	case isSlash(shown):
		a.j.event("slash", shown)
		if !a.face.slash(shown) {
			a.comp.clear()
		}
	case a.state == working && a.cfg.Agent == Codex:
		a.comp.clear()
		a.j.event("steer", text)
		a.steer(text)
	case a.state == working:
		a.comp.clear()
		a.enqueue(text)
	case a.cfg.Agent == Claude && text == "exit":
		a.quit = true
	default:
		a.comp.clear()
		a.j.event("submit", text)
		a.beginTurn(text, false)
	}
}

// isSlash reports whether the draft is a command: "/word", not a path like "/tmp/x".
func isSlash(text string) bool {
	first, _, _ := strings.Cut(text, " ")
	first, _, _ = strings.Cut(first, "\n")
	return strings.HasPrefix(first, "/") && !strings.Contains(first[1:], "/")
}

// tab queues the draft in a working Codex.
func (a *app) tab() {
	if a.cfg.Agent == Codex && a.state == working && !a.comp.empty() {
		text := strings.TrimSpace(a.comp.text())
		a.comp.clear()
		a.enqueue(text)
	}
}

func (a *app) enqueue(text string) {
	a.j.event("queue", text)
	a.queue = append(a.queue, text)
	a.face.enqueue(text)
}

func (a *app) ctrlC() {
	switch {
	case !a.comp.empty():
		a.comp.clear()
	case a.state == working:
		a.escape()
	case a.cfg.Agent == Codex:
		a.quit = true
	case time.Since(a.lastCtrlC) < ctrlCTwice:
		a.quit = true
	default:
		a.lastCtrlC = time.Now()
	}
}

func (a *app) escape() {
	a.deaf = a.cfg.Mode.DeafAfterEsc
	if a.state == working {
		a.interrupt()
	}
}
