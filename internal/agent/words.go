package agent

import "github.com/agent-knock-knock/akk/internal/turn"

// OwnWords reports whether the line for own words of a questionnaire is open. Composer and
// Draft are then about that line, and Enter gives what is in it as the answer.
func (s Screen) OwnWords() bool {
	return s.State == ScreenDialog && s.Prompt != nil && s.Prompt.Step != nil && s.Prompt.Step.Kind == turn.StepFreeText
}
