package standin

import (
	"github.com/agent-knock-knock/akk/internal/testkit/standin/term"
)

// dialogKind is what a dialog asks.
type dialogKind int

const (
	dialogApproval   dialogKind = iota
	dialogTrust                 // at the start: is this folder trusted?
	dialogOnboarding            // a first screen that no driver knows; it never goes away
)

// dialog holds the focus until it is answered.
type dialog struct {
	kind     dialogKind
	call     *call
	options  int
	selected int
	approved chan<- struct{}
}

func (a *app) ask(d *dialog) {
	a.dlg = d
	if d.kind == dialogApproval {
		a.set(waiting)
		return
	}
	a.state = waiting // before the agent's own records exist
}

// dialogKey is a key while a dialog has the focus: a paste is lost, Enter takes the
// selected choice.
func (a *app) dialogKey(k term.Key) {
	d := a.dlg
	switch k.Kind {
	case term.Up:
		d.selected = max(0, d.selected-1)
	case term.Down:
		d.selected = min(d.options-1, d.selected+1)
	case term.Enter:
		a.choose(d.selected)
	case term.Esc, term.CtrlC:
		a.choose(d.options - 1)
	case term.Text:
		for _, r := range k.Text {
			if a.dlg != d {
				return
			}
			a.dialogRune(r)
		}
	}
}

func (a *app) dialogRune(r rune) {
	d := a.dlg
	switch {
	case r >= '1' && int(r-'0') <= d.options:
		a.choose(int(r - '1'))
	case a.cfg.Agent == Codex && d.kind == dialogApproval && r == 'y':
		a.choose(0)
	case a.cfg.Agent == Codex && d.kind == dialogApproval && r == 'p':
		a.choose(1)
	}
}

func (a *app) choose(n int) {
	d := a.dlg
	switch d.kind {
	case dialogOnboarding:
		return
	case dialogTrust:
		if n != 0 {
			a.quit = true
			return
		}
		a.dlg = nil
		if err := a.ready(); err != nil {
			a.block(blockError, err.Error())
		}
		return
	}
	a.dlg = nil
	if n == d.options-1 {
		a.decline(d.call)
		return
	}
	a.j.event("approve", d.call.cmd)
	if a.cfg.Agent == Codex {
		a.block(blockApproved, d.call.cmd)
	}
	a.set(working)
	d.approved <- struct{}{}
}
