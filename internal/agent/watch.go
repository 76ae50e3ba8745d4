package agent

import (
	"context"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/turn"
)

// CodeNoTask: the agent's records do not show a task that runs now, or not where it began.
const CodeNoTask fault.Code = "task_boundary_not_found"

// CodeThreadChanged is the code of an [turn.ObsTrouble]: the terminal shows another thread
// than the anchored one, for longer than the records of an end may take.
const CodeThreadChanged = "thread_changed"

// Task is the native task that an agent works on now, whoever started it. The text of its
// request is not part of it; the anchor holds the hash.
type Task struct {
	// Anchor leads [Adapter.Follow] to exactly this task, however often it starts anew.
	Anchor turn.Anchor
	// Key names the task among all tasks of all agents.
	Key string
}

// TaskFinder is implemented by an adapter that can tell which task runs now. It reads
// records only. Without a provable beginning of a running task the error has
// [CodeNoTask]; a thread that is not resolved is fault.Unavailable.
type TaskFinder interface {
	CurrentTask(ctx context.Context, ref Ref, n Native) (Task, error)
}
