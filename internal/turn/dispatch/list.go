package dispatch

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	"github.com/agent-knock-knock/akk/internal/discover"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/redact"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/turn"
	"github.com/agent-knock-knock/akk/internal/turn/turnsql"
)

// Page sizes of a list.
const (
	DefaultPage = 50
	MaxPage     = 200
	// turnsShown bounds the Turns without a visible terminal.
	turnsShown = 100
)

// ListInput filters and pages a list.
type ListInput struct {
	Agent  string // "" for all
	State  string // idle, working, awaiting_approval, unknown; "" for all
	Cursor string
	Limit  int // 0: DefaultPage
}

// Action is one tool call that is possible now, with its arguments filled in.
type Action struct {
	Tool            string         `json:"tool"`
	Arguments       map[string]any `json:"arguments"`
	MissingRequired []string       `json:"missing_required,omitempty"`
	// NeedsPerson: a model must ask before it calls this.
	NeedsPerson bool `json:"requires_explicit_user_confirmation,omitempty"`
}

// TerminalRow is one live agent.
type TerminalRow struct {
	TerminalID          ids.TerminalID    `json:"terminal_id"`
	ShortRef            string            `json:"short_ref"`
	Agent               string            `json:"agent"`
	AgentVersion        string            `json:"agent_version,omitempty"`
	Mode                string            `json:"mode,omitempty"`
	Channel             turn.Channel      `json:"channel"`
	State               discover.State    `json:"activity_state"`
	Reason              string            `json:"activity_reason,omitempty"`
	ScreenState         string            `json:"screen_state"`
	NativeIdentityState string            `json:"native_identity_state"`
	DurableState        string            `json:"durable_activity_state"`
	NativeThreadID      string            `json:"native_thread_id,omitempty"`
	Workspace           string            `json:"workspace"`
	Target              string            `json:"target"`
	PID                 int               `json:"pid"`
	SessionID           ids.SessionID     `json:"session_id,omitempty"`
	CurrentTurn         *TurnRow          `json:"current_turn,omitempty"`
	RecentTurn          *TurnRow          `json:"recent_turn,omitempty"`
	Actions             map[string]Action `json:"available_actions"`
}

// TurnRow is a Turn in short.
type TurnRow struct {
	TurnID     ids.TurnID        `json:"turn_id"`
	SessionID  ids.SessionID     `json:"session_id"`
	TerminalID ids.TerminalID    `json:"terminal_id"`
	Agent      string            `json:"agent"`
	Status     turn.Status       `json:"status"`
	Submission turn.Stage        `json:"submission"`
	Request    string            `json:"request"`
	Reason     string            `json:"reason,omitempty"`
	CreatedAt  time.Time         `json:"created_at"`
	UpdatedAt  time.Time         `json:"updated_at"`
	Actions    map[string]Action `json:"available_actions,omitempty"`
}

// StoreState says what the Store allows.
type StoreState struct {
	Readable bool   `json:"readable"`
	Writable bool   `json:"writable"`
	Reason   string `json:"reason,omitempty"`
}

// ScanState says how complete the scan was.
type ScanState struct {
	Servers   int                `json:"tmux_servers"`
	Terminals int                `json:"terminal_count"`
	Problems  []discover.Problem `json:"problems,omitempty"`
}

// ListResult is the answer of list. It holds what is true now; field meanings are in the
// tool's description and schema, not here.
type ListResult struct {
	Terminals   []TerminalRow `json:"terminals"`
	Unavailable []TurnRow     `json:"unavailable_managed_turns,omitempty"`
	Store       StoreState    `json:"store"`
	Scan        ScanState     `json:"terminal_scan"`
	NextCursor  string        `json:"next_cursor,omitempty"`
}

// List shows every live agent terminal and the Turns that need attention. It writes
// nothing and works on a Store of a newer release.
func (s *Service) List(ctx context.Context, in ListInput) (ListResult, error) {
	start, err := decodeCursor(in.Cursor)
	if err != nil {
		return ListResult{}, err
	}
	limit := in.Limit
	if limit <= 0 {
		limit = DefaultPage
	}
	limit = min(limit, MaxPage)
	scan, err := s.Scanner.Scan(ctx, discover.Options{Screens: true})
	if err != nil {
		return ListResult{}, err
	}
	facts, err := s.listFacts(ctx, scan)
	if err != nil {
		return ListResult{}, err
	}
	out := ListResult{Terminals: []TerminalRow{}, Store: s.storeState(),
		Scan: ScanState{Servers: scan.Servers, Terminals: len(scan.Terminals), Problems: scan.Problems}}
	for _, t := range scan.Terminals {
		row := s.terminalRow(t, facts)
		if (in.Agent != "" && in.Agent != row.Agent) || (in.State != "" && in.State != string(row.State)) || string(t.ID) <= start {
			continue
		}
		out.Terminals = append(out.Terminals, row)
	}
	out.page(limit)
	if start == "" {
		out.Unavailable = s.unavailable(facts, scan)
	}
	return out, nil
}

// page orders the rows by id, which is stable across calls, and cuts the page.
func (r *ListResult) page(limit int) {
	sortRows(r.Terminals)
	if len(r.Terminals) > limit {
		r.NextCursor = base64.RawURLEncoding.EncodeToString([]byte(r.Terminals[limit-1].TerminalID))
		r.Terminals = r.Terminals[:limit]
	}
}

func decodeCursor(c string) (string, error) {
	b, err := base64.RawURLEncoding.DecodeString(c)
	if err != nil || len(b) > 4096 {
		return "", fault.New(fault.Invalid, "dispatch.list", "the cursor is not one that list gave").WithHint("call list without a cursor")
	}
	return string(b), nil
}

// listFacts is what the Store knows of a scan, read in one transaction.
type listFacts struct {
	held     map[string]turnsql.Row
	recent   map[string]turnsql.Row
	sessions map[string]turn.Session
}

func (s *Service) listFacts(ctx context.Context, scan discover.Scan) (listFacts, error) {
	keys := make([]string, len(scan.Terminals))
	for i, t := range scan.Terminals {
		keys[i] = t.Key()
	}
	f := listFacts{held: map[string]turnsql.Row{}}
	if s.DB == nil {
		return f, nil // no Store yet: terminals are shown all the same
	}
	err := s.DB.View(ctx, func(tx *store.Tx) (err error) {
		held, err := turnsql.Blocking(tx)
		if err != nil {
			return err
		}
		for _, r := range held {
			f.held[r.Terminal] = r
		}
		if f.recent, err = turnsql.NewestOn(tx, keys); err != nil {
			return err
		}
		f.sessions, err = turnsql.BoundSessions(tx, keys)
		return err
	})
	return f, err
}

// unavailable returns the Turns that keep a terminal which is not there now.
func (s *Service) unavailable(f listFacts, scan discover.Scan) []TurnRow {
	seen := map[string]bool{}
	for _, t := range scan.Terminals {
		seen[t.Key()] = true
	}
	var out []TurnRow
	for key, r := range f.held {
		if !seen[key] {
			row := turnRow(r.Turn)
			row.Actions = s.turnActions(r.Turn)
			out = append(out, row)
		}
	}
	sortTurns(out)
	return out[:min(len(out), turnsShown)]
}

func (s *Service) terminalRow(t discover.Terminal, f listFacts) TerminalRow {
	state, reason := discover.Combine(t.Native, t.Screen)
	if t.Conflict != "" {
		state, reason = discover.Unknown, t.Conflict
	}
	row := TerminalRow{
		TerminalID: t.ID, ShortRef: ids.ShortRef(string(t.ID)), Agent: t.Adapter.Kind(), AgentVersion: t.Native.Version, Mode: t.Native.Mode,
		Channel: t.Native.Channel, State: state, Reason: redact.Line(redact.String(reason), 300),
		ScreenState: string(t.Screen.State), NativeIdentityState: string(t.Native.Thread), DurableState: string(t.Native.Activity),
		NativeThreadID: t.Native.ThreadID, Workspace: strings.ToValidUTF8(t.Ref.Cwd, "\uFFFD"), Target: t.Ref.Endpoint.Target, PID: t.Ref.Process.PID,
		SessionID: f.sessions[t.Key()].ID, Actions: map[string]Action{},
	}
	held, busy := f.held[t.Key()]
	if busy {
		current := turnRow(held.Turn)
		row.CurrentTurn = &current
		row.Actions = s.turnActions(held.Turn)
	} else {
		row.Actions["status"] = Action{Tool: toolStatus, Arguments: map[string]any{"terminal_id": t.ID}}
		if r, ok := f.recent[t.Key()]; ok {
			recent := turnRow(r.Turn)
			row.RecentTurn = &recent
		}
	}
	switch err := discover.Ready(t); {
	case err != nil && row.Reason == "": // idle, and yet it takes no task: a draft, a scrolled pane
		_, msg, _ := fault.Public(err)
		row.Reason = redact.Line(redact.String(msg), 300)
	case err == nil && !busy && s.DB.Writable():
		row.Actions["send"] = Action{Tool: toolSend, Arguments: map[string]any{"terminal_id": t.ID}, MissingRequired: []string{"request"}}
	}
	return row
}

// The names of the tools that results point to.
const (
	toolStatus = "agent_knock_knock_status"
	toolSend   = "agent_knock_knock_send"
	toolClose  = "agent_knock_knock_close"
)

// turnActions is what can be done with a Turn now.
func (s *Service) turnActions(t turn.Turn) map[string]Action {
	args := map[string]any{"turn_id": t.ID}
	actions := map[string]Action{"status": {Tool: toolStatus, Arguments: args}}
	if t.Status.Blocking() && t.Status != turn.Created && s.DB.Writable() {
		actions["close"] = Action{Tool: toolClose, Arguments: args, NeedsPerson: true}
	}
	return actions
}

func turnRow(t turn.Turn) TurnRow {
	return TurnRow{TurnID: t.ID, SessionID: t.SessionID, TerminalID: t.Terminal, Agent: t.Agent, Status: t.Status, Submission: t.Stage,
		Request: t.RequestSummary, Reason: t.Reason, CreatedAt: t.CreatedAt, UpdatedAt: t.UpdatedAt}
}

func (s *Service) storeState() StoreState {
	st := StoreState{Readable: s.DB != nil, Writable: s.DB.Writable()}
	if err := s.DB.CheckWritable(); err != nil {
		_, msg, hint := fault.Public(err)
		if st.Reason = msg; hint != "" {
			st.Reason = fmt.Sprintf("%s (%s)", msg, hint)
		}
	}
	return st
}
