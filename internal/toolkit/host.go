package toolkit

import (
	"context"
	"encoding/json"
	"errors"
)

// ErrEnded is the cause of the context of a call with [Spec.Detach] when the session ends.
var ErrEnded = errors.New("the session of the Host has ended")

// ErrHostSilent says that the Host cannot be asked: it refused the question or its session
// has ended. No person has answered.
var ErrHostSilent = errors.New("the Host cannot be asked")

// Host is what a handler may ask of the Host that called it.
type Host interface {
	// Forms and URLs report which questions the Host offers to put to a person.
	Forms() bool
	URLs() bool
	// Titled reports whether a form may name its choices by oneOf with titles.
	Titled() bool
	// Inline reports that a question must be the result of the call ([InputNeeded]), since
	// the Host takes no requests.
	Inline() bool
	// Elicit puts a question to the person and waits for the answer. When ctx ends first
	// the Host is told that the question is withdrawn. It fails when Inline.
	Elicit(ctx context.Context, q Elicitation) (Answer, error)
	// Elicited tells the Host that a question with a URL was completed elsewhere, best effort.
	Elicited(id string)
}

// Elicitation is a question for a person: a form, or a page to open when URL is set.
type Elicitation struct {
	Message string
	Schema  json.RawMessage // of a form
	URL     string
	ID      string // of the question with a URL
}

// Answer is what became of a question.
type Answer struct {
	Action  string          // accept, decline or cancel
	Content json.RawMessage // an object, of accept
}

// InputNeeded is returned by a handler in place of its value: the Host asks the questions
// and calls again with the answers and the State. Only for a Host with Inline.
type InputNeeded struct {
	Questions map[string]Elicitation
	State     string
}

// Resumed is what a Host sends with the call that follows an [InputNeeded]. It comes from
// outside: a handler must be able to tell that State is its own.
type Resumed struct {
	State   string
	Answers map[string]Answer
}

// deaf is the Host of a transport that cannot ask.
type deaf struct{}

func (deaf) Forms() bool  { return false }
func (deaf) URLs() bool   { return false }
func (deaf) Titled() bool { return false }
func (deaf) Inline() bool { return false }
func (deaf) Elicit(context.Context, Elicitation) (Answer, error) {
	return Answer{}, ErrHostSilent
}
func (deaf) Elicited(string) {}

// Face tells the call who called it and what it resumes. The transport calls it before
// [Ticket.Run]; without it nobody can be asked.
func (t *Ticket) Face(h Host, resumed *Resumed) { t.host, t.resumed = h, resumed }
