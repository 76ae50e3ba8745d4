package turn

import (
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
)

// Codes of answers to prompts.
const (
	CodeNoPrompt        fault.Code = "no_open_prompt"   // nothing is open that could be answered
	CodePromptChanged   fault.Code = "prompt_changed"   // another prompt is open than the one that was shown
	CodeAnswered        fault.Code = "already_answered" // this prompt was answered
	CodeAnswerUncertain fault.Code = "answer_uncertain" // a key for this prompt was possible; nobody presses another
	CodeNotApprovable   fault.Code = "not_approvable"   // no exactly known choice answers it
)

// Events of answers, and of questions that are told apart from being seen.
const (
	EvAnswerReserved  EventKind = "answer_reserved" // written before the first key
	EvAnswerSent      EventKind = "answer_sent"
	EvAnswerNotSent   EventKind = "answer_not_sent" // proved: nothing reached the agent
	EvAnswerUncertain EventKind = "answer_uncertain"
	EvAnswerTaken     EventKind = "answer_taken" // the answered prompt was seen gone
	EvPromptTold      EventKind = "prompt_told"  // the Host was told of a prompt that had been held back
)

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
	Title       string      `json:"title,omitempty"` // of the prompt
	Step        string      `json:"step,omitempty"`  // id of the questionnaire's step
	Choice      string      `json:"choice"`          // the option's label, or "free text"
	Decision    string      `json:"decision,omitempty"`
	By          string      `json:"by"`             // "controller", or "policy:" and the rule's id
	Call        string      `json:"call,omitempty"` // the tool call that gave it
	State       AnswerState `json:"state"`
	Gone        bool        `json:"gone,omitempty"` // the prompt was seen gone after the answer
	Reason      string      `json:"reason,omitempty"`
	At          time.Time   `json:"at"`
}

// consumes reports whether a prompt with this fingerprint is the one that was answered: it
// may still be on the screen, not repainted, and is neither told nor answered again. Once
// it was seen gone, the same words are a new question.
func (a *Answer) consumes(fingerprint string) bool {
	return a != nil && a.Fingerprint == fingerprint && !a.Gone && a.State != AnswerNotSent
}

// open reports whether the answered prompt may still be on the screen.
func (a *Answer) open() bool { return a != nil && a.consumes(a.Fingerprint) }

// AnswerPending reports whether an answer was reserved and what became of it is not
// recorded.
func (t Turn) AnswerPending() bool { return t.Answer != nil && t.Answer.State == AnswerReserved }

// InDoubt reports whether an answer to the open prompt may have reached the agent.
func (t Turn) InDoubt() bool {
	return t.Prompt != nil && t.Answer.consumes(t.Prompt.Fingerprint) && t.Answer.State != AnswerSent
}

// CanAnswer returns nil when the prompt with this fingerprint may be answered now, or a
// coded error that says why not.
func CanAnswer(t Turn, fingerprint string) error {
	const op = "turn.answer"
	switch {
	case t.Answer.consumes(fingerprint) && t.Answer.State == AnswerSent:
		return fault.New(CodeAnswered, op, "this prompt was answered (%s)", t.Answer.Choice).WithHint("wait for the callback; nothing was pressed again")
	case t.Answer.consumes(fingerprint):
		return fault.New(CodeAnswerUncertain, op, "an answer to this prompt (%s) may have reached the agent", t.Answer.Choice).
			WithHint("look at the pane; a person must answer there if it is still open. Nothing is pressed again")
	case t.Prompt == nil:
		return fault.New(CodeNoPrompt, op, "turn %s has no open prompt (%s)", t.ID, t.Status).WithHint("look at it with agent_knock_knock_status")
	case t.Prompt.Fingerprint != fingerprint:
		return fault.New(CodePromptChanged, op, "another prompt is open now: %s", t.Prompt.Title).WithHint("read it with agent_knock_knock_status before you decide")
	case t.Status != WaitingForController:
		return fault.New(CodeNotAllowed, op, "turn %s is %s", t.ID, t.Status).WithHint("look at it with agent_knock_knock_status; a stalled turn must be renewed first")
	}
	return nil
}

// ReserveAnswer records that the open prompt is answered from now on. It is committed
// before the first key; without it no key may be pressed.
func ReserveAnswer(t Turn, a Answer, now time.Time) (Plan, error) {
	if err := CanAnswer(t, a.Fingerprint); err != nil {
		return Plan{Turn: t}, err
	}
	a.State, a.At, a.Gone, a.Reason = AnswerReserved, now, false, ""
	a.Kind, a.Title = t.Prompt.Kind, t.Prompt.Title
	if t.Prompt.Step != nil {
		a.Step = t.Prompt.Step.ID
	}
	p := Plan{Turn: t}
	p.add(Event{At: now, Kind: EvAnswerReserved, Answer: &a})
	return p, nil
}

// SettleAnswer records what became of the reserved answer. It is settled once: another
// word about it changes nothing.
func SettleAnswer(t Turn, state AnswerState, reason string, now time.Time) Plan {
	p := Plan{Turn: t}
	if !t.AnswerPending() {
		return p
	}
	kind := map[AnswerState]EventKind{AnswerSent: EvAnswerSent, AnswerNotSent: EvAnswerNotSent, AnswerUncertain: EvAnswerUncertain}[state]
	p.add(Event{At: now, Kind: kind, Reason: reason})
	return p
}

// TakeAnswer records that the answered prompt was seen gone.
func TakeAnswer(t Turn, fingerprint string, now time.Time) Plan {
	p := Plan{Turn: t}
	if t.Answer.consumes(fingerprint) {
		p.add(Event{At: now, Kind: EvAnswerTaken})
	}
	return p
}

// DoubtAnswer is SettleAnswer as uncertain of an answer whose call nobody is told about:
// the Host hears of it.
func DoubtAnswer(t Turn, reason string, now time.Time) Plan {
	p := Plan{Turn: t}
	if !t.AnswerPending() {
		return p
	}
	id := p.message("answer_uncertain", t.Answer.Fingerprint)
	p.add(Event{At: now, Kind: EvAnswerUncertain, Reason: reason, Message: id})
	if t.Status.Blocking() {
		p.Notices = append(p.Notices, Notice{MessageID: id, Type: "error", Kind: "stalled", Body: uncertainAnswerBody(p.Turn)})
	}
	return p
}

// recoverAnswer decides what an answer means whose Bridge died between the reservation and
// the record of the key: a key was possible, so it is uncertain, and the Host is told once.
// A question that was held back by the Bridge that died is told now.
func recoverAnswer(t Turn, now time.Time) Plan {
	if t.AnswerPending() && t.Status.Blocking() {
		return DoubtAnswer(t, "it was cut off before its record", now)
	}
	return TellPrompt(t, now)
}

// TellPrompt tells the Host of an open prompt that was seen and held back.
func TellPrompt(t Turn, now time.Time) Plan {
	p := Plan{Turn: t}
	if !t.Untold() {
		return p
	}
	id := p.message("prompt", t.Prompt.Fingerprint)
	p.add(Event{At: now, Kind: EvPromptTold, Message: id})
	p.Notices = append(p.Notices, promptNotice(p.Turn, id))
	return p
}

// Untold reports whether a prompt is open that the Host was not told of and that nobody
// answered.
func (t Turn) Untold() bool {
	return t.Status.Blocking() && t.Prompt != nil && t.LastPrompt != t.Prompt.Fingerprint && !t.Answer.consumes(t.Prompt.Fingerprint)
}

// HoldPrompt is Observe of a prompt of which the Host is not told yet, because somebody
// decides it first. TellPrompt follows, or an answer.
func HoldPrompt(t Turn, o Observation, now time.Time) Plan {
	p := Plan{Turn: t}
	if o.Kind == ObsPrompt && t.Status.Blocking() && p.news(o) {
		p.observe(o, "", now)
	}
	return p
}

// ShowPrompt records a prompt that a tool's result showed to the Host: no callback speaks
// of it. It is the next step of a questionnaire, seen right after the step before it.
func ShowPrompt(t Turn, o Observation, now time.Time) Plan {
	p := HoldPrompt(t, o, now)
	if p.Turn.Untold() {
		p.add(Event{At: now, Kind: EvPromptTold})
	}
	return p
}

// news reports whether a prompt that was seen is one to act on.
func (p *Plan) news(o Observation) bool {
	t := p.Turn
	if t.AnswerPending() && t.Answer.Step != "" && o.Prompt != nil && o.Prompt.Step != nil && o.Prompt.Step.ID == t.Answer.Step {
		return false // the same step while it is being answered: a moved marker, an open line
	}
	return o.Prompt != nil && t.Stage == Accepted && // one before our request started is not ours
		(t.Prompt == nil || t.Prompt.Fingerprint != o.Prompt.Fingerprint) && !t.Answer.consumes(o.Prompt.Fingerprint)
}

// InteractionID names a question of a Turn to the Host without its fingerprint.
func InteractionID(id ids.TurnID, fingerprint string) string {
	return ids.Derive("interaction", string(id), fingerprint)
}

// applyAnswer folds the events of answers and of rounds. known is false for every other kind.
func applyAnswer(t Turn, e Event) (next Turn, known bool, err error) {
	if e.Kind == EvRoundReserved {
		return *e.Turn, true, nil
	}
	if e.Kind == EvAnswerReserved {
		a := *e.Answer
		t.Answer = &a
		return t, true, nil
	}
	if e.Kind == EvPromptTold {
		t.LastPrompt = t.Prompt.Fingerprint
		return t, true, nil
	}
	a := Answer{}
	if t.Answer != nil {
		a = *t.Answer
	}
	switch e.Kind {
	case EvAnswerSent:
		a.State = AnswerSent
		if t.Prompt != nil && t.Prompt.Fingerprint == a.Fingerprint {
			t.Prompt = nil
			if t.Status == WaitingForController {
				t.Status = WaitingForAgent
			}
		}
		if t.Status.Blocking() {
			t.LastActivityAt = e.At
		}
	case EvAnswerNotSent:
		a.State, a.Reason = AnswerNotSent, e.Reason
	case EvAnswerUncertain:
		a.State, a.Reason = AnswerUncertain, e.Reason
	case EvAnswerTaken:
		t = promptLeft(t, a.Fingerprint, e.At)
		a.Gone = true
	default:
		return t, false, nil
	}
	t.Answer = &a
	return t, true, nil
}

// repaintGap is the longest time that a prompt may be away from the screen and still be the
// same question, if nobody is known to have answered it.
const repaintGap = 3 * time.Second

// toldAlready reports whether the Host knows of a prompt that is seen now: it was told last,
// and has not been away for long. The screen may only have been repainted (spec part 8.6).
func toldAlready(t Turn, fingerprint string, at time.Time) bool {
	return t.LastPrompt == fingerprint && (t.PromptGoneAt.IsZero() || at.Sub(t.PromptGoneAt) <= repaintGap)
}

// promptShown folds the observation of a prompt. What took the place of an answered prompt
// shows that the answer was taken.
func promptShown(t Turn, e Event) Turn {
	fp := e.Observation.Prompt.Fingerprint
	if t.Answer.open() && t.Answer.Fingerprint != fp {
		t = promptLeft(t, t.Answer.Fingerprint, e.At)
	}
	switch {
	case e.Message != "":
		t.LastPrompt = fp
	case !toldAlready(t, fp, e.At):
		t.LastPrompt = "" // seen and not told yet
	}
	t.Prompt, t.PromptGoneAt, t.LastActivityAt = e.Observation.Prompt, time.Time{}, e.At
	if t.Status == WaitingForAgent {
		t.Status = WaitingForController
	}
	return t
}

// promptCleared folds that no prompt is open any more. When the agent's own server says so,
// the request was answered, and the same one again is another.
func promptCleared(t Turn, e Event) Turn {
	if t.Answer.open() && (t.Prompt == nil || t.Prompt.Fingerprint == t.Answer.Fingerprint) {
		t = promptLeft(t, t.Answer.Fingerprint, e.At)
	}
	if t.Prompt != nil {
		t = promptLeft(t, t.Prompt.Fingerprint, e.At)
	}
	if e.Observation.Source == "socket" {
		t.LastPrompt = ""
	}
	t.LastActivityAt = e.At
	return t
}

// promptLeft is the Turn without the prompt that was seen gone. What was answered is a new
// question when it comes again.
func promptLeft(t Turn, fingerprint string, at time.Time) Turn {
	if t.Answer.consumes(fingerprint) {
		a := *t.Answer
		a.Gone = true
		t.Answer = &a
		if t.LastPrompt == fingerprint {
			t.LastPrompt = ""
		}
	}
	if t.Prompt != nil && t.Prompt.Fingerprint == fingerprint {
		t.Prompt, t.PromptGoneAt = nil, at
		if t.Status == WaitingForController {
			t.Status = WaitingForAgent
		}
	}
	return t
}

// Choose returns the option of an approval that approves once, or that rejects. Lasting
// choices are never returned, and nothing is when the prompt is not known exactly.
func (p Prompt) Choose(approve bool) (PromptOption, error) {
	const op = "turn.choose"
	refuse := func(why string) (PromptOption, error) {
		return PromptOption{}, fault.New(CodeNotApprovable, op, "this prompt cannot be answered from here: %s", why).WithHint("a person must answer it in the terminal; no key was pressed")
	}
	switch {
	case p.Kind != PromptApproval:
		return refuse("it is no approval")
	case !p.Approvable:
		return refuse(orElse(p.Reason, "its layout is not known"))
	}
	var found []PromptOption
	for _, o := range p.Options {
		if o.Key != "" && (approve && o.OneTime && !o.Reject || !approve && o.Reject && !o.OneTime) {
			found = append(found, o)
		}
	}
	if len(found) == 0 || approve && len(found) > 1 {
		return refuse("it has no single choice of that kind with a known key")
	}
	return found[0], nil
}
