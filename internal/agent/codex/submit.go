package codex

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/agent/codex/appserver"
	"github.com/agent-knock-knock/akk/internal/agent/codex/known"
	"github.com/agent-knock-knock/akk/internal/agent/codex/rollout"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/turn"
)

// replayWait is how long an open request may take to be replayed; the server sends it
// right after its answer to thread/resume.
const replayWait = 2 * time.Second

func asRPC(err error, target **appserver.Error) bool { return errors.As(err, target) }

// Submit starts a turn on the thread's server with clientID as the message's own id. The
// thread must be idle: a turn/start while a turn runs would join that turn (seen on
// 0.171), so the status is read on the same connection immediately before.
//
// Until the request is written every error is [agent.NotSubmitted]; so is an answer that
// refuses it as invalid. After that an error is [CodeInputUncertain]: nobody may send the
// text again.
func (a *Adapter) Submit(ctx context.Context, ref agent.Ref, anc turn.Anchor, clientID, text string) (agent.Submission, error) {
	const op = "codex.submit"
	not := func(err error, format string, args ...any) (agent.Submission, error) {
		if err == nil {
			return agent.Submission{}, fault.New(agent.NotSubmitted, op, format, args...)
		}
		return agent.Submission{}, fault.Wrap(err, agent.NotSubmitted, op, format, args...)
	}
	socket := anc.Extra[extraSocket]
	if socket == "" || anc.ThreadID == "" {
		return not(nil, "the agent has no server or its thread is not known")
	}
	dctx, cancel := context.WithTimeout(ctx, appserver.ConnectTimeout)
	defer cancel()
	s, err := appserver.Dial(dctx, socket)
	if err != nil {
		return not(err, "the agent's server does not answer")
	}
	defer s.Close()
	info, err := s.ReadThread(ctx, anc.ThreadID)
	if err != nil {
		return not(err, "the agent's server does not know the thread")
	}
	switch info.Status.Type {
	case known.StatusIdle, known.StatusFailed:
	case known.StatusActive:
		return not(nil, "the thread is busy; a message now would join the running turn")
	default:
		return not(nil, "the thread is %s on its server", firstOf(info.Status.Type, "in an unknown state"))
	}
	if ctx.Err() != nil {
		return not(ctx.Err(), "the time for submitting ran out")
	}
	var got struct {
		Turn struct {
			ID string `json:"id"`
		} `json:"turn"`
	}
	err = s.Call(ctx, known.MTurnStart, map[string]any{
		"threadId": anc.ThreadID, "clientUserMessageId": clientID,
		"input": []map[string]any{{"type": "text", "text": normalise(text)}},
	}, &got)
	if rpc := (*appserver.Error)(nil); errors.As(err, &rpc) && rpc.Refused() {
		return not(err, "the agent's server refuses the request: %s", rollout.OneLine(rpc.Message))
	}
	if err != nil {
		return agent.Submission{}, fault.Wrap(err, CodeInputUncertain, op, "the request was sent and no answer came").
			WithHint("do not send it again; watch the turn")
	}
	return agent.Submission{ThreadID: anc.ThreadID, NativeTurnID: got.Turn.ID}, nil
}

// Answer gives decision to the request with requestID that the thread's server waits on,
// as in Prompt.RequestID and the Key of one of its options. The server replays open
// requests to a new connection, so none has to be kept (seen on 0.171); a request that is
// not replayed within appserver.CallTimeout was answered meanwhile: [fault.NotFound], nothing sent.
// If prompt fingerprints are compared, the caller does it before. After the answer may
// have been written an error is [CodeInputUncertain].
func (a *Adapter) Answer(ctx context.Context, ref agent.Ref, anc turn.Anchor, p turn.Prompt, decision string) error {
	const op = "codex.answer"
	socket := anc.Extra[extraSocket]
	offered := false
	for _, o := range p.Options {
		offered = offered || o.Key == decision && decision != ""
	}
	if socket == "" || anc.ThreadID == "" || p.RequestID == "" || !offered {
		return fault.New(fault.Invalid, op, "the prompt has no answer %q on a server", decision)
	}
	dctx, cancel := context.WithTimeout(ctx, appserver.ConnectTimeout)
	defer cancel()
	s, err := appserver.Dial(dctx, socket)
	if err != nil {
		return fault.Wrap(err, agent.NotSubmitted, op, "the agent's server does not answer")
	}
	defer s.Close()
	var same, resolved bool
	var result json.RawMessage
	s.Other = func(m appserver.Message) {
		var q params
		_ = json.Unmarshal(m.Params, &q) // a appserver.Message of another form is none of ours
		switch {
		case m.Method == known.NResolved && string(q.RequestID) == p.RequestID:
			resolved = true
		case string(m.ID) == p.RequestID && known.ServerRequests[m.Method].Title != "":
			req := known.ServerRequests[m.Method]
			var err error
			result, err = answerTo(m, req, decision)
			same = err == nil && requestPrompt(ref.Endpoint, m, req).Fingerprint == p.Fingerprint
		}
	}
	wait := func(ctx context.Context, done *bool) error {
		for !*done {
			m, err := s.Recv(ctx)
			if err != nil {
				return err
			}
			s.Other(m)
		}
		return nil
	}
	if err := s.Call(ctx, known.MThreadResume, map[string]any{"threadId": anc.ThreadID, "excludeTurns": true}, nil); err != nil {
		return fault.Wrap(err, agent.NotSubmitted, op, "the agent's server does not let us see the thread")
	}
	wctx, stop := context.WithTimeout(ctx, replayWait)
	err = wait(wctx, &same)
	stop()
	if err != nil {
		return fault.Wrap(err, fault.NotFound, op, "the request is not open any more, or is another one").WithHint("list again")
	}
	wctx, stop = context.WithTimeout(ctx, appserver.CallTimeout)
	defer stop()
	if err = s.Send(wctx, appserver.Message{ID: json.RawMessage(p.RequestID), Result: result}); err == nil {
		err = wait(wctx, &resolved)
	}
	if err != nil {
		return fault.Wrap(err, CodeInputUncertain, op, "the answer was sent and not confirmed").WithHint("look at the terminal before answering again")
	}
	return nil
}
