package dispatch

import (
	"cmp"
	"slices"
)

// sortRows orders terminals by id: the order is the cursor's order and survives a change
// of any row's state.
func sortRows(rows []TerminalRow) {
	slices.SortFunc(rows, func(a, b TerminalRow) int { return cmp.Compare(a.TerminalID, b.TerminalID) })
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
