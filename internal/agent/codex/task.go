package codex

import (
	"context"
	"fmt"
	"strings"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/agent/codex/rollout"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/turn"
)

var _ agent.TaskFinder = (*Adapter)(nil)

// CurrentTask finds the native turn that began last in the thread's rollout and has no
// end. Follow takes the record at its anchor, the turn's beginning, for the task.
func (a *Adapter) CurrentTask(ctx context.Context, ref agent.Ref, n agent.Native) (agent.Task, error) {
	const op = "codex.task"
	if n.Thread != agent.ThreadResolved {
		return agent.Task{}, fault.New(fault.Unavailable, op, "the agent's thread is not known: %s", n.Reason)
	}
	anc, err := a.Anchor(ctx, ref, n, "", "")
	if err != nil {
		return agent.Task{}, err
	}
	if anc.Log == nil {
		return agent.Task{}, fault.New(agent.CodeNoTask, op, "the thread has no rollout yet")
	}
	tail, err := rollout.OpenTail(*anc.Log)
	if err != nil {
		return agent.Task{}, err
	}
	defer tail.Close()
	var began, prompt *rollout.Record
	ended := false
	err = tail.Drain(func() bool { return ctx.Err() != nil }, func(line []byte, _ turn.LogMark) bool {
		r, err := rollout.Parse(line)
		switch {
		case err != nil:
		case began == nil: // the first record of the anchor is the turn's beginning
			if ended = r.Kind != rollout.Started; !ended {
				began = &r
			}
		case r.Kind == rollout.User && prompt == nil:
			prompt = &r
		case r.Kind == rollout.Complete, r.Kind == rollout.Aborted, r.Kind == rollout.Started:
			ended = r.TurnID == began.TurnID || r.Kind == rollout.Started
		}
		return !ended
	})
	switch {
	case err != nil:
		return agent.Task{}, err
	case ctx.Err() != nil:
		return agent.Task{}, fault.Wrap(ctx.Err(), fault.Timeout, op, "the rollout could not be read in time")
	case began == nil || ended:
		return agent.Task{}, fault.New(agent.CodeNoTask, op, "the rollout shows no turn that runs now")
	}
	if prompt != nil {
		anc.RequestHash = ids.TextHash(prompt.Text)
		anc.Extra[extraHash] = ids.TextHash(normalise(prompt.Text))
	}
	turnID := began.TurnID
	if turnID == "" { // 0.98 names no turns
		turnID = fmt.Sprintf("at %d", anc.Log.Offset)
	}
	return agent.Task{Anchor: anc, Key: strings.Join([]string{Kind, anc.ThreadID, turnID}, "|")}, nil
}
