package panels

import (
	"context"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/discover"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/keyboard"
	"github.com/agent-knock-knock/akk/internal/native/nativesql"
	"github.com/agent-knock-knock/akk/internal/store"
)

// session is a terminal that is held for one operation and proved fit for it.
type session struct {
	hold    *keyboard.Hold
	term    discover.Terminal
	panels  agent.Panels
	profile string
	marker  marker
	release func()
}

// need is what an operation asks of a terminal besides being idle.
type need int

const (
	anyThread need = iota
	oneThread      // the native thread must be known
)

// begin proves everything once without a lock, takes the terminal, and proves it again
// under the lock. Its error proves that nothing was typed.
func (s *Service) begin(ctx context.Context, id ids.TerminalID, operation string, n need) (*session, error) {
	seen, err := s.Desk.Finder.Find(ctx, id)
	if err != nil {
		return nil, err
	}
	if _, _, err := s.fit(ctx, seen, n); err != nil {
		return nil, err
	}
	return s.hold(ctx, seen, operation, func(ses *session) (err error) {
		ses.panels, ses.profile, err = s.fit(ctx, ses.term, n)
		return err
	})
}

// hold claims and locks the terminal and lets prove look at it.
func (s *Service) hold(ctx context.Context, seen discover.Terminal, operation string, prove func(*session) error) (*session, error) {
	unclaim, err := s.claim(seen, operation)
	if err != nil {
		return nil, err
	}
	h, err := s.Desk.Take(ctx, seen)
	if err != nil {
		unclaim()
		return nil, err
	}
	ses := &session{hold: h, term: h.Terminal(), marker: s.markerOf(h.Terminal()), release: func() { h.Release(); unclaim() }}
	if err := prove(ses); err != nil {
		ses.release()
		return nil, err
	}
	return ses, nil
}

// fit returns the panels of a terminal that an operation may type into now.
func (s *Service) fit(ctx context.Context, t discover.Terminal, n need) (agent.Panels, string, error) {
	p, profile, err := Fit(t, n == oneThread)
	if err != nil {
		return nil, "", err
	}
	return p, profile, s.free(ctx, t)
}

// free refuses a terminal that a Turn or a Transition keeps.
func (s *Service) free(ctx context.Context, t discover.Terminal) error {
	return s.DB.View(ctx, func(tx *store.Tx) error {
		if err := nativesql.CheckNoTurn(tx, t.Key()); err != nil {
			return err
		}
		return nativesql.CheckFree(tx, t.Key())
	})
}

// Fit reports whether the evidence of t allows to open a panel, and with which data. The
// error has a diagnostic for its code. Pure.
func Fit(t discover.Terminal, thread bool) (agent.Panels, string, error) {
	const op = "panels.fit"
	refuse := func(code fault.Code, hint, format string, args ...any) (agent.Panels, string, error) {
		return nil, "", fault.New(code, op, format, args...).WithHint("nothing was typed; %s", hint)
	}
	p, ok := t.Adapter.(agent.Panels)
	if !ok {
		return refuse(CapabilityUnavailable, "look at the pane", "the panels of %s are not known", t.Adapter.Kind())
	}
	if t.Conflict != "" {
		return refuse(IdentityUnverified, t.Remedy, "%s is ambiguous: %s", t.ID, t.Conflict)
	}
	profile, err := p.PanelProfile(t.Native.Version)
	if err != nil {
		return nil, "", err
	}
	if t.Pane.Dead || t.Pane.InMode {
		return refuse(ComposerNotReady, "leave the mode with q, or start the agent again", "the pane of %s is dead or scrolled back", t.ID)
	}
	if state, reason := discover.Combine(t.Native, t.Screen); state != discover.Idle {
		return refuse(ComposerNotReady, "call agent_knock_knock_list and wait until it is idle", "%s is %s: %s", t.ID, state, reason)
	}
	if t.Screen.Composer != agent.ComposerEmpty {
		return refuse(ComposerNotReady, "let the human send or clear it", "the composer of %s is not empty (%s)", t.ID, t.Screen.Composer)
	}
	if t.Pane.Width <= 0 {
		return refuse(ViewportUnavailable, "look at the pane", "the width of %s is not known", t.ID)
	}
	if t.Pane.Width < p.PanelWidth() {
		return refuse(ViewportTooNarrow, "make the pane wider", "%s has %d columns; its panels need %d", t.ID, t.Pane.Width, p.PanelWidth())
	}
	if thread && t.Native.Thread != agent.ThreadResolved {
		return refuse(IdentityUnverified, "send a task first, or call agent_knock_knock_native_inspect", "it is not known which thread %s shows: %s", t.ID, t.Native.Reason)
	}
	return p, profile, nil
}
