package dispatch

import (
	"context"
	"strings"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/discover"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/native/nativesql"
	"github.com/agent-knock-knock/akk/internal/outbox/outboxsql"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/tmux"
	"github.com/agent-knock-knock/akk/internal/turn"
	"github.com/agent-knock-knock/akk/internal/turn/turnsql"
)

const toolRespond = "agent_knock_knock_respond"

// RespondInput is an answer, in words, to what a completed Turn asked.
type RespondInput struct {
	CallID  string
	TurnID  ids.TurnID
	Request string
	// Reserved, when set, is called once the round is durable: later reads show it.
	Reserved func()
}

// Respond continues a completed Turn with an answer. It never opens another Turn. An error
// means that nothing reached the agent and the Turn stands as it was completed; every
// outcome after a possible input is a result whose Turn says how far the proof goes.
func (s *Service) Respond(ctx context.Context, in RespondInput) (SendResult, error) {
	started := s.Clock.Now()
	in.Request = strings.ReplaceAll(in.Request, "\r\n", "\n")
	if err := turn.CheckText(in.Request); err != nil {
		return SendResult{}, err
	}
	if err := tmux.ValidateText([]byte(in.Request), turn.MaxRequest); err != nil {
		return SendResult{}, err
	}
	call := turnsql.Call{Key: in.CallID, TurnID: in.TurnID, Tool: "respond", RequestHash: ids.TextHash(in.Request)}
	if r, ok, err := s.replayCall(ctx, call); err != nil || ok {
		return r, err
	}
	if err := s.CheckProfile(); err != nil {
		return SendResult{}, err
	}
	if err := s.DB.CheckWritable(); err != nil {
		return SendResult{}, err
	}
	t, err := s.get(ctx, in.TurnID)
	if err != nil {
		return SendResult{}, err
	}
	if err := turn.CanRespond(t); err != nil {
		return SendResult{}, err
	}
	term, err := s.sameThread(ctx, t)
	if err != nil {
		return SendResult{}, err
	}
	if err := discover.Ready(term); err != nil {
		return SendResult{}, s.nameHolder(ctx, term, err)
	}
	if err := s.release(ctx, t.ID); err != nil { // of a Bridge that ended
		return SendResult{}, err
	}
	sub, err := s.reserveRound(ctx, in, call, t, term)
	defer sub.end()
	if err != nil {
		return SendResult{}, err
	}
	if in.Reserved != nil {
		in.Reserved()
	}
	if t, err = s.submit(ctx, sub); err != nil {
		return SendResult{}, err
	}
	wait := min(acceptWait, answerLimit-s.Clock.Now().Sub(started))
	return SendResult{Turn: s.awaitAcceptance(ctx, t, wait)}, nil
}

// sameThread finds the Turn's terminal: the very process, showing the very thread. An
// answer in another conversation would be a task without its context.
func (s *Service) sameThread(ctx context.Context, t turn.Turn) (discover.Terminal, error) {
	term, err := s.terminalOf(ctx, t)
	if err != nil {
		return term, err
	}
	if term.Native.Thread != agent.ThreadResolved || term.Native.ThreadID != t.ThreadID {
		return term, fault.New(turn.CodeTerminal, "dispatch.respond", "%s does not provably show the thread of turn %s any more", term.ID, t.ID).
			WithHint("nothing was typed; send a new task to follow the thread in the foreground")
	}
	return term, nil
}

// reserveRound makes the round durable and keeps the terminal again.
func (s *Service) reserveRound(ctx context.Context, in RespondInput, call turnsql.Call, t turn.Turn, term discover.Terminal) (submission, error) {
	sub := submission{term: term, pasted: in.Request, end: func() {}}
	if term.Native.Channel == turn.ChannelKeyboard {
		var err error
		if sub.pasted, err = term.Adapter.Literal(in.Request); err != nil {
			return sub, err
		}
	}
	message := ids.DeriveMessage("respond", in.CallID)
	anchor, err := term.Adapter.Anchor(ctx, term.Ref, term.Native, sub.pasted, string(message))
	if err != nil {
		return sub, fault.Wrap(err, turn.CodeTerminal, "dispatch.respond", "the agent's records cannot be anchored").WithHint("look at the agent's data directory")
	}
	sub.end = s.begin(t.ID) // before the commit: a sweep must not take it for cut off
	err = s.DB.Update(ctx, func(tx *store.Tx) error {
		if err := nativesql.CheckFree(tx, term.Key()); err != nil {
			return err // its thread is being changed
		}
		row, err := turnsql.Get(tx, t.ID)
		if err != nil {
			return err
		}
		if row.Owner != s.Bridge {
			return fault.New(fault.Conflict, "dispatch.respond", "turn %s belongs to another Bridge that runs", t.ID).WithHint("respond there, or end that Bridge first")
		}
		routeID, err := outboxsql.PutRoute(tx, s.Route)
		if err != nil {
			return err
		}
		plan, err := turn.ReserveRound(row.Turn, turn.Round{Message: message, Route: routeID, Origin: s.Bridge, Channel: term.Native.Channel,
			AgentVersion: term.Native.Version, Mode: term.Native.Mode, RequestHash: call.RequestHash, RequestBytes: len(in.Request), Anchor: anchor}, tx.Now)
		if err != nil {
			return err
		}
		sub.turn = plan.Turn
		if err := turnsql.Reopen(tx, row, plan); err != nil {
			return err
		}
		return turnsql.PutCall(tx, call)
	})
	return sub, err
}

// replayCall answers a repeated call from the record of the first one.
func (s *Service) replayCall(ctx context.Context, call turnsql.Call) (r SendResult, found bool, err error) {
	err = s.DB.View(ctx, func(tx *store.Tx) error {
		before, ok, err := turnsql.GetCall(tx, call.Key)
		if err != nil || !ok {
			return err
		}
		if before.Tool != call.Tool || before.RequestHash != call.RequestHash || call.TurnID != "" && before.TurnID != call.TurnID {
			return fault.New(turn.CodeReplay, "dispatch.replay", "this call id was used for another request").WithHint("use a new call for a new request")
		}
		row, err := turnsql.Get(tx, before.TurnID)
		r, found = SendResult{Turn: row.Turn, Replayed: true}, err == nil
		return err
	})
	return r, found, err
}

// respondActions is the answer that a completed Turn takes, while its terminal shows its
// thread and is ready.
func (s *Service) respondActions(t turn.Turn, term discover.Terminal) map[string]Action {
	out := map[string]Action{}
	if turn.CanRespond(t) == nil && term.Native.Thread == agent.ThreadResolved && term.Native.ThreadID == t.ThreadID && discover.Ready(term) == nil && s.DB.Writable() {
		out["respond"] = Action{Tool: toolRespond, Arguments: map[string]any{"turn_id": t.ID}, MissingRequired: []string{"request"}}
	}
	return out
}
