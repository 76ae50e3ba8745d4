package codex

import "github.com/agent-knock-knock/akk/internal/turn"

// maxAsked bounds the open requests that are remembered.
const maxAsked = 32

// asked are the open requests of the server about one turn, in its order. The first is the
// one that was told; a Turn waits for one answer at a time.
type asked []*turn.Prompt

// open adds a request and reports whether it is to be told now. A connection that begins
// anew names open requests once more.
func (a *asked) open(p *turn.Prompt) bool {
	for _, q := range *a {
		if q.RequestID == p.RequestID {
			return false
		}
	}
	if len(*a) < maxAsked {
		*a = append(*a, p)
	}
	return len(*a) == 1
}

// resolve takes a request away. told reports whether it was the told one, or one that is
// not known here; next is the one to tell in its place.
func (a *asked) resolve(id string) (told bool, next *turn.Prompt) {
	for i, q := range *a {
		if q.RequestID != id {
			continue
		}
		*a = append((*a)[:i:i], (*a)[i+1:]...)
		if i == 0 && len(*a) > 0 {
			next = (*a)[0]
		}
		return i == 0, next
	}
	return len(*a) == 0, nil
}
