package sessions

import (
	"context"
	"time"

	"github.com/agent-knock-knock/akk/internal/harness"
	"github.com/agent-knock-knock/akk/internal/harness/harnesssql"
	"github.com/agent-knock-knock/akk/internal/harness/launch"
	"github.com/agent-knock-knock/akk/internal/store"
)

// takeEnd makes the caller the one who ends the agent. Everybody else waits for ended.
func (l *live) takeEnd() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ending {
		return false
	}
	l.ending = true
	return true
}

// awaitStart waits until nobody starts the session any more. An agent that dies while it
// starts is ended by who starts it.
func (l *live) awaitStart(ctx context.Context) {
	for {
		l.mu.Lock()
		over, changed := l.ending || l.rec.State != harness.StateStarting, l.changed
		l.mu.Unlock()
		if over {
			return
		}
		select {
		case <-changed:
		case <-l.ended:
		case <-ctx.Done():
			return
		}
	}
}

// lose ends a session whose agent is gone or cannot be trusted any more. The message that
// was running fails; what the agent did is not known.
func (l *live) lose(ctx context.Context, p *harness.Problem) {
	if !l.takeEnd() {
		return
	}
	l.haltTerminal()
	exit := l.endAgent(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.Detail == nil {
		p.Detail = harness.Detail{}
	}
	if p.Code == harness.Transport {
		p.Message = "the agent ended"
		p.Detail["exit_code"] = exit.Code
		if exit.Signal != 0 {
			p.Message, p.Detail["signal"] = "the agent was killed", exit.Signal.String()
		}
		if exit.Lost {
			p.Message, p.Detail["lost"] = "the agent was ended because the process that held it was killed", true
		}
	}
	if tail := l.process.StderrTail(); len(tail) > 0 {
		p.Detail["stderr_tail"] = tail
	}
	l.event(harness.EventExited, l.current(), map[string]any{"exit_code": exit.Code, "left": exit.Left}, false)
	if t := l.turn; t != nil {
		l.finish(t, harness.MessageBroken{Problem: *p})
		l.over(t)
	}
	l.dropQuestions("")
	l.endLogin(harness.AuthBroke, p)
	l.moved(harness.SessionLost, p)
	l.conclusion()
}

// close ends a session in order. It returns when nothing of the agent is left.
func (l *live) close(ctx context.Context, why string) {
	if !l.takeEnd() {
		<-l.ended
		return
	}
	l.mu.Lock()
	if l.rec.State == harness.StateStarting { // who starts it sees that it is ending, and cleans up
		if l.starting != nil {
			l.starting()
		}
		l.mu.Unlock()
		<-l.ended
		return
	}
	t := l.turn
	if t != nil {
		l.cancelTurn(t, harness.ReasonSessionClosed, why)
	}
	pid, _ := l.process.Started()
	l.mu.Unlock()
	if t != nil && !stopped(pid) { // who stands still does not stop a turn either
		timer, stop := l.svc.after(l.svc.cfg.Transport.TurnCancelTimeoutSeconds.Duration())
		select {
		case <-t.done:
		case <-timer:
		case <-ctx.Done():
		case <-l.svc.rushed.Done():
		}
		stop()
	}
	l.haltTerminal()
	l.endAgent(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	if t := l.turn; t != nil {
		l.finish(t, harness.MessageDropped{Reason: harness.ReasonSessionClosed, By: why})
		l.over(t)
	}
	l.dropQuestions("")
	end := harness.AuthDeclined
	if why == reasonLogin {
		end = harness.AuthLate
	}
	l.endLogin(end, nil)
	l.moved(harness.SessionClosing, l.rec.Problem)
	l.conclusion()
}

// conclusion stores the end. When that fails the session stays among the live ones, without
// an agent, until the flush loop has stored it.
func (l *live) conclusion() {
	if l.flush() == nil {
		l.svc.forget(l)
	}
	close(l.ended)
}

// endAgent ends the program and everything that it started, then the connection.
func (l *live) endAgent(ctx context.Context) launch.Exit {
	l.mu.Lock()
	process, conn := l.process, l.conn
	l.mu.Unlock()
	// The end of the agent does not end with the caller, but it has a bound of its own, and
	// the server's end may leave it no time.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.svc.cfg.Transport.TerminateGraceSeconds.Duration()+5*time.Second)
	defer cancel()
	defer context.AfterFunc(l.svc.rushed, cancel)()
	if pid, _ := process.Started(); stopped(pid) { // it would use no grace
		cancel()
	}
	exit := process.Close(ctx)
	if conn != nil {
		conn.Close()
	}
	return exit
}

// CloseSession ends a session. Closing one that is closed is fine.
func (s *Service) CloseSession(ctx context.Context, id string) (already bool, err error) {
	if err := harness.CheckSessionID(id); err != nil {
		return false, err
	}
	if l := s.find(id); l != nil {
		l.close(ctx, "close_session")
		return false, nil
	}
	rec, err := s.stored(ctx, id)
	if err != nil || rec.State == harness.StateClosed {
		return err == nil, err
	}
	return false, s.update(func(tx *store.Tx) error { return closeStored(tx, rec.ID) })
}

// closeStored closes a session that has no agent.
func closeStored(tx *store.Tx, id string) error {
	rec, ok, err := harnesssql.Session(tx, id)
	if err != nil || !ok {
		return err
	}
	next, moved := rec.Moved(harness.SessionClosing, rec.Problem, tx.Now)
	if !moved {
		return nil
	}
	w := writer{tx: tx, rec: &next}
	w.event(harness.EventSessionState, "", stateData(next))
	w.session()
	return w.err
}
