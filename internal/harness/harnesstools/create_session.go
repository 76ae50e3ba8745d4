package harnesstools

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"maps"
	"time"

	"github.com/agent-knock-knock/akk/internal/harness"
	"github.com/agent-knock-knock/akk/internal/harness/client"
	"github.com/agent-knock-knock/akk/internal/harness/config"
	"github.com/agent-knock-knock/akk/internal/toolkit"
)

// createSlack is what a caller waits beyond the server's own bound of a start: an agent that
// did not start in time is ended before the server answers, which takes up to 10 s.
const createSlack = 15 * time.Second

// createWait is how long a server may keep back the answer to create_session: the sum by
// which the server bounds a start (begin, in package sessions), and the slack. A proxy does
// not know the configuration of the server that it finds, so the defaults count; the time
// limit of a request comes on top and covers a somewhat slower server.
func createWait() time.Duration {
	t := config.Default("").Transport // no path is used
	return t.StartupTimeoutSeconds.Duration() + 2*t.SessionTimeoutSeconds.Duration() + t.OptionTimeoutSeconds.Duration() + createSlack
}

func createSession(r *toolkit.Registry, s *service) {
	t := spec(toolkit.Spec{
		Name:  "create_session",
		Title: "Start a headless agent",
		Description: "Start an agent for one conversation and return its session_id. Needs model_id and cwd; a template is never referred to, its fields are passed one by one " +
			"(see search_template). On authentication_required the session lives: call authenticate with the session_id of the detail, then go on. " +
			"After interrupted or session_failed pass the resume_session_id of the detail to go on with the same conversation. " +
			"Close the session with close_session when you are done.",
		Effect: toolkit.Mutating, OpenWorld: true,
	})
	toolkit.Register(r, t, func(ctx context.Context, _ toolkit.Call, in params) (any, error) {
		p, err := in.trimmed("model_id", "cwd")
		if err != nil {
			return nil, err
		}
		return s.create(ctx, p)
	})
}

// create starts a session. It never repeats a start whose reply was lost.
func (s *service) create(ctx context.Context, p params) (any, error) {
	if _, err := s.gate.find(ctx, false); err != nil {
		return nil, err
	}
	p = s.named(p)
	raw, err := s.gate.call(ctx, "create_session", p, createWait())
	if unclear(err) {
		return nil, lostCreate(p, err)
	}
	return raw, err
}

// named gives the session an id when the caller gave none: only who knows it can look for a
// session whose reply was lost. An idempotency key finds it too, and may stand for an
// earlier session with another id. A server without features of ours may not know the
// parameter.
func (s *service) named(p params) params {
	if p["session_id"] != nil || p["idempotency_key"] != nil || len(s.gate.features()) == 0 {
		return p
	}
	out := maps.Clone(p)
	out["session_id"] = quote(newSessionID(time.Now()))
	return out
}

// newSessionID has the form of the server's own ids.
func newSessionID(now time.Time) string {
	b := make([]byte, 4)
	_, _ = rand.Read(b) // it does not fail
	return now.UTC().Format(time.DateOnly) + "-" + hex.EncodeToString(b)
}

// lostCreate says how to find out what became of a session.
func lostCreate(p params, err error) error {
	e := harness.Fail(err, client.SubmissionUnknown, "it is not known whether the session was created")
	switch {
	case p["idempotency_key"] != nil:
		return e.Advise("repeat the same call with the same idempotency_key: it never creates a second session").
			With(harness.Detail{"next_action": "create_session"})
	case p["session_id"] != nil:
		return e.Advise("call message_status with this session_id and no message_id: unknown_session means that there is none; otherwise use it, or end it with close_session").
			With(harness.Detail{"session_id": p.text("session_id"), "next_action": "message_status"})
	}
	return e.Advise("a session of unknown id may live until it was idle for long; give session_id, or an idempotency_key, when you call again")
}
