package turn

import "time"

// ObservationKind says what a monitor saw.
type ObservationKind string

const (
	// ObsArmed: the monitor follows the agent's records from the anchor. Nothing may be
	// typed before it.
	ObsArmed ObservationKind = "armed"
	// ObsAccepted: the agent's own record shows exactly this request as started.
	ObsAccepted ObservationKind = "accepted"
	// ObsActivity: the agent wrote records or changed state; it resets the inactivity clock.
	ObsActivity ObservationKind = "activity"
	// ObsCompleted: the accepted native turn ended well; Text is the final answer.
	ObsCompleted ObservationKind = "completed"
	// ObsFailed: the accepted native turn ended with an error (Code, Detail).
	ObsFailed ObservationKind = "failed"
	// ObsInterrupted: a person or the agent aborted the accepted native turn.
	ObsInterrupted ObservationKind = "interrupted"
	// ObsNotAccepted: proved that the request is still an unsent draft.
	ObsNotAccepted ObservationKind = "not_accepted"
	// ObsPrompt: the agent waits for an approval or an answer (Prompt).
	ObsPrompt ObservationKind = "prompt"
	// ObsPromptCleared: the prompt that was seen last is gone.
	ObsPromptCleared ObservationKind = "prompt_cleared"
	// ObsGone: the agent process is verified dead and its records, read to the end, hold
	// no end of the turn.
	ObsGone ObservationKind = "gone"
	// ObsTrouble: evidence cannot be trusted or read (Code, Detail): replaced file, broken
	// record, two matches. It never means idle and never means done.
	ObsTrouble ObservationKind = "trouble"
)

// Final reports whether the kind ends a native turn.
func (k ObservationKind) Final() bool {
	switch k {
	case ObsCompleted, ObsFailed, ObsInterrupted, ObsGone:
		return true
	}
	return false
}

// MaxText is the limit of an answer in bytes (256 KiB). A longer answer is cut at a rune
// boundary, Truncated is set, and the callback body says so visibly.
const MaxText = 256 << 10

// Observation is one thing a monitor saw. It is evidence, never an order.
type Observation struct {
	Kind         ObservationKind `json:"kind"`
	At           time.Time       `json:"at"`
	Source       string          `json:"source"` // rollout, transcript, socket, screen, status_file, process
	ThreadID     string          `json:"thread_id,omitempty"`
	NativeTurnID string          `json:"native_turn_id,omitempty"`
	Log          *LogMark        `json:"log,omitempty"` // where the record begins
	Text         string          `json:"text,omitempty"`
	Truncated    bool            `json:"truncated,omitempty"`
	FullBytes    int             `json:"full_bytes,omitempty"` // length before the cut
	Code         string          `json:"code,omitempty"`
	Detail       string          `json:"detail,omitempty"` // one line, redacted
	Prompt       *Prompt         `json:"prompt,omitempty"`
}

// PromptKind says what the agent waits for.
type PromptKind string

const (
	PromptApproval PromptKind = "approval" // a tool call, an edit, a permission
	PromptQuestion PromptKind = "question" // a questionnaire or a plan
	PromptDialog   PromptKind = "dialog"   // anything else that holds the focus
)

// Prompt is what an agent shows while it waits for a decision.
type Prompt struct {
	Kind        PromptKind     `json:"kind"`
	Fingerprint string         `json:"fingerprint"` // sha256 hex over agent, endpoint and the prompt region
	Title       string         `json:"title"`       // the question, one line
	Detail      string         `json:"detail,omitempty"`
	Options     []PromptOption `json:"options,omitempty"`
	Approvable  bool           `json:"approvable"` // exactly one one-time "yes" is known, with its key
	Reason      string         `json:"reason,omitempty"`
	RequestID   string         `json:"request_id,omitempty"` // of a socket request
	Step        *QuestionStep  `json:"step,omitempty"`       // set when the prompt is one step of a questionnaire
	Manual      string         `json:"manual,omitempty"`     // why only a person can answer a question; "" when it can be answered here
	Excerpt     string         `json:"excerpt,omitempty"`    // the prompt region, at most 4000 bytes, redacted
}

// PromptOption is one choice of a Prompt.
type PromptOption struct {
	Label       string `json:"label"`
	Key         string `json:"key,omitempty"` // tmux key name or socket decision
	OneTime     bool   `json:"one_time"`      // grants only this request
	Reject      bool   `json:"reject"`
	ID          string `json:"id,omitempty"`          // of a questionnaire's choice, unique in its step
	Description string `json:"description,omitempty"` // below the label
	FreeText    bool   `json:"free_text,omitempty"`   // choosing it opens a line for the answer's own words
	// Keys are all keys in their order, where one does not do it; Key is then "". They start
	// from where the marker stands now: press those of the live screen, never remembered ones.
	Keys []string `json:"keys,omitempty"`
}

// StepKind says how a step of a questionnaire is answered.
type StepKind string

const (
	StepSingle   StepKind = "single_select"
	StepFreeText StepKind = "free_text" // the line for own words is open: paste, then Enter
	StepConfirm  StepKind = "confirm"   // the last step: send all answers
	StepMulti    StepKind = "multi_select"
)

// MaxSteps is the most steps of one questionnaire that are followed.
const MaxSteps = 16

// QuestionStep is the step of a questionnaire that an agent shows now.
type QuestionStep struct {
	ID     string   `json:"id"`               // stable while this step is shown
	Header string   `json:"header,omitempty"` // a word or two
	Text   string   `json:"text"`
	Kind   StepKind `json:"kind"`
	Index  int      `json:"index"` // from 1
	Total  int      `json:"total"` // 0: not shown
}
