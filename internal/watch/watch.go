package watch

import (
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/turn"
)

// Codes of this package.
const (
	CodeActive   fault.Code = "active_watch_conflict" // an active Watch observes this task already
	CodeReplay   fault.Code = "replay_mismatch"       // the same call id with another payload
	CodeStale    fault.Code = "stale_owner"           // another Bridge owns the Watch by now
	CodeManaged  fault.Code = "terminal_managed"      // a Turn of ours holds the terminal: its own callback tells
	CodeIdle     fault.Code = "terminal_idle"         // nothing runs that could be watched
	CodeUnproved fault.Code = "terminal_unusable"     // the terminal cannot be told apart or read
)

// Mode says how the task is followed.
type Mode string

const (
	// ModeTask follows one native task by the agent's own records.
	ModeTask Mode = "exact_task"
	// ModeActivity waits until the terminal, once seen active, is idle; best effort.
	ModeActivity Mode = "terminal_activity"
)

// Status is where a Watch stands. All but Active are final.
type Status string

const (
	Active      Status = "active"
	Completed   Status = "completed"
	Failed      Status = "failed"
	TimedOut    Status = "timed_out"
	Invalidated Status = "invalidated"
	Cancelled   Status = "cancelled"
)

// DefaultHard is how long a Watch lives when nobody says otherwise.
const DefaultHard = 720 * time.Minute

// MaxSettlementText bounds the part of the agent's last message that is kept with a
// settlement, in characters. The callback carries all of it.
const MaxSettlementText = 4000

// maxTold bounds how many fingerprints of prompts that were told are remembered.
const maxTold = 64

// Watch observes one task that a person started. It is a fold of its journal. The text of
// the task is in no field; Anchor holds its hash.
type Watch struct {
	ID      ids.WatchID `json:"watch_id"`
	CallKey string      `json:"call_key"` // idempotency: the same call is the same Watch
	Route   ids.RouteID `json:"route_id"`
	// Origin is the Bridge that made the Watch, see turn.Turn.
	Origin ids.BridgeID `json:"origin,omitempty"`
	Mode   Mode         `json:"mode"`

	Agent        string           `json:"agent"`
	AgentVersion string           `json:"agent_version,omitempty"`
	Terminal     ids.TerminalID   `json:"terminal_id"`
	Endpoint     turn.Endpoint    `json:"endpoint"`
	Process      turn.Incarnation `json:"process"`
	Workspace    string           `json:"workspace"`
	ThreadID     string           `json:"native_thread_id,omitempty"`
	TaskKey      string           `json:"task_key"` // the task: at most one active Watch has it
	Anchor       turn.Anchor      `json:"anchor"`

	Status     Status      `json:"status"`
	Seen       bool        `json:"seen,omitempty"`        // the monitor found the task, or saw activity
	OpenPrompt string      `json:"open_prompt,omitempty"` // fingerprint of the prompt that is shown now
	Told       []string    `json:"told,omitempty"`        // fingerprints of prompts that the Host was told of
	Problem    *Problem    `json:"problem,omitempty"`     // why nothing can be seen now; nil when it can
	Settlement *Settlement `json:"settlement,omitempty"`

	CreatedAt      time.Time `json:"created_at"`
	DeadlineAt     time.Time `json:"deadline_at"`
	LastActivityAt time.Time `json:"last_activity_at"`
	UpdatedAt      time.Time `json:"updated_at"`

	Seq int64 `json:"seq"` // number of the newest folded event
}

// Problem says that a Watch cannot see for now. It stays active.
type Problem struct {
	Code   string    `json:"code"` // ProblemProvider, ProblemTerminal
	Detail string    `json:"detail,omitempty"`
	At     time.Time `json:"at"`
}

// What a Watch cannot see.
const (
	ProblemProvider = "provider_observation_unavailable"
	ProblemTerminal = "terminal_observation_unavailable"
)

// Reasons of settlements.
const (
	ReasonCompleted = "anchored_task_completed"
	ReasonFailed    = "anchored_task_failed"
	ReasonIdle      = "terminal_became_idle" // mode terminal_activity
	ReasonAnchor    = "task_anchor_invalidated"
	ReasonIdentity  = "terminal_identity_changed"
	ReasonProcess   = "terminal_process_unavailable"
	ReasonDeadline  = "deadline_elapsed"
	ReasonCancelled = "manual_cancel"
	ReasonWaiting   = "terminal_waiting_for_approval" // of an approval notification, not of a settlement
)

// Settlement is the end of a Watch. It happens once.
type Settlement struct {
	Kind        Status    `json:"kind"`
	Reason      string    `json:"reason_code"`
	Detail      string    `json:"detail,omitempty"`               // one line, redacted
	Source      string    `json:"source,omitempty"`               // of the evidence: rollout, transcript, socket, screen, process
	Fingerprint string    `json:"evidence_fingerprint,omitempty"` // of the evidence
	ObservedAt  time.Time `json:"observed_at"`
	Text        string    `json:"completion_text,omitempty"` // the last message, redacted and cut
	TextBytes   int       `json:"completion_bytes,omitempty"`
	Message     string    `json:"message_id"` // of the notification
}

// TerminalKey is the agent process in its pane, see turn.TerminalKey.
func (w Watch) TerminalKey() string { return turn.TerminalKey(w.Endpoint, w.Process) }

// told reports whether the Host heard of the prompt.
func (w Watch) told(fingerprint string) bool {
	for _, f := range w.Told {
		if f == fingerprint {
			return true
		}
	}
	return false
}
