package dispatch

import (
	"cmp"
	"slices"

	"github.com/agent-knock-knock/akk/internal/discover"
)

// ordered returns terminals by id: the order is the cursor's order and survives a change
// of any row's state.
func ordered(terminals []discover.Terminal) []discover.Terminal {
	return slices.SortedStableFunc(slices.Values(terminals), func(a, b discover.Terminal) int { return cmp.Compare(a.ID, b.ID) })
}

// sortTurns orders Turns newest first.
func sortTurns(rows []TurnRow) {
	slices.SortFunc(rows, func(a, b TurnRow) int {
		if c := b.CreatedAt.Compare(a.CreatedAt); c != 0 {
			return c
		}
		return cmp.Compare(a.TurnID, b.TurnID)
	})
}
