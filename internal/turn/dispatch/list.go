package dispatch

import (
	"context"
	"encoding/base64"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/agent-knock-knock/akk/internal/discover"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/outbox/outboxsql"
	"github.com/agent-knock-knock/akk/internal/turn"
	"github.com/agent-knock-knock/akk/internal/turn/turnsql"
	"github.com/agent-knock-knock/akk/internal/watch"
)

// Page sizes of a list.
const (
	DefaultPage = 50
	MaxPage     = 200
	// turnsShown bounds the Turns without a row of their own.
	turnsShown = 100
	// historyShown bounds the settled Turns of a list with All.
	historyShown = 100
)

// ListInput filters and pages a list.
type ListInput struct {
	Agent     string // "" for all
	State     string // idle, working, awaiting_approval, unknown; "" for all
	Workspace string // a directory: only agents in it or below; "" for all
	Status    string // only managed Turns in this status; "" for all
	All       bool   // settled Turns and Watches too
	Cursor    string
	Limit     int // 0: DefaultPage
}

// Watches shows Terminal Watches. The views are of the Watch's own wing.
type Watches interface {
	// List returns the active Watches, with all the settled ones too.
	List(ctx context.Context, all bool) ([]watch.View, error)
	// One returns one Watch; a missing one is fault.NotFound.
	One(ctx context.Context, id ids.WatchID) (watch.View, error)
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
	History     []TurnRow     `json:"history,omitempty"`
	Watches     []watch.View  `json:"watches,omitempty"`
	Limitations []string      `json:"limitations,omitempty"`
	Store       StoreState    `json:"store"`
	Scan        ScanState     `json:"terminal_scan"`
	NextCursor  string        `json:"next_cursor,omitempty"`
}

// List shows every live agent terminal and the Turns that need attention. It writes
// nothing and works on a Store of a newer release. What belongs to no terminal is on the
// first page only.
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
	f, err := s.readFacts(ctx, scan.Terminals, in.All)
	if err != nil {
		return ListResult{}, err
	}
	out := ListResult{Terminals: []TerminalRow{}, Store: s.storeState(),
		Scan: ScanState{Servers: scan.Servers, Terminals: len(scan.Terminals), Problems: scan.Problems}}
	var seen []SeenTerminal
	for _, t := range ordered(scan.Terminals) {
		if string(t.ID) <= start {
			continue
		}
		row, was := s.terminalRow(t, f)
		if !in.wants(row) {
			continue
		}
		if len(out.Terminals) == limit {
			out.NextCursor = base64.RawURLEncoding.EncodeToString([]byte(out.Terminals[limit-1].TerminalID))
			break
		}
		out.Terminals, seen = append(out.Terminals, row), append(seen, was)
	}
	out.Limitations = s.askSources(ctx, out.Terminals, seen)
	if start == "" {
		s.listRest(ctx, in, scan, f, &out)
	}
	return out, nil
}

// wants applies the filters.
func (in ListInput) wants(row TerminalRow) bool {
	switch {
	case in.Agent != "" && in.Agent != row.Agent:
	case in.State != "" && in.State != string(row.State):
	case in.Workspace != "" && !within(row.Workspace, in.Workspace):
	case in.Status != "" && !row.has(turn.Status(in.Status)):
	default:
		return true
	}
	return false
}

func (r TerminalRow) has(status turn.Status) bool {
	return r.CurrentTurn != nil && r.CurrentTurn.Status == status || r.CurrentTurn == nil && r.RecentTurn != nil && r.RecentTurn.Status == status
}

func (in ListInput) wantsTurn(t turn.Turn) bool {
	return (in.Agent == "" || in.Agent == t.Agent) && (in.Status == "" || in.Status == string(t.Status)) && (in.Workspace == "" || within(t.Workspace, in.Workspace))
}

// within reports whether dir is root or below it, by name.
func within(dir, root string) bool {
	root = filepath.Clean(root)
	return dir == root || strings.HasPrefix(dir, strings.TrimSuffix(root, "/")+"/")
}

// listRest adds what belongs to no row: Turns whose terminal is not there, history, Watches.
func (s *Service) listRest(ctx context.Context, in ListInput, scan discover.Scan, f facts, out *ListResult) {
	rowed := map[string]bool{} // Turns that have a row, whether or not it is on this page
	seen := map[string]bool{}
	for _, t := range scan.Terminals {
		seen[t.Key()] = true
		if r, ok := f.recent[t.Key()]; ok {
			rowed[string(r.Turn.ID)] = true
		}
	}
	if in.State == "" { // such a Turn has no activity that anybody could see
		var lost []turnsql.Row
		for key, r := range f.held {
			if !seen[key] {
				lost = append(lost, r)
			}
		}
		for _, r := range f.unheard {
			if !rowed[string(r.Turn.ID)] {
				lost = append(lost, r)
			}
		}
		out.Unavailable = s.turnRows(in, lost, f, func(r turnsql.Row) *Availability { return &Availability{Reason: unavailable(r, scan, seen)} }, turnsShown)
	}
	out.History = s.turnRows(in, f.history, f, func(turnsql.Row) *Availability { return nil }, historyShown)
	if s.Watches == nil {
		return
	}
	watches, err := s.Watches.List(ctx, in.All)
	if err != nil {
		_, msg, _ := fault.Public(err)
		out.Limitations = append(out.Limitations, "the watches are not shown: "+short(msg))
	}
	out.Watches = watches
}

func (s *Service) turnRows(in ListInput, rows []turnsql.Row, f facts, availability func(turnsql.Row) *Availability, limit int) []TurnRow {
	var out []TurnRow
	for _, r := range rows {
		if !in.wantsTurn(r.Turn) {
			continue
		}
		row := s.turnRow(r, nil, f)
		row.Availability = availability(r)
		out = append(out, row)
	}
	sortTurns(out)
	return out[:min(len(out), limit)]
}

// unavailable says why a Turn has no terminal in a scan.
func unavailable(r turnsql.Row, scan discover.Scan, seen map[string]bool) string {
	switch {
	case r.Damaged != nil:
		return "the record of this turn is damaged"
	case seen[r.Terminal]:
		return "a newer turn is shown for its terminal"
	case r.Turn.ProcessGone:
		return "the agent process ended"
	case scan.Unseen != nil:
		return short(fmt.Sprintf("not seen, and %s could not be looked at: %s", scan.Unseen.Where, scan.Unseen.What))
	}
	return "its agent is in no pane now"
}

// turnRow is a Turn in short, with what can be done with it.
func (s *Service) turnRow(r turnsql.Row, term *discover.Terminal, f facts) TurnRow {
	sent := f.sent[string(r.Turn.ID)]
	row := newTurnRow(r.Turn)
	row.Callback, row.Actions = briefView(sent), s.turnActions(r, term, sent, f.now)
	return row
}

func newTurnRow(t turn.Turn) TurnRow {
	return TurnRow{TurnID: t.ID, SessionID: t.SessionID, TerminalID: t.Terminal, Agent: t.Agent, Status: t.Status, Submission: t.Stage,
		Request: t.RequestSummary, Reason: t.Reason, CancelAsked: t.CancelPending(), CreatedAt: t.CreatedAt, UpdatedAt: t.UpdatedAt}
}

// CallbackView is the delivery of one message.
type CallbackView struct {
	MessageID     string    `json:"message_id"`
	Kind          string    `json:"kind"`
	Status        string    `json:"status"`
	Attempts      int       `json:"attempts"`
	NextAttemptAt time.Time `json:"next_attempt_at,omitzero"`
	AcceptedAt    time.Time `json:"accepted_at,omitzero"`
	LastError     string    `json:"last_error,omitempty"`
}

func briefView(b outboxsql.Brief) *CallbackView {
	if b.MessageID == "" {
		return nil
	}
	return &CallbackView{MessageID: b.MessageID, Kind: b.Kind, Status: string(b.Status), Attempts: b.Attempts,
		NextAttemptAt: b.NextAttemptAt, AcceptedAt: b.AcceptedAt, LastError: b.LastError}
}

func decodeCursor(c string) (string, error) {
	b, err := base64.RawURLEncoding.DecodeString(c)
	if err != nil || len(b) > 4096 {
		return "", fault.New(fault.Invalid, "dispatch.list", "the cursor is not one that list gave").WithHint("call list without a cursor")
	}
	return string(b), nil
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
