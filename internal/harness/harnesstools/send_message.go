package harnesstools

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/agent-knock-knock/akk/internal/harness"
	"github.com/agent-knock-knock/akk/internal/harness/client"
	"github.com/agent-knock-knock/akk/internal/toolkit"
)

func sendMessage(r *toolkit.Registry, s *service) {
	t := spec(toolkit.Spec{
		Name:  "send_message",
		Title: "Give the agent a task and wait for its answer",
		Description: "Send a prompt and wait in this call until the agent is done; result.text is its final answer. It may take many minutes. " +
			"One message at a time: busy means that another one runs. If the state is waiting_input, ask the user, call answer_question, then wait. " +
			"If the call breaks off, call wait with the message_id; do not send the text again. On authentication_required call authenticate.",
		Effect: toolkit.Destructive, OpenWorld: true,
	})
	t.Detach = true
	toolkit.Register(r, t, func(ctx context.Context, call toolkit.Call, in params) (any, error) {
		p, err := in.trimmed("session_id", "text")
		if err != nil {
			return nil, err
		}
		m := &message{s: s, tool: t.Name, session: p.text("session_id")}
		return m.await(ctx, call, true, func() error { return m.submit(ctx, p) })
	})
}

// await begins, or takes up again what the Host was asked in between, and waits for the end
// of the message. cancels says that a call which is taken back cancels it.
func (m *message) await(ctx context.Context, call toolkit.Call, cancels bool, begin func() error) (any, error) {
	first := handled{}
	if call.Resumed != nil {
		th, err := m.s.unseal(call.Resumed.State, m.tool, m.session)
		if err != nil {
			return nil, err
		}
		if m.id != "" && m.id != th.MessageID {
			return nil, harness.Refuse(client.ElicitationFailed, "the request state is of another message; nothing was submitted").Advise("call wait with the message_id alone")
		}
		m.id = th.MessageID
		if first, err = m.s.resume(ctx, call, m, th); err != nil {
			return m.end(ctx, nil, err, cancels)
		}
	} else if err := begin(); err != nil {
		return nil, err
	}
	out, err := m.s.follow(ctx, call, m, first)
	return m.end(ctx, out, err, cancels)
}

// submit posts the message. It is waited for even when the Host takes the call back: only
// with the message's id can it be cancelled.
func (m *message) submit(ctx context.Context, p params) error {
	raw, err := m.s.gate.call(context.WithoutCancel(ctx), "send_message", p, 0)
	switch {
	case err == nil:
	case unclear(err):
		e := harness.Fail(err, client.SubmissionUnknown, "it is not known whether the message was accepted").
			With(harness.Detail{"session_id": m.session, "next_action": "message_status"})
		if p["idempotency_key"] != nil {
			return e.Advise("send the same text with the same idempotency_key: it never runs twice")
		}
		return e.Advise("look with message_status without message_id before you send it again")
	default:
		return err
	}
	var accepted struct {
		MessageID string `json:"message_id"`
	}
	if json.Unmarshal(raw, &accepted) != nil || accepted.MessageID == "" {
		return harness.Refuse(client.SubmissionUnknown, "the server accepted the message without an id").Advise("look with message_status before you send it again")
	}
	m.id = accepted.MessageID
	return nil
}

// end handles a call that the Host took back, or whose session ended.
func (m *message) end(ctx context.Context, out any, err error, cancels bool) (any, error) {
	cause := context.Cause(ctx)
	switch {
	case err == nil || cause == nil:
		return out, err
	case errors.Is(cause, toolkit.ErrEnded):
		return m.detached(ctx)
	case errors.Is(cause, toolkit.ErrCancelled) && cancels:
		m.cancelRemote(ctx)
	}
	return nil, err
}
