package agent

import (
	"context"

	"github.com/agent-knock-knock/akk/internal/turn"
)

// Answerer is implemented by an adapter whose agent's own server takes the answer to an
// open request. decision is the Key of one of the prompt's options. An error with the code
// [NotSubmitted], fault.NotFound or fault.Invalid proves that nothing was answered; after
// any other the answer may have been taken.
type Answerer interface {
	Answer(ctx context.Context, ref Ref, a turn.Anchor, p turn.Prompt, decision string) error
}

// Reporter is implemented by an adapter whose agent may have a server that tells its
// requests. What it tells is clearer than the screen, and usually sooner.
type Reporter interface {
	// Reports says whether Follow hears of requests from a server.
	Reports(a turn.Anchor) bool
}

// Command is the one command that an open approval is about.
type Command struct {
	Line   string
	Cwd    string // absolute
	Source string // rollout, transcript
}

// Commander is implemented by an adapter whose agent's own records tell which command waits
// for an approval. It returns fault.NotFound unless exactly one tool call is unanswered, and
// that one runs a command whose directory is known. A screen alone proves no command: it
// wraps, cuts and does not show the directory.
type Commander interface {
	PendingCommand(ctx context.Context, ref Ref, n Native, nativeTurnID string) (Command, error)
}
