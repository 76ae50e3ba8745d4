package dispatch

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/discover"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/redact"
	"github.com/agent-knock-knock/akk/internal/turn"
)

// RowSource adds to the rows of a list what another wing can do with a terminal now. It is
// asked once per list, reads what it needs at once, and types nothing.
type RowSource interface {
	// Actions returns more actions by terminal key, see [discover.Terminal.Key].
	Actions(ctx context.Context, seen []SeenTerminal) (map[string]map[string]Action, error)
}

// SeenTerminal is one terminal of a list with what is known of it.
type SeenTerminal struct {
	Terminal discover.Terminal
	State    discover.State
	Held     *turn.Turn    // the Turn that keeps it, nil for none
	Session  *turn.Session // the bound Session, nil for none
}

// sourceLimit bounds what one source may take: a slow one costs its own actions only.
const sourceLimit = 2 * time.Second

// TerminalRow is one live agent.
type TerminalRow struct {
	TerminalID          ids.TerminalID    `json:"terminal_id"`
	ShortRef            string            `json:"short_ref"`
	Agent               string            `json:"agent"`
	AgentVersion        string            `json:"agent_version,omitempty"`
	Mode                string            `json:"mode,omitempty"`
	Channel             turn.Channel      `json:"channel"`
	ChannelHint         string            `json:"channel_hint,omitempty"`
	State               discover.State    `json:"activity_state"`
	Reason              string            `json:"activity_reason,omitempty"`
	ScreenState         string            `json:"screen_state"`
	NativeIdentityState string            `json:"native_identity_state"`
	DurableState        string            `json:"durable_activity_state"`
	NativeThreadID      string            `json:"native_thread_id,omitempty"`
	Workspace           string            `json:"workspace"`
	Target              string            `json:"target"`
	PID                 int               `json:"pid"`
	Management          string            `json:"management_state"`
	Conflict            *Conflict         `json:"management_conflict,omitempty"`
	HandoffState        string            `json:"handoff_state,omitempty"`
	Handoff             *HandoffDecision  `json:"handoff_decision,omitempty"`
	SessionID           ids.SessionID     `json:"session_id,omitempty"`
	CurrentTurn         *TurnRow          `json:"current_turn,omitempty"`
	RecentTurn          *TurnRow          `json:"recent_turn,omitempty"`
	Actions             map[string]Action `json:"available_actions"`
}

// The states of management (spec part 3.2).
const (
	managed    = "managed"   // a Session of ours is bound to it
	unmanaged  = "unmanaged" // nobody sent a task to what it shows
	inConflict = "conflict"  // what is stored and what is seen do not fit together
)

// Conflict says what does not fit, and the one way out.
type Conflict struct {
	Kind     string `json:"kind"`
	Reason   string `json:"reason"`
	Recovery string `json:"recovery"`
}

// TurnRow is a Turn in short.
type TurnRow struct {
	TurnID       ids.TurnID        `json:"turn_id"`
	SessionID    ids.SessionID     `json:"session_id"`
	TerminalID   ids.TerminalID    `json:"terminal_id"`
	Agent        string            `json:"agent"`
	Status       turn.Status       `json:"status"`
	Submission   turn.Stage        `json:"submission"`
	Request      string            `json:"request"`
	Reason       string            `json:"reason,omitempty"`
	CancelAsked  bool              `json:"cancel_requested,omitempty"`
	CreatedAt    time.Time         `json:"created_at"`
	UpdatedAt    time.Time         `json:"updated_at"`
	Callback     *CallbackView     `json:"callback_delivery,omitempty"`
	Availability *Availability     `json:"terminal_availability,omitempty"`
	Actions      map[string]Action `json:"available_actions,omitempty"`
}

// Availability says why the terminal of a Turn is not among the rows.
type Availability struct {
	Available bool   `json:"available"`
	Reason    string `json:"reason"`
}

// terminalRow joins what is seen of a terminal with what is stored of it.
func (s *Service) terminalRow(t discover.Terminal, f facts) (TerminalRow, SeenTerminal) {
	state, reason := discover.Combine(t.Native, t.Screen)
	if t.Conflict != "" {
		state, reason = discover.Unknown, t.Conflict
	}
	row := TerminalRow{
		TerminalID: t.ID, ShortRef: ids.ShortRef(string(t.ID)), Agent: t.Adapter.Kind(), AgentVersion: t.Native.Version, Mode: t.Native.Mode,
		Channel: t.Native.Channel, ChannelHint: channelHint(t), State: state, Reason: short(reason),
		ScreenState: string(t.Screen.State), NativeIdentityState: string(t.Native.Thread), DurableState: string(t.Native.Activity),
		NativeThreadID: t.Native.ThreadID, Workspace: strings.ToValidUTF8(t.Ref.Cwd, "\uFFFD"), Target: t.Ref.Endpoint.Target, PID: t.Ref.Process.PID,
		Management: unmanaged, Actions: map[string]Action{},
	}
	seen := SeenTerminal{Terminal: t, State: state}
	if session, ok := f.sessions[t.Key()]; ok {
		seen.Session, row.SessionID, row.Management = &session, session.ID, managed
	}
	held, busy := f.held[t.Key()]
	if busy {
		seen.Held, row.Management = &held.Turn, managed
		current := s.turnRow(held, &t, f)
		row.CurrentTurn, row.Actions = &current, current.Actions
		current.Actions = nil // once is enough
	} else {
		row.Actions["status"] = Action{Tool: toolStatus, Arguments: map[string]any{"terminal_id": t.ID}}
		if r, ok := f.recent[t.Key()]; ok {
			recent := s.turnRow(r, &t, f)
			delete(recent.Actions, "status") // that of the terminal says more
			maps.Copy(row.Actions, recent.Actions)
			recent.Actions, row.RecentTurn = nil, &recent
		}
	}
	s.markHandoff(&row, t, seen)
	if t.Conflict != "" {
		row.Management, row.Conflict = inConflict, &Conflict{"ambiguous_terminal", short(t.Conflict), orElse(t.Remedy, "use a pane that holds one agent")}
	}
	if change, ok := f.moving[t.Key()]; ok { // nothing that types would be reserved
		delete(row.Actions, "respond")
		row.Reason = short(fmt.Sprintf("its thread is being changed by transition %s (%s): %s", change.ID, change.Status, change.NextStep()))
		return row, seen
	}
	switch err := discover.Ready(t); {
	case err != nil && row.Reason == "": // idle, and yet it takes no task: a draft, a scrolled pane
		_, msg, _ := fault.Public(err)
		row.Reason = short(msg)
	case err == nil && !busy && s.DB.Writable():
		row.Actions["send"] = Action{Tool: toolSend, Arguments: map[string]any{"terminal_id": t.ID}, MissingRequired: []string{"request"}}
	}
	return row, seen
}

// markHandoff says what a human's switch of threads in the pane means for what is stored.
func (s *Service) markHandoff(row *TerminalRow, t discover.Terminal, seen SeenTerminal) {
	switch {
	case seen.Held != nil && movedAway(*seen.Held, t):
		row.HandoffState, row.Management = handoffBlocked, inConflict
		row.Conflict = &Conflict{"human_switched_thread", fmt.Sprintf("the pane shows another thread than that of turn %s", seen.Held.ID), "let a person take one of handoff_decision.choices"}
		if s.DB.Writable() {
			row.Handoff = s.decideHandoff(*seen.Held, t)
		}
	case seen.Held != nil || seen.Session == nil || seen.Session.ThreadID == "" || t.Conflict != "":
	case t.Native.Thread == agent.ThreadResolved && t.Native.ThreadID != seen.Session.ThreadID:
		row.HandoffState = handoffAdoptable
	case t.Native.Thread == agent.ThreadVerifiedAbsent:
		row.HandoffState = handoffEmpty
	}
	if row.HandoffState != "" && row.HandoffState != handoffBlocked {
		row.SessionID, row.Management = "", unmanaged // the Session is that of another thread
	}
}

// askSources merges what the other wings can do with the rows. A source that fails is a
// limitation of this list; no source replaces an action that is there.
func (s *Service) askSources(ctx context.Context, rows []TerminalRow, seen []SeenTerminal) (limitations []string) {
	if !s.DB.Writable() || len(seen) == 0 {
		return nil
	}
	for _, source := range s.Rows {
		more, err := s.ask(ctx, source, seen)
		if err != nil {
			_, msg, _ := fault.Public(err)
			limitations = append(limitations, "some actions are not shown: "+short(msg))
			continue
		}
		for i := range rows {
			had := rows[i].Actions
			merged := maps.Clone(more[seen[i].Terminal.Key()])
			if merged == nil {
				continue
			}
			maps.Copy(merged, had)
			rows[i].Actions = merged
		}
	}
	return limitations
}

func (s *Service) ask(ctx context.Context, source RowSource, seen []SeenTerminal) (map[string]map[string]Action, error) {
	ctx, cancel := context.WithTimeout(ctx, sourceLimit)
	defer cancel()
	return source.Actions(ctx, seen)
}

// channelHint says what a better channel would bring, in one line; "" when there is none.
func channelHint(t discover.Terminal) string {
	if t.Native.Channel != turn.ChannelKeyboard {
		return ""
	}
	switch t.Adapter.Kind() {
	case "codex":
		return "started with `agent-knock-knock pane codex` it has a server: tasks, answers and stops need no keyboard, and its thread is always known"
	case "claude":
		return "started with `agent-knock-knock pane claude --hooks` its prompts and ends are reported at once"
	}
	return ""
}

func short(s string) string { return redact.Line(redact.String(s), 300) }

func orElse(s, alt string) string {
	if s == "" {
		return alt
	}
	return s
}
