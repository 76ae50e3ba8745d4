package codex

import (
	"context"
	"errors"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/agent/codex/appserver"
	"github.com/agent-knock-knock/akk/internal/agent/codex/known"
	"github.com/agent-knock-knock/akk/internal/agent/codex/rollout"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/turn"
)

// Interrupt asks the thread's server to stop exactly the turn with nativeTurnID. A turn
// that is not the running one is not touched: the server compares the id. The status is
// read on the same connection before, so that an idle thread is asked nothing.
//
// An error with [agent.NotSubmitted] proves that the request was not written or was
// refused; every other one is [CodeInputUncertain]. That the turn stopped is not proved by
// the answer, but by the agent's record.
func (a *Adapter) Interrupt(ctx context.Context, _ agent.Ref, anc turn.Anchor, nativeTurnID string) error {
	const op = "codex.interrupt"
	socket := anc.Extra[extraSocket]
	if socket == "" || anc.ThreadID == "" || nativeTurnID == "" {
		return fault.New(agent.NotSubmitted, op, "the agent has no server, or its thread or turn is not known")
	}
	dctx, cancel := context.WithTimeout(ctx, appserver.ConnectTimeout)
	defer cancel()
	s, err := appserver.Dial(dctx, socket)
	if err != nil {
		return fault.Wrap(err, agent.NotSubmitted, op, "the agent's server does not answer")
	}
	defer s.Close()
	info, err := s.ReadThread(ctx, anc.ThreadID)
	if err != nil {
		return fault.Wrap(err, agent.NotSubmitted, op, "the agent's server does not know the thread")
	}
	if info.Status.Type != known.StatusActive {
		return fault.New(agent.NotSubmitted, op, "the thread is %s on its server: nothing runs that could be stopped", firstOf(info.Status.Type, "in an unknown state"))
	}
	if ctx.Err() != nil {
		return fault.Wrap(ctx.Err(), agent.NotSubmitted, op, "the time for stopping ran out")
	}
	err = s.Call(ctx, known.MTurnInterrupt, map[string]any{"threadId": anc.ThreadID, "turnId": nativeTurnID}, nil)
	if rpc := (*appserver.Error)(nil); errors.As(err, &rpc) && rpc.Refused() {
		return fault.Wrap(err, agent.NotSubmitted, op, "the agent's server refuses to stop the turn: %s", rollout.OneLine(rpc.Message))
	}
	if err != nil {
		return fault.Wrap(err, CodeInputUncertain, op, "the request to stop was sent and no answer came").WithHint("look at the terminal; its own record tells whether it stopped")
	}
	return nil
}
