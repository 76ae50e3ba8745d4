package turn

import (
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/agent-knock-knock/akk/internal/fault"
)

// Codes of a reply to a question (spec part 2.19).
const (
	CodeInvalidValue       fault.Code = "invalid_value"
	CodeUnknownField       fault.Code = "unknown_field" // a field of another kind of reply
	CodeLimitExceeded      fault.Code = "limit_exceeded"
	CodeDuplicateID        fault.Code = "duplicate_id"
	CodeControlCharacter   fault.Code = "control_character"
	CodeSecret             fault.Code = "secret_not_allowed"
	CodeMismatch           fault.Code = "interaction_mismatch" // another question is open
	CodeResponseNotAllowed fault.Code = "response_not_allowed" // only a person may answer
	CodeKindMismatch       fault.Code = "answer_kind_mismatch"
	CodeUnknownQuestion    fault.Code = "unknown_question"
	CodeUnknownOption      fault.Code = "unknown_option"
	CodeMissingAnswer      fault.Code = "missing_answer"
	CodeExpired            fault.Code = "expired" // the question was not shown lately
)

// Limits of what is shown and typed for a question.
const (
	MaxChoices    = 5
	MaxReplyText  = 4096
	MaxClaudeText = 799 // a longer text is folded by its line and cannot be proved
)

// Reply is the answer to one question of a step. Exactly the field of its Kind is set.
type Reply struct {
	QuestionID string
	Kind       StepKind
	Options    []string
	Text       *string
	Confirm    *bool
}

// keyed reports whether it is known how to choose the option.
func (o PromptOption) keyed() bool { return o.Key != "" || len(o.Keys) > 0 }

// Choices are the options of a step that can be chosen as they are, and the one that opens
// a line for other words, nil for none. What it is not known how to choose is not among
// them; beside an open line nothing else is chosen.
func (p Prompt) Choices() (plain []PromptOption, words *PromptOption) {
	if p.Step != nil && p.Step.Kind == StepFreeText {
		return nil, nil
	}
	for i, o := range p.Options {
		switch {
		case !o.keyed():
		case o.FreeText:
			words = &p.Options[i]
		default:
			plain = append(plain, o)
		}
	}
	return plain, words
}

// Unanswerable says why only a person can answer the question, or "".
func (p Prompt) Unanswerable() string {
	switch {
	case p.Manual != "":
		return p.Manual
	case p.Kind != PromptQuestion || p.Step == nil || p.Step.ID == "":
		return orElse(p.Reason, "its layout is not known")
	case p.Step.Total > MaxSteps || p.Step.Index > MaxSteps:
		return "it has more steps than are followed"
	}
	plain, words := p.Choices()
	seen := map[string]bool{}
	for _, o := range plain {
		if o.ID == "" || seen[o.ID] {
			return "its choices cannot be told apart"
		}
		seen[o.ID] = true
	}
	switch p.Step.Kind {
	case StepFreeText:
		return ""
	case StepSingle:
		if len(plain) == 0 || len(plain) > MaxChoices || len(plain) < 2 && words == nil {
			return "it has too few or too many choices"
		}
		return ""
	case StepConfirm:
		if _, ok := confirming(plain, true); !ok {
			return "its confirming choice is not known exactly"
		}
		return ""
	}
	return "this kind of question is answered in the terminal"
}

func confirming(options []PromptOption, yes bool) (PromptOption, bool) {
	var found []PromptOption
	for _, o := range options {
		if o.Reject != yes {
			found = append(found, o)
		}
	}
	if len(found) != 1 {
		return PromptOption{}, false
	}
	return found[0], true
}

// Resolve returns the option that the replies choose and the text to type into the line
// that it opens. The option is the zero one when that line is open already. Nothing has
// been pressed when it refuses.
func (p Prompt) Resolve(replies []Reply, maxText int) (PromptOption, string, error) {
	const op = "turn.reply"
	none := func(code fault.Code, format string, args ...any) (PromptOption, string, error) {
		return PromptOption{}, "", fault.New(code, op, format, args...).WithHint("no key was pressed; see the interaction in agent_knock_knock_status")
	}
	if why := p.Unanswerable(); why != "" {
		return none(CodeResponseNotAllowed, "a person must answer this question in the terminal: %s", why)
	}
	switch {
	case len(replies) == 0:
		return none(CodeMissingAnswer, "there is no answer")
	case len(replies) > 1:
		return none(CodeLimitExceeded, "a call answers one question, not %d", len(replies))
	}
	r := replies[0]
	if r.QuestionID != p.Step.ID {
		return none(CodeUnknownQuestion, "the open step has no question of that id")
	}
	if code, why := r.shape(maxText); code != "" {
		return none(code, "%s", why)
	}
	plain, words := p.Choices()
	switch {
	case r.Kind == StepSingle && p.Step.Kind == StepSingle:
		i := slices.IndexFunc(plain, func(o PromptOption) bool { return o.ID == r.Options[0] })
		if i < 0 {
			return none(CodeUnknownOption, "the question has no option of that id")
		}
		return plain[i], "", nil
	case r.Kind == StepFreeText && p.Step.Kind == StepFreeText:
		return PromptOption{}, *r.Text, nil
	case r.Kind == StepFreeText && p.Step.Kind == StepSingle && words != nil:
		return *words, *r.Text, nil
	case r.Kind == StepConfirm && p.Step.Kind == StepConfirm:
		o, ok := confirming(plain, *r.Confirm)
		if !ok {
			return none(CodeUnknownOption, "the step has no single choice for that")
		}
		return o, "", nil
	}
	return none(CodeKindMismatch, "the question takes %s, not %s", p.Step.Kind, r.Kind)
}

// shape holds a reply against its own kind.
func (r Reply) shape(maxText int) (fault.Code, string) {
	given := 0
	for _, set := range []bool{len(r.Options) > 0, r.Text != nil, r.Confirm != nil} {
		if set {
			given++
		}
	}
	switch r.Kind {
	case StepSingle:
		switch {
		case len(r.Options) == 0:
			return CodeMissingAnswer, "selected_option_ids is missing"
		case given > 1:
			return CodeUnknownField, "single_select takes selected_option_ids only"
		case len(r.Options) > 1 && r.Options[0] == r.Options[1]:
			return CodeDuplicateID, "an option is selected twice"
		case len(r.Options) > 1:
			return CodeLimitExceeded, "exactly one option is selected"
		}
	case StepFreeText:
		switch {
		case r.Text == nil || *r.Text == "":
			return CodeMissingAnswer, "text is missing"
		case given > 1:
			return CodeUnknownField, "free_text takes text only"
		case utf8.RuneCountInString(*r.Text) > maxText:
			return CodeLimitExceeded, "the text is longer than this agent's line takes"
		case slices.ContainsFunc([]rune(*r.Text), func(c rune) bool { return unicode.IsControl(c) || c == utf8.RuneError }):
			return CodeControlCharacter, "the text holds a control character"
		}
	case StepConfirm:
		switch {
		case r.Confirm == nil:
			return CodeMissingAnswer, "confirm is missing"
		case given > 1:
			return CodeUnknownField, "confirm takes confirm only"
		}
	default:
		return CodeInvalidValue, "response_kind is single_select, free_text or confirm"
	}
	return "", ""
}
