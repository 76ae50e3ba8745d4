package harnesstools

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/harness"
	"github.com/agent-knock-knock/akk/internal/harness/client"
	"github.com/agent-knock-knock/akk/internal/toolkit"
)

// cancelLimit bounds the cancel of a message whose call the Host took back.
const cancelLimit = 30 * time.Second

// message is one message that a call waits for.
type message struct {
	s           *service
	tool        string
	session, id string
}

func (m *message) thread() thread {
	return thread{Tool: m.tool, SessionID: m.session, MessageID: m.id}
}

func (m *message) then() string { return "wait" }

// look reads the status; the server may keep the answer back for wait, until something
// changes.
func (m *message) look(ctx context.Context, wait time.Duration) (progress, error) {
	in := map[string]any{"session_id": m.session, "message_id": m.id}
	if wait > 0 {
		in["wait_ms"] = wait.Milliseconds()
	}
	raw, err := m.s.gate.call(ctx, "message_status", in, wait)
	if err != nil {
		return progress{}, err
	}
	p := progress{raw: raw}
	if err := json.Unmarshal(raw, &p); err != nil {
		return progress{}, harness.Fail(err, client.InvalidReply, "the status of the message has another form")
	}
	return p, nil
}

// follow waits until the message is terminal, and answers its questions through the Host.
// first is what became of a question before; it counts once.
func (s *service) follow(ctx context.Context, call toolkit.Call, m *message, first handled) (any, error) {
	poll := s.newPoll()
	poll.answered[first.settled] = true
	h := first
	for {
		wait := poll.longest()
		if h.waiting != "" || h.inline != nil {
			wait = 0
		}
		p, err := poll.look(ctx, m, wait)
		if err != nil {
			return nil, err
		}
		switch {
		case p.Terminal:
			return toolkit.Verdict{Value: p.raw, Failed: p.State == string(harness.MessageFailed)}, nil
		case h.inline != nil:
			return *h.inline, nil
		case h.waiting != "" && len(p.Questions) > 0:
			return waitingResult(p, m, h.waiting)
		}
		if h, err = s.attend(ctx, call, m, p, poll); err != nil {
			return nil, err
		}
	}
}

// attend handles the first question that is new, or waits for the next look.
func (s *service) attend(ctx context.Context, call toolkit.Call, a asker, p progress, poll *poll) (handled, error) {
	for _, q := range p.Questions {
		if poll.answered[q.ID] {
			continue // the server has not noticed yet; nobody is asked twice
		}
		h, err := s.handle(ctx, call, a, q)
		if err == nil && h == (handled{}) {
			poll.answered[q.ID] = true
			poll.next = s.pace.FirstPoll // something has just changed
		}
		return h, err
	}
	if poll.long && len(p.Questions) == 0 {
		return handled{}, nil // the server waits
	}
	wait := poll.next
	if !poll.long {
		poll.next = min(poll.next*3/2, s.pace.LastPoll)
	}
	return handled{}, sleep(ctx, wait)
}

// detached is the result of a call whose session ended: the message goes on.
func (m *message) detached(ctx context.Context) (any, error) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer stop()
	out := map[string]json.RawMessage{"session_id": quote(m.session), "message_id": quote(m.id), "state": quote(string(harness.MessageRunning)), "terminal": json.RawMessage("false")}
	if p, err := m.look(ctx, 0); err == nil {
		if p.Terminal {
			return toolkit.Verdict{Value: p.raw, Failed: p.State == string(harness.MessageFailed)}, nil
		}
		_ = json.Unmarshal(p.raw, &out) // it was read as an object before
	}
	out["next_action"] = json.RawMessage(`{"tool":"wait"}`)
	return out, nil
}

// cancelRemote cancels a message whose call was taken back, best effort.
func (m *message) cancelRemote(ctx context.Context) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), cancelLimit)
	defer stop()
	if _, err := m.s.gate.call(ctx, "cancel_message", map[string]any{"session_id": m.session, "message_id": m.id}, 0); err != nil {
		m.s.options.Log.Warn("a message whose call was taken back could not be cancelled", "session", m.session, "message", m.id, "code", fault.CodeOf(err))
	}
}

// poll is the rhythm of looking at a server.
type poll struct {
	s     *service
	next  time.Duration
	pid   int
	long  bool // the server knows wait_ms
	tries int
	// answered are the questions whose answer was sent, or that had gone.
	answered map[string]bool
}

func (s *service) newPoll() *poll {
	p := &poll{s: s, next: s.pace.FirstPoll, answered: map[string]bool{}}
	if f := s.gate.found.Load(); f != nil {
		p.pid = f.PID
	}
	p.long = slices.Contains(s.gate.features(), "wait_ms")
	return p
}

func (p *poll) longest() time.Duration {
	if p.long {
		return p.s.pace.LongPoll
	}
	return 0
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// look looks, and looks again when the request was lost while the same server lives: a look
// changes nothing.
func (p *poll) look(ctx context.Context, a asker, wait time.Duration) (progress, error) {
	for {
		got, err := a.look(ctx, wait)
		if err == nil {
			p.tries = 0
			return got, nil
		}
		if ctx.Err() != nil {
			return progress{}, context.Cause(ctx)
		}
		code := fault.CodeOf(err)
		if code == harness.InvalidParam && wait > 0 || code == harness.UnknownParam && wait > 0 {
			p.long, wait = false, 0 // the server does not know wait_ms after all
			continue
		}
		if code != client.HTTPTimeout && code != client.ServerUnreachable {
			return progress{}, err
		}
		if p.tries++; p.tries > p.s.pace.Tries {
			return progress{}, p.lost(a, err)
		}
		if err := sleep(ctx, min(p.s.pace.FirstPoll<<(p.tries-1), 8*p.s.pace.FirstPoll)); err != nil {
			return progress{}, err
		}
		found, findErr := p.s.gate.find(ctx, true)
		if findErr != nil && !errors.Is(findErr, context.Canceled) && ctx.Err() == nil {
			return progress{}, p.lost(a, findErr)
		}
		if findErr == nil && p.pid != 0 && found.PID != p.pid {
			p.pid = found.PID // another server: its records say what became of the work
		}
	}
}

// lost says how to go on when the server cannot be reached.
func (p *poll) lost(a asker, err error) error {
	t := a.thread()
	d := harness.Detail{"session_id": t.SessionID, "next_action": a.then()}
	if t.MessageID != "" {
		d["message_id"] = t.MessageID
	}
	return harness.Fail(err, client.ServerUnreachable, "the server stopped answering while this call waited; what it runs may go on").
		Advise("call %s to look again", a.then()).With(d)
}
