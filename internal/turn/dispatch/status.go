package dispatch

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/agent-knock-knock/akk/internal/discover"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/outbox"
	"github.com/agent-knock-knock/akk/internal/outbox/outboxsql"
	"github.com/agent-knock-knock/akk/internal/redact"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/turn"
	"github.com/agent-knock-knock/akk/internal/turn/turnsql"
	"github.com/agent-knock-knock/akk/internal/watch"
)

// Limits of what status shows of a screen and a journal.
const (
	screenLines  = 80
	screenBytes  = 4000
	recentEvents = 10
	traceEvents  = 200
)

// StatusInput names one Turn, one terminal or one Terminal Watch.
type StatusInput struct {
	TurnID     ids.TurnID
	TerminalID ids.TerminalID
	WatchID    ids.WatchID
	NoScreen   bool // leave the terminal alone: what the Store knows only
	Trace      bool // the whole journal, up to traceEvents
}

// StatusResult is the answer of status.
type StatusResult struct {
	Turn        *TurnView         `json:"turn,omitempty"`
	Budget      *turn.Budget      `json:"budget,omitempty"`
	Callbacks   []CallbackView    `json:"callback_delivery,omitempty"`
	Events      []EventView       `json:"recent_events,omitempty"`
	Interaction *Interaction      `json:"interaction,omitempty"`
	Terminal    *TerminalRow      `json:"terminal,omitempty"`
	Watch       *watch.View       `json:"watch,omitempty"`
	Screen      string            `json:"terminal_screen,omitempty"`
	Limitations []string          `json:"limitations,omitempty"`
	Store       StoreState        `json:"store"`
	Actions     map[string]Action `json:"available_actions"`
}

// TurnView is a Turn as a model may see it: no path of our Store, no route, no anchor.
type TurnView struct {
	TurnRow
	SubmissionOutcome string       `json:"submission_outcome"`
	AgentVersion      string       `json:"agent_version,omitempty"`
	Mode              string       `json:"mode,omitempty"`
	Channel           turn.Channel `json:"channel"`
	Workspace         string       `json:"workspace"`
	MessageID         string       `json:"message_id"`
	NativeThreadID    string       `json:"native_thread_id,omitempty"`
	NativeTurnID      string       `json:"native_turn_id,omitempty"`
	Evidence          string       `json:"evidence,omitempty"`
	Trouble           string       `json:"evidence_trouble,omitempty"`
	Prompt            *PromptView  `json:"prompt,omitempty"`
	AnswerBytes       int          `json:"answer_bytes,omitempty"`
	EnteredAt         time.Time    `json:"entered_at,omitzero"`
	AcceptedAt        time.Time    `json:"accepted_at,omitzero"`
	EndedAt           time.Time    `json:"ended_at,omitzero"`
	LastActivityAt    time.Time    `json:"last_activity_at,omitzero"`
	DeadlineAt        time.Time    `json:"deadline_at,omitzero"`
}

// PromptView is an open prompt, without the fingerprint that only the Bridge compares.
type PromptView struct {
	Kind       turn.PromptKind `json:"kind"`
	Title      string          `json:"title"`
	Detail     string          `json:"detail,omitempty"`
	Options    []string        `json:"options,omitempty"`
	Approvable bool            `json:"approvable"`
	Reason     string          `json:"reason,omitempty"`
}

// EventView is one line of the journal.
type EventView struct {
	At     time.Time `json:"at"`
	Kind   string    `json:"kind"`
	Source string    `json:"source,omitempty"`
	Note   string    `json:"note,omitempty"`
}

// Status shows one Turn, one terminal or one Watch. A terminal that cannot be reached is a
// limitation, not an error; it writes nothing. What it shows of a prompt is what the Host
// may decide about from now on.
func (s *Service) Status(ctx context.Context, in StatusInput) (StatusResult, error) {
	const op = "dispatch.status"
	out := StatusResult{Store: s.storeState(), Actions: map[string]Action{}}
	switch named := count(in.TurnID != "", in.TerminalID != "", in.WatchID != ""); {
	case named != 1:
		return StatusResult{}, fault.New(fault.Invalid, op, "give exactly one of turn_id, terminal_id and watch_id").WithHint("agent_knock_knock_list shows all of them")
	case in.WatchID != "":
		return out, s.watchStatus(ctx, in.WatchID, &out)
	case in.TurnID != "":
		return out, s.turnStatus(ctx, in, &out)
	case in.NoScreen:
		return out, fault.New(fault.Invalid, op, "a terminal is its screen: screen=false shows nothing of %s", in.TerminalID).WithHint("leave screen out, or give a turn_id")
	}
	return out, s.terminalStatus(ctx, in.TerminalID, &out)
}

func count(set ...bool) (n int) {
	for _, b := range set {
		if b {
			n++
		}
	}
	return n
}

func (s *Service) watchStatus(ctx context.Context, id ids.WatchID, out *StatusResult) error {
	if s.Watches == nil {
		return fault.New(fault.NotFound, "dispatch.status", "there is no watch %q", id).WithHint("agent_knock_knock_list shows the watches")
	}
	v, err := s.Watches.One(ctx, id)
	if err != nil {
		return err
	}
	out.Watch = &v
	for name, a := range v.Actions {
		out.Actions[name] = Action{Tool: a.Tool, Arguments: a.Arguments}
	}
	return nil
}

// turnStatus reads the Turn and, unless it was told not to, its terminal.
func (s *Service) turnStatus(ctx context.Context, in StatusInput, out *StatusResult) error {
	row, sent, err := s.turnRecord(ctx, in, out)
	if err != nil {
		return err
	}
	var term *discover.Terminal
	if in.NoScreen {
		out.Limitations = append(out.Limitations, "the terminal was not looked at")
	} else if t, err := s.Scanner.Find(ctx, row.Turn.Terminal); err != nil {
		_, msg, _ := fault.Public(err)
		out.Limitations = append(out.Limitations, "the terminal is not reachable: "+short(msg))
	} else {
		if term = &t; t.Key() != row.Turn.TerminalKey() {
			term = nil
			out.Limitations = append(out.Limitations, "the terminal runs another process than the task was sent to")
		}
		if err := s.showTerminal(ctx, t, out); err != nil {
			return err
		}
	}
	if row.Owner != s.Bridge && row.Turn.Status.Blocking() {
		out.Limitations = append(out.Limitations, "another Bridge owns this Turn; this one only reads it")
	}
	out.Actions = s.turnActions(row, term, sent, s.Clock.Now())
	out.Interaction = s.interaction(row.Turn)
	s.offerPrompt(row.Turn)
	return nil
}

// turnRecord reads what the Store holds of a Turn.
func (s *Service) turnRecord(ctx context.Context, in StatusInput, out *StatusResult) (row turnsql.Row, sent outboxsql.Brief, err error) {
	limit := recentEvents
	if in.Trace {
		limit = traceEvents
	}
	return row, sent, s.DB.View(ctx, func(tx *store.Tx) error {
		var err error
		if row, err = turnsql.Get(tx, in.TurnID); err != nil {
			return err
		}
		events, err := turnsql.Events(tx, in.TurnID, limit)
		if err != nil {
			return err
		}
		deliveries, err := outboxsql.BySource(tx, outbox.SourceTurn, string(in.TurnID))
		if err != nil {
			return err
		}
		briefs, err := outboxsql.Briefs(tx, outbox.SourceTurn, []string{string(in.TurnID)})
		if err != nil {
			return err
		}
		sent = briefs[string(in.TurnID)]
		budget := row.Turn.Budget()
		out.Turn, out.Budget = turnView(row.Turn), &budget
		for _, e := range events {
			out.Events = append(out.Events, eventView(e))
		}
		for _, d := range deliveries {
			out.Callbacks = append(out.Callbacks, callbackView(d))
		}
		return nil
	})
}

func (s *Service) terminalStatus(ctx context.Context, id ids.TerminalID, out *StatusResult) error {
	t, err := s.Scanner.Find(ctx, id)
	if err != nil {
		return err
	}
	if err := s.showTerminal(ctx, t, out); err != nil {
		return err
	}
	out.Actions = out.Terminal.Actions
	s.offerTerminal(t)
	return nil
}

// showTerminal adds the row of a terminal and its screen.
func (s *Service) showTerminal(ctx context.Context, t discover.Terminal, out *StatusResult) error {
	f, err := s.readFacts(ctx, []discover.Terminal{t}, false)
	if err != nil {
		return err
	}
	row, seen := s.terminalRow(t, f)
	rows := []TerminalRow{row}
	out.Limitations = append(out.Limitations, s.askSources(ctx, rows, []SeenTerminal{seen})...)
	out.Terminal, out.Screen = &rows[0], excerpt(t.Lines)
	return nil
}

// excerpt is the bounded, redacted tail of a screen.
func excerpt(lines []string) string {
	end := len(lines)
	for end > 0 && strings.TrimSpace(lines[end-1]) == "" {
		end--
	}
	lines = lines[max(0, end-screenLines):end]
	text := redact.String(strings.ToValidUTF8(strings.Join(lines, "\n"), "\uFFFD"))
	if len(text) > screenBytes {
		text = "…" + strings.ToValidUTF8(text[len(text)-screenBytes:], "")
	}
	return text
}

func turnView(t turn.Turn) *TurnView {
	v := &TurnView{TurnRow: newTurnRow(t), SubmissionOutcome: t.SubmissionStatus(), AgentVersion: t.AgentVersion, Mode: t.Mode, Channel: t.Channel,
		Workspace: strings.ToValidUTF8(t.Workspace, "\uFFFD"), MessageID: string(t.MessageID), NativeThreadID: t.ThreadID, NativeTurnID: t.NativeTurnID,
		Evidence: t.Evidence, Trouble: t.Trouble, AnswerBytes: t.AnswerBytes, EnteredAt: t.EnteredAt, AcceptedAt: t.AcceptedAt,
		EndedAt: t.EndedAt, LastActivityAt: t.LastActivityAt, DeadlineAt: t.NextDeadline()}
	if p := t.Prompt; p != nil {
		v.Prompt = &PromptView{Kind: p.Kind, Title: redact.String(p.Title), Detail: redact.String(p.Detail), Approvable: p.Approvable, Reason: redact.String(p.Reason)}
		for _, o := range p.Options {
			v.Prompt.Options = append(v.Prompt.Options, redact.String(o.Label))
		}
	}
	return v
}

func eventView(e turn.Event) EventView {
	v := EventView{At: e.At, Kind: string(e.Kind), Note: redact.Line(redact.String(e.Reason), 300)}
	if o := e.Observation; o != nil {
		v.Kind, v.Source = string(o.Kind), o.Source
		if o.Kind == turn.ObsTrouble || o.Kind == turn.ObsFailed {
			v.Note = redact.Line(redact.String(fmt.Sprintf("%s %s", o.Code, o.Detail)), 300)
		}
	}
	return v
}

func callbackView(d outbox.Delivery) CallbackView {
	return CallbackView{MessageID: d.Event.ID, Kind: d.Event.Kind, Status: string(d.Status), Attempts: d.Attempts,
		NextAttemptAt: d.NextAttemptAt, AcceptedAt: d.AcceptedAt, LastError: d.LastError}
}
