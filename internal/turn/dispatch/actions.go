package dispatch

import (
	"maps"
	"time"

	"github.com/agent-knock-knock/akk/internal/discover"
	"github.com/agent-knock-knock/akk/internal/outbox/outboxsql"
	"github.com/agent-knock-knock/akk/internal/turn"
	"github.com/agent-knock-knock/akk/internal/turn/turnsql"
)

// Action is one tool call that is possible now, with its arguments filled in.
type Action struct {
	Tool            string         `json:"tool"`
	Arguments       map[string]any `json:"arguments"`
	MissingRequired []string       `json:"missing_required,omitempty"`
	// NeedsIntent: only when a person wants exactly this.
	NeedsIntent bool `json:"requires_user_intent,omitempty"`
	// NeedsPerson: a model must ask before it calls this.
	NeedsPerson bool `json:"requires_explicit_user_confirmation,omitempty"`
}

// The names of the tools that results point to.
const (
	toolStatus = "agent_knock_knock_status"
	toolSend   = "agent_knock_knock_send"
	toolCancel = "agent_knock_knock_cancel"
	toolRenew  = "agent_knock_knock_renew"
	toolRetry  = "agent_knock_knock_retry_callback"
	toolClose  = "agent_knock_knock_close"
)

// mayAct reports whether this process may change a Turn at all: the Store takes writes, the
// record can be read, and no other living Bridge owns it.
func (s *Service) mayAct(row turnsql.Row) bool {
	if !s.DB.Writable() || row.Damaged != nil {
		return false
	}
	if row.Owner == s.Bridge {
		return true
	}
	alive, err := s.DB.Alive(row.Owner)
	return err == nil && !alive
}

// turnActions is what can be done with a Turn now. term is its terminal as it is seen now,
// nil when it is not; then only what needs no terminal is offered.
func (s *Service) turnActions(row turnsql.Row, term *discover.Terminal, sent outboxsql.Brief, now time.Time) map[string]Action {
	t := row.Turn
	args := map[string]any{"turn_id": t.ID}
	actions := map[string]Action{"status": {Tool: toolStatus, Arguments: args}}
	if !s.mayAct(row) {
		return actions
	}
	if sent.Retryable && s.Callbacks != nil {
		actions["retry_callback"] = Action{Tool: toolRetry, Arguments: args}
	}
	moved := term != nil && movedAway(t, *term)
	switch {
	case !t.Status.Blocking():
	case moved: // closing is a decision of its own, see decideHandoff
	case t.Status != turn.Created:
		actions["close"] = Action{Tool: toolClose, Arguments: args, NeedsPerson: true}
	case s.cutOff(t):
		actions["close"] = Action{Tool: toolClose, Arguments: map[string]any{"turn_id": t.ID, "expected_message_id": t.MessageID}, NeedsPerson: true}
	}
	if term == nil || moved || term.Key() != t.TerminalKey() || term.Conflict != "" {
		return actions
	}
	maps.Copy(actions, s.answerActions(t))
	maps.Copy(actions, s.respondActions(t, *term))
	if turn.CanRespond(t) == nil && discover.Ready(*term) == nil {
		actions["respond"] = Action{Tool: toolRespond, Arguments: args, MissingRequired: []string{"request"}}
	}
	if turn.CanRenew(t, now) == nil {
		actions["renew"] = Action{Tool: toolRenew, Arguments: args, NeedsIntent: true}
	}
	if turn.CanCancel(t) == nil {
		if _, err := stoppable(t, term.Native, term.Screen, term.Pane.InMode); err == nil {
			actions["cancel"] = Action{Tool: toolCancel, Arguments: args, NeedsIntent: true}
		}
	}
	return actions
}
