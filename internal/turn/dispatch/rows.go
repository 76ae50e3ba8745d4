package dispatch

import (
	"context"

	"github.com/agent-knock-knock/akk/internal/discover"
	"github.com/agent-knock-knock/akk/internal/turn"
)

// RowSource adds to the rows of a list what another wing can do with a terminal now. It is
// asked once per list, reads what it needs at once, and types nothing.
type RowSource interface {
	// Actions returns more actions by terminal key, see [discover.Terminal.Key].
	Actions(ctx context.Context, seen []SeenTerminal) (map[string]map[string]Action, error)
}

// SeenTerminal is one terminal of a list with what is known of it.
type SeenTerminal struct {
	Terminal discover.Terminal
	State    discover.State
	Held     *turn.Turn    // the Turn that keeps it, nil for none
	Session  *turn.Session // the bound Session, nil for none
}
