package agent

import (
	"context"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
)

// Ownership says who holds a thread open, seen from one terminal.
type Ownership string

const (
	OwnedByNobody  Ownership = "nobody"    // complete evidence, and nobody has it open
	OwnedHere      Ownership = "here"      // the terminal's own process, or the server that it is a client of
	OwnedElsewhere Ownership = "elsewhere" // another process has it open
	OwnedUnknown   Ownership = "unknown"   // some process could not be looked into
)

// Thread is one conversation in the agent's own records.
type Thread struct {
	ID        string
	Workspace string
	Title     string // one redacted line, "" when the agent gave none
	Preview   string // the first prompt: one redacted line
	UpdatedAt time.Time
	Archived  bool
	Owner     Ownership
	// Token changes whenever the thread's records do; "" when that cannot be told. It is
	// for comparison by us and never leaves the product.
	Token string
}

// ThreadList is what a listing found.
type ThreadList struct {
	Threads []Thread // newest first; equal times by id
	Cut     bool     // more exist than were asked for, or than were looked at
}

// Limits of what is shown of a thread, in bytes.
const (
	MaxThreadTitle   = 120
	MaxThreadPreview = 200
)

// CodeThreads is the code of an agent or a terminal whose threads cannot be changed from
// outside with proof.
const CodeThreads fault.Code = "threads_unsupported"

// ThreadKeeper is implemented by an adapter whose agent can be told to begin or to resume
// a thread in its pane, so that what the pane then shows can be proved by
// [Adapter.Identify]. It reads the agent's own records, heads and tails of files only, and
// types nothing: a command is returned as text.
type ThreadKeeper interface {
	// ThreadSupport returns nil when n's version and evidence allow a change of thread to
	// be proved, else a [CodeThreads] error that says why not. Pure.
	ThreadSupport(n Native) error
	// Threads lists the conversations of ref's workspace, newest first, at most limit.
	Threads(ctx context.Context, ref Ref, n Native, limit int) (ThreadList, error)
	// Thread reads one of them anew. A thread that is not among ref's is [fault.NotFound].
	Thread(ctx context.Context, ref Ref, n Native, id string) (Thread, error)
	// ThreadCommand is what is typed to resume the thread with id, or to begin a new one
	// when id is empty. Pure.
	ThreadCommand(id string) string
	// ThreadRefusals counts the lines of a screen in which the agent says that it did not
	// resume id. Older ones may be visible: only a growing number is an answer. Pure.
	ThreadRefusals(lines []string, id string) int
}
