package watch

import (
	"strings"
	"time"

	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/redact"
)

// source is what a View says of where it comes from.
const source = "human_started_terminal_watch"

// The tools that a View points to.
const (
	toolStatus  = "agent_knock_knock_status"
	toolUnwatch = "agent_knock_knock_unwatch"
)

// Action is one tool call that is possible now, with its arguments filled in.
type Action struct {
	Tool      string         `json:"tool"`
	Arguments map[string]any `json:"arguments"`
}

// Counts are the notifications of a Watch by what became of them.
type Counts struct {
	Pending    int `json:"pending"`
	Delivered  int `json:"delivered"`
	Failed     int `json:"failed"`
	Superseded int `json:"superseded"`
}

// View is a Watch as a model may see it: no anchor, no route, no fingerprint.
type View struct {
	ID             ids.WatchID       `json:"watch_id"`
	Source         string            `json:"source"`
	Agent          string            `json:"agent"`
	TerminalID     ids.TerminalID    `json:"terminal_id"`
	ThreadID       string            `json:"native_thread_id,omitempty"`
	Workspace      string            `json:"workspace"`
	Mode           Mode              `json:"watch_mode"`
	Confidence     string            `json:"confidence"` // exact, best_effort
	Warnings       []string          `json:"warnings,omitempty"`
	Status         Status            `json:"status"`
	ActivityState  string            `json:"activity_state"` // watching, settled
	WaitsForPerson bool              `json:"waits_for_person"`
	Problem        *ProblemView      `json:"observation_problem,omitempty"`
	CreatedAt      time.Time         `json:"created_at"`
	DeadlineAt     time.Time         `json:"deadline_at"`
	UpdatedAt      time.Time         `json:"updated_at"`
	LastActivityAt time.Time         `json:"last_activity_at"`
	Callback       Counts            `json:"callback"`
	Settlement     *SettlementView   `json:"settlement,omitempty"`
	Actions        map[string]Action `json:"available_actions"`
}

// ProblemView is a Problem as a model may see it.
type ProblemView struct {
	Code   string    `json:"code"`
	Detail string    `json:"detail,omitempty"`
	At     time.Time `json:"at"`
}

// SettlementView is a Settlement as a model may see it.
type SettlementView struct {
	Kind       Status    `json:"kind"`
	Reason     string    `json:"reason_code"`
	Detail     string    `json:"detail,omitempty"`
	ObservedAt time.Time `json:"observed_at"`
	Text       string    `json:"completion_text,omitempty"`
	TextBytes  int       `json:"completion_bytes,omitempty"`
}

// View is what may be shown of the Watch. writable says whether it may be ended now.
func (w Watch) View(c Counts, writable bool) View {
	v := View{ID: w.ID, Source: source, Agent: w.Agent, TerminalID: w.Terminal, ThreadID: w.ThreadID,
		Workspace: strings.ToValidUTF8(w.Workspace, "\uFFFD"), Mode: w.Mode, Confidence: "exact", Status: w.Status, ActivityState: "settled",
		WaitsForPerson: w.OpenPrompt != "", CreatedAt: w.CreatedAt, DeadlineAt: w.DeadlineAt, UpdatedAt: w.UpdatedAt, LastActivityAt: w.LastActivityAt,
		Callback: c, Actions: map[string]Action{}}
	args := map[string]any{"watch_id": w.ID}
	v.Actions["status"] = Action{Tool: toolStatus, Arguments: args}
	if w.Status == Active {
		v.ActivityState = "watching"
		if writable {
			v.Actions["unwatch"] = Action{Tool: toolUnwatch, Arguments: args}
		}
	}
	if w.Mode == ModeActivity {
		v.Confidence = "best_effort"
		v.Warnings = append(v.Warnings, "Follows what the terminal shows, not one task: an end means only that it was active and then idle.")
	}
	if p := w.Problem; p != nil {
		v.Problem = &ProblemView{Code: p.Code, Detail: redact.String(p.Detail), At: p.At}
		v.Warnings = append(v.Warnings, "The task cannot be seen now; the Watch goes on and says so when it can.")
	}
	if s := w.Settlement; s != nil {
		v.Settlement = &SettlementView{Kind: s.Kind, Reason: s.Reason, Detail: redact.String(s.Detail), ObservedAt: s.ObservedAt,
			Text: redact.String(s.Text), TextBytes: s.TextBytes}
	}
	return v
}
