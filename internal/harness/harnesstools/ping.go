package harnesstools

import (
	"context"

	"github.com/agent-knock-knock/akk/internal/toolkit"
)

func ping(r *toolkit.Registry, s *service) {
	toolkit.Register(r, spec(toolkit.Spec{
		Name:  "ping",
		Title: "Is the agent server there",
		Description: "Tell whether the local server of headless agents answers, and how it is: protocol version, pid, uptime, live sessions. " +
			"It is started when it is needed, so no other tool needs this one first.",
		Effect: toolkit.ReadOnly,
	}), func(ctx context.Context, _ toolkit.Call, _ struct{}) (any, error) {
		found, err := s.gate.find(ctx, true)
		if err != nil {
			return nil, err
		}
		return found.Data, nil
	})
}
