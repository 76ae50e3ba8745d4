package harnesstools

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/agent-knock-knock/akk/internal/harness"
	"github.com/agent-knock-knock/akk/internal/harness/client"
	"github.com/agent-knock-knock/akk/internal/toolkit"
)

func authenticate(r *toolkit.Registry, s *service) {
	t := spec(toolkit.Spec{
		Name:  "authenticate",
		Title: "Log the agent in",
		Description: "Start or resume the login of a session's agent. The user is asked to choose a method and for each further step; you never choose or enter anything for them. " +
			"ready means logged in: go on with send_message. With waiting_input, show the questions to the user, call answer_question without message_id, then authenticate again. " +
			"A page that was opened is not yet a login. authentication_rate_limited says when to try again.",
		Effect: toolkit.Mutating, OpenWorld: true,
	})
	t.Detach = true
	toolkit.Register(r, t, func(ctx context.Context, call toolkit.Call, in params) (any, error) {
		p, err := in.trimmed("session_id")
		if err != nil {
			return nil, err
		}
		l := &login{s: s, session: p.text("session_id")}
		if call.Resumed != nil {
			th, err := s.unseal(call.Resumed.State, t.Name, l.session)
			if err != nil {
				return nil, err
			}
			first, err := s.resume(ctx, call, l, th)
			if err != nil {
				return l.end(ctx, nil, err)
			}
			out, err := s.followLogin(ctx, call, l, nil, first)
			return l.end(ctx, out, err)
		}
		raw, err := s.gate.call(ctx, "authenticate", p, 0)
		if err != nil {
			return nil, err
		}
		out, err := s.followLogin(ctx, call, l, raw, handled{})
		return l.end(ctx, out, err)
	})
}

// login is the login of one session.
type login struct {
	s       *service
	session string
}

func (l *login) thread() thread { return thread{Tool: "authenticate", SessionID: l.session} }
func (l *login) then() string   { return "authenticate" }

func (l *login) look(ctx context.Context, _ time.Duration) (progress, error) {
	raw, err := l.s.gate.call(ctx, "auth_status", map[string]any{"session_id": l.session}, 0)
	if err != nil {
		return progress{}, err
	}
	return readLogin(raw)
}

// ends are the states of a login that do not change by themselves. none is one: a server
// forgets a login that is over.
var ends = []string{"none", string(harness.AuthReady), string(harness.AuthStateFailed), string(harness.AuthCancelled), string(harness.AuthLimited), string(harness.AuthStateTimedOut)}

func readLogin(raw json.RawMessage) (progress, error) {
	p := progress{raw: raw}
	if err := json.Unmarshal(raw, &p); err != nil {
		return progress{}, harness.Fail(err, client.InvalidReply, "the status of the login has another form")
	}
	p.Terminal = slices.Contains(ends, p.State)
	return p, nil
}

// followLogin asks every question of a login and waits for its end. started is the first
// status, when it is known.
func (s *service) followLogin(ctx context.Context, call toolkit.Call, l *login, started json.RawMessage, h handled) (any, error) {
	poll := s.newPoll()
	poll.long = false // auth_status does not wait
	poll.answered[h.settled] = true
	for {
		var p progress
		var err error
		if started != nil {
			p, err = readLogin(started)
			started = nil
		} else {
			p, err = poll.look(ctx, l, 0)
		}
		if err != nil {
			return nil, err
		}
		switch {
		case p.Terminal:
			return loginEnd(p)
		case h.inline != nil:
			return *h.inline, nil
		case h.waiting != "" && len(p.Questions) > 0:
			return waitingResult(p, l, h.waiting)
		}
		if h, err = s.attend(ctx, call, l, p, poll); err != nil {
			return nil, err
		}
	}
}

// loginEnd is the result of a login that is over.
func loginEnd(p progress) (any, error) {
	switch p.State {
	case string(harness.AuthLimited):
		var d harness.Detail
		_ = json.Unmarshal(p.raw, &d) // it was read as an object before
		return nil, harness.Refuse(harness.AuthRateLimited, "too many logins were tried").Advise("wait for retry_after_seconds").With(d)
	case string(harness.AuthStateFailed), string(harness.AuthStateTimedOut):
		return toolkit.Verdict{Value: p.raw, Failed: true}, nil
	}
	return p.raw, nil
}

// end leaves a login alone whose call was taken back.
func (l *login) end(ctx context.Context, out any, err error) (any, error) {
	if err != nil && errors.Is(context.Cause(ctx), toolkit.ErrEnded) {
		return map[string]any{"session_id": l.session, "state": "running", "next_action": map[string]string{"tool": "authenticate"}}, nil
	}
	return out, err
}
