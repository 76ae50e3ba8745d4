package claude

import (
	"context"
	"strings"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/agent/claude/known"
	"github.com/agent-knock-knock/akk/internal/agent/claude/transcript"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/turn"
)

var _ agent.TaskFinder = (*Adapter)(nil)

// extraTask is the key of the uuid of the prompt that is watched, in Anchor.Extra. With
// it no text is looked for.
const extraTask = "task_prompt"

// CurrentTask finds the last prompt of a person in the thread's transcript whose turn has
// no end. What the program runs for a command of its own has no such prompt.
func (a *Adapter) CurrentTask(ctx context.Context, ref agent.Ref, n agent.Native) (agent.Task, error) {
	const op = "claude.task"
	if n.Thread != agent.ThreadResolved {
		return agent.Task{}, fault.New(fault.Unavailable, op, "the agent's thread is not known: %s", n.Reason)
	}
	anc, err := a.Anchor(ctx, ref, n, "", "")
	if err != nil {
		return agent.Task{}, err
	}
	if anc.Log == nil {
		return agent.Task{}, fault.New(agent.CodeNoTask, op, "the session has no transcript yet")
	}
	t, ok, err := transcript.OpenTask(ctx, anc.Log.Path, n.ThreadID)
	if err != nil {
		return agent.Task{}, err
	}
	if !ok {
		return agent.Task{}, fault.New(agent.CodeNoTask, op, "the transcript shows no prompt of a person whose turn runs now")
	}
	anc.Log, anc.RequestHash = &t.Mark, t.Hash
	delete(anc.Extra, extraCanonical)
	anc.Extra[extraTask] = t.Prompt
	return agent.Task{Anchor: anc, Key: strings.Join([]string{known.Kind, n.ThreadID, t.Prompt}, "|")}, nil
}

// wantedOf says which request the anchor means.
func wantedOf(an turn.Anchor) transcript.Wanted {
	if id := an.Extra[extraTask]; id != "" {
		return transcript.Wanted{Thread: an.ThreadID, Prompt: id}
	}
	return transcript.Wanted{Thread: an.ThreadID, Exact: an.RequestHash, Canonical: an.Extra[extraCanonical]}
}
