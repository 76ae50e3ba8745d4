package harnesstools

import (
	"context"

	"github.com/agent-knock-knock/akk/internal/toolkit"
)

func wait(r *toolkit.Registry, s *service) {
	t := spec(toolkit.Spec{
		Name:  "wait",
		Title: "Wait for a message that was sent",
		Description: "Wait until a message is done and return the same result as send_message. It never sends anything again, so it is the way to pick a message up " +
			"after an answer_question, a broken call or a restart. Stopping this call leaves the message running.",
		Effect: toolkit.ReadOnly, OpenWorld: true,
	})
	t.Detach = true
	toolkit.Register(r, t, func(ctx context.Context, call toolkit.Call, in params) (any, error) {
		p, err := in.trimmed("session_id", "message_id")
		if err != nil {
			return nil, err
		}
		m := &message{s: s, tool: t.Name, session: p.text("session_id"), id: p.text("message_id")}
		return m.await(ctx, call, false, func() error { return nil })
	})
}
