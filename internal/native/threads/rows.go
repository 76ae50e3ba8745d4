package threads

import (
	"context"

	"github.com/agent-knock-knock/akk/internal/discover"
	"github.com/agent-knock-knock/akk/internal/native"
	"github.com/agent-knock-knock/akk/internal/native/nativesql"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/turn/dispatch"
)

var (
	_ dispatch.RowSource   = (*Service)(nil)
	_ dispatch.Transitions = (*Service)(nil)
)

// The tools that rows point to.
const (
	toolListThreads = "agent_knock_knock_list_resumable_threads"
	toolNewThread   = "agent_knock_knock_new_thread"
	toolResume      = "agent_knock_knock_resume_thread"
	toolReconcile   = "agent_knock_knock_reconcile_binding"
	toolClose       = "agent_knock_knock_close"
)

// ResumeAction is the call that resumes a row of a listing.
func ResumeAction(term discover.Terminal, row ThreadRow) dispatch.Action {
	return dispatch.Action{Tool: toolResume, Arguments: map[string]any{"terminal_id": term.ID, "native_thread_id": row.Thread.ID}}
}

// Actions offers what can be done with the threads of each terminal now. It reads the
// Store once and remembers the conflicts that it showed.
func (s *Service) Actions(ctx context.Context, seen []dispatch.SeenTerminal) (map[string]map[string]dispatch.Action, error) {
	out := map[string]map[string]dispatch.Action{}
	err := s.DB.View(ctx, func(tx *store.Tx) error {
		open, err := nativesql.Open(tx)
		if err != nil {
			return err
		}
		kept := map[string]native.Transition{}
		for _, row := range open {
			kept[row.Terminal] = row.Transition
		}
		for _, t := range seen {
			key := t.Terminal.Key()
			if tr, ok := kept[key]; ok {
				if tr.Status == native.Uncertain {
					out[key] = map[string]dispatch.Action{"close": {Tool: toolClose, NeedsPerson: true,
						Arguments: map[string]any{"terminal_id": t.Terminal.ID, "expected_transition_id": tr.ID}}}
				}
				continue
			}
			if t.Held != nil || t.State != discover.Idle {
				continue
			}
			actions := map[string]dispatch.Action{}
			if _, err := keeper(t.Terminal); err == nil {
				args := map[string]any{"terminal_id": t.Terminal.ID}
				actions["list_resumable_threads"] = dispatch.Action{Tool: toolListThreads, Arguments: args}
				if typable(t.Terminal) == nil {
					actions["new_thread"] = dispatch.Action{Tool: toolNewThread, Arguments: args}
				}
			}
			c, ok, err := conflictOf(tx, t.Terminal)
			if err != nil {
				return err
			}
			if ok {
				s.conflicts.Put(conflictKey(t.Terminal.ID, c.session), c)
				actions["reconcile_binding"] = dispatch.Action{Tool: toolReconcile,
					Arguments: map[string]any{"terminal_id": t.Terminal.ID, "conflicting_session_id": c.session}}
			}
			if len(actions) > 0 {
				out[key] = actions
			}
		}
		return nil
	})
	return out, err
}
