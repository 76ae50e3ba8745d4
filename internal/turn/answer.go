package turn

import "time"

// AnswerState is how far an answer to a prompt is proved. It only advances, and after
// AnswerReserved no key is pressed again for this prompt, whatever happens.
type AnswerState string

const (
	AnswerReserved  AnswerState = "reserved"  // durable, before the first key
	AnswerSent      AnswerState = "sent"      // the key was pressed, or the server took the answer
	AnswerNotSent   AnswerState = "not_sent"  // proved: nothing reached the agent
	AnswerUncertain AnswerState = "uncertain" // a key was possible, its effect is unknown
)

// Answer is the newest answer to a prompt of a Turn.
type Answer struct {
	Fingerprint string      `json:"fingerprint"` // of the prompt that it answers
	Kind        PromptKind  `json:"kind"`
	Choice      string      `json:"choice"`         // the option's label, or "free text"
	By          string      `json:"by"`             // "controller", or "policy:" and the rule's id
	Call        string      `json:"call,omitempty"` // the tool call that gave it
	State       AnswerState `json:"state"`
	At          time.Time   `json:"at"`
}

// applyAnswer folds the events of answers. known is false for every other kind.
func applyAnswer(t Turn, _ Event) (next Turn, known bool, err error) { return t, false, nil }
