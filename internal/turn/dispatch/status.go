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
)

// Limits of what status shows of a screen and a journal.
const (
	screenLines  = 80
	screenBytes  = 4000
	recentEvents = 10
	traceEvents  = 200
)

// StatusInput names one Turn or one terminal.
type StatusInput struct {
	TurnID     ids.TurnID
	TerminalID ids.TerminalID
	NoScreen   bool // leave the terminal alone: what the Store knows only
	Trace      bool // the whole journal, up to traceEvents
}

// StatusResult is the answer of status.
type StatusResult struct {
	Turn        *TurnView         `json:"turn,omitempty"`
	Callbacks   []CallbackView    `json:"callback_delivery,omitempty"`
	Events      []EventView       `json:"recent_events,omitempty"`
	Terminal    *TerminalRow      `json:"terminal,omitempty"`
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

// EventView is one line of the journal.
type EventView struct {
	At     time.Time `json:"at"`
	Kind   string    `json:"kind"`
	Source string    `json:"source,omitempty"`
	Note   string    `json:"note,omitempty"`
}

// Status shows one Turn or one terminal. A terminal that cannot be reached is a
// limitation, not an error; it writes nothing.
func (s *Service) Status(ctx context.Context, in StatusInput) (StatusResult, error) {
	if (in.TurnID == "") == (in.TerminalID == "") {
		return StatusResult{}, fault.New(fault.Invalid, "dispatch.status", "give exactly one of turn_id and terminal_id").WithHint("agent_knock_knock_list shows both")
	}
	out := StatusResult{Store: s.storeState(), Actions: map[string]Action{}}
	terminal := in.TerminalID
	if in.TurnID != "" {
		if err := s.turnStatus(ctx, in, &out); err != nil {
			return out, err
		}
		terminal = out.Turn.TerminalID
	}
	if in.NoScreen {
		out.Limitations = append(out.Limitations, "the terminal was not looked at")
		return out, nil
	}
	err := s.terminalStatus(ctx, terminal, &out)
	if err != nil && in.TurnID == "" {
		return out, err
	}
	if err != nil {
		_, msg, _ := fault.Public(err)
		out.Limitations = append(out.Limitations, "the terminal is not reachable: "+msg)
	}
	return out, nil
}

func (s *Service) turnStatus(ctx context.Context, in StatusInput, out *StatusResult) error {
	limit := recentEvents
	if in.Trace {
		limit = traceEvents
	}
	return s.DB.View(ctx, func(tx *store.Tx) error {
		row, err := turnsql.Get(tx, in.TurnID)
		if err != nil {
			return err
		}
		events, err := turnsql.Events(tx, in.TurnID, limit)
		if err != nil {
			return err
		}
		deliveries, err := outboxsql.BySource(tx, "managed_turn", string(in.TurnID))
		if err != nil {
			return err
		}
		out.Turn = turnView(row.Turn)
		for _, e := range events {
			out.Events = append(out.Events, eventView(e))
		}
		for _, d := range deliveries {
			out.Callbacks = append(out.Callbacks, callbackView(d))
		}
		if row.Owner != s.Bridge && row.Turn.Status.Blocking() {
			out.Limitations = append(out.Limitations, "another Bridge owns this Turn; this one only reads it")
		}
		out.Actions = s.turnActions(row.Turn)
		return nil
	})
}

func (s *Service) terminalStatus(ctx context.Context, id ids.TerminalID, out *StatusResult) error {
	t, err := s.Scanner.Find(ctx, id)
	if err != nil {
		return err
	}
	facts, err := s.listFacts(ctx, discover.Scan{Terminals: []discover.Terminal{t}})
	if err != nil {
		return err
	}
	row := s.terminalRow(t, facts)
	out.Terminal = &row
	if out.Turn == nil {
		out.Actions = row.Actions
	}
	out.Screen = excerpt(t.Lines)
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
	v := &TurnView{TurnRow: turnRow(t), SubmissionOutcome: t.SubmissionStatus(), AgentVersion: t.AgentVersion, Mode: t.Mode, Channel: t.Channel,
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
