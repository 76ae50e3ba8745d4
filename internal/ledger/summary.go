package ledger

// ProjectTally is what is known of a project in numbers.
type ProjectTally struct {
	Items, OpenItems                          int
	All                                       map[string]int // assignments by status
	Open                                      map[string]int // those of open items
	Missing, Handoffs, FollowUps, Ready, Idle int            // of open items
}
