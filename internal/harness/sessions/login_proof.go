package sessions

import (
	"errors"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/harness"
)

// unapplied is the refusal of an option by an agent whose session is open: the session is not
// what was asked for, and the login that let it open is one.
type unapplied struct{ error }

func (e unapplied) Unwrap() error { return e.error }

// openedBut marks what went wrong after the session opened. A demand for a login is no mere
// refusal, nor is the end of the agent.
func openedBut(err error) error {
	if err == nil || fault.Is(err, harness.AuthRequired) || fault.Is(err, harness.Transport) {
		return err
	}
	return unapplied{err}
}

// proved reads what became of a login: whether a session opened, and the option that was
// refused then.
func proved(err error) (refused error, opened bool) {
	var u unapplied
	if errors.As(err, &u) {
		return u.error, true
	}
	return nil, err == nil
}

// keepOwn makes the record say what an agent has of itself when it refuses what was asked
// for.
func (l *live) keepOwn(refused *harness.Problem) {
	if refused.Detail["option"] == optionMode {
		l.rec.PermissionMode = harness.ModeAuto // which is what an agent has that was told nothing
	}
	l.refresh()
}

// mended takes a refused option off the record when the agent took another value of it.
func (l *live) mended(c Change) {
	p := l.rec.Problem
	if p == nil || l.rec.State != harness.StateReady {
		return
	}
	option, _ := p.Detail["option"].(string)
	if map[string]string{optionModel: c.ModelID, optionThinking: c.ThinkingLevel, optionMode: c.PermissionMode}[option] == "" {
		return
	}
	l.rec.Problem = nil
	if l.login != nil && l.login.state == harness.AuthReady {
		l.login.problem = nil
	}
}

// needLogin is the refusal of what a session does not do before a login, with the ways to
// log in.
func (l *live) needLogin() error {
	return harness.NeedLogin(l.id).With(harness.Detail{"methods": l.methods()})
}
