package nativetools

import (
	"context"

	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/native/threads"
	"github.com/agent-knock-knock/akk/internal/toolkit"
	"github.com/agent-knock-knock/akk/schemas"
)

const reconcileDescription = `Unties one session whose record does not fit what a terminal provably shows: the terminal moved to another thread, or its thread is recorded for another terminal. Only the record changes; nothing is typed, and the session keeps its history.

Needs the reconcile_binding action of a row of agent_knock_knock_list; copy both arguments. A session with an open task is never untied: close or finish the task first. Call agent_knock_knock_list again afterwards.`

type reconcileInput struct {
	TerminalID ids.TerminalID `json:"terminal_id"`
	SessionID  ids.SessionID  `json:"conflicting_session_id"`
}

type reconcileOutput struct {
	Status       string         `json:"status"`
	Outcome      string         `json:"outcome"`
	ConflictKind string         `json:"conflict_kind"`
	TerminalID   ids.TerminalID `json:"terminal_id"`
	SessionID    ids.SessionID  `json:"session_id"`
	BindingID    ids.BindingID  `json:"binding_id"`
	Revision     int64          `json:"session_revision"`
	InputSent    bool           `json:"terminal_input_sent"`
	TurnCreated  bool           `json:"turn_created"`
	Refresh      bool           `json:"refresh_required"`
}

// RegisterReconcileBinding adds the tool.
func RegisterReconcileBinding(r *toolkit.Registry, s *threads.Service) {
	name := prefix + "reconcile_binding"
	toolkit.Register(r, toolkit.Spec{
		Name: name, Title: "AKK Reconcile Binding", Description: reconcileDescription,
		Input: schemas.ToolInput(name), Output: schemas.ToolOutput(name), Effect: toolkit.Mutating,
	}, func(ctx context.Context, _ toolkit.Call, in reconcileInput) (any, error) {
		res, err := s.ReconcileBinding(ctx, threads.ReconcileInput{TerminalID: in.TerminalID, SessionID: in.SessionID})
		if err != nil {
			return nil, err
		}
		return reconcileOutput{Status: "reconciled", Outcome: "detached_conflicting_binding", ConflictKind: res.Kind, TerminalID: in.TerminalID,
			SessionID: res.Session.ID, BindingID: res.Binding, Revision: res.Session.Revision, Refresh: true}, nil
	})
}
