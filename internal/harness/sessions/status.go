package sessions

import (
	"context"
	"time"

	"github.com/agent-knock-knock/akk/internal/harness"
	"github.com/agent-knock-knock/akk/internal/harness/acp"
	"github.com/agent-knock-knock/akk/internal/harness/harnesssql"
	"github.com/agent-knock-knock/akk/internal/procinfo"
	"github.com/agent-knock-knock/akk/internal/store"
)

// MessageStatus is what is known of a message. Result is there once it is completed,
// Partial once it failed or was cancelled.
type MessageStatus struct {
	SessionID    string               `json:"session_id"`
	MessageID    string               `json:"message_id"`
	State        harness.MessageState `json:"state"`
	Terminal     bool                 `json:"terminal"`
	Seq          int64                `json:"seq"`
	Operation    harness.Slot         `json:"operation,omitempty"`
	SessionState harness.SessionState `json:"session_state"`
	CreatedAt    time.Time            `json:"created_at"`
	StartedAt    *time.Time           `json:"started_at"`
	FinishedAt   *time.Time           `json:"finished_at"`
	Questions    []harness.Question   `json:"questions"`
	Unsupported  []string             `json:"unsupported_events"`
	Errors       []harness.Problem    `json:"errors"`
	Error        *harness.Problem     `json:"error"`
	StopReason   string               `json:"stop_reason,omitempty"`
	Outcome      harness.Outcome      `json:"outcome,omitempty"`
	CancelReason string               `json:"cancel_reason,omitempty"`
	CancelledBy  string               `json:"cancelled_by,omitempty"`
	Rejected     []harness.Rejected   `json:"rejected_requests,omitempty"`
	Orphaned     bool                 `json:"orphaned,omitempty"`
	Persisted    bool                 `json:"persisted,omitempty"` // read from the database: the session has no agent
	AgentStopped bool                 `json:"harness_stopped,omitempty"`
	Result       *harness.Result      `json:"result,omitempty"`
	Partial      *harness.Result      `json:"partial,omitempty"`
}

// SessionStatus is what is known of a session.
type SessionStatus struct {
	SessionID      string               `json:"session_id"`
	State          harness.SessionState `json:"state"`
	Operation      harness.Slot         `json:"operation"`
	Seq            int64                `json:"seq"`
	Authenticated  *bool                `json:"authenticated"` // null when nobody asked the agent yet
	Harness        string               `json:"harness"`
	ModelID        string               `json:"model_id"`
	ModelName      string               `json:"model_name"`
	ThinkingLevel  string               `json:"thinking_level,omitempty"`
	PermissionMode string               `json:"permission_mode"`
	Cwd            string               `json:"cwd"`
	Title          string               `json:"title,omitempty"`
	AgentSessionID string               `json:"harness_session_id,omitempty"`
	AgentName      string               `json:"harness_name,omitempty"`
	AgentVersion   string               `json:"harness_version,omitempty"`
	AgentStopped   bool                 `json:"harness_stopped,omitempty"` // see stopped
	CanResume      bool                 `json:"can_resume"`
	Resumed        *bool                `json:"resumed,omitempty"` // of one that was to take up a conversation: whether it did
	ActiveMessage  string               `json:"active_message_id,omitempty"`
	Messages       int                  `json:"messages_total"`
	Questions      []harness.Question   `json:"questions"`
	Error          *harness.Problem     `json:"error,omitempty"`
	CreatedAt      time.Time            `json:"created_at"`
	UpdatedAt      time.Time            `json:"updated_at"`
	ClosedAt       *time.Time           `json:"closed_at,omitempty"`
	Models         []Value              `json:"harness_models,omitempty"`
	ConfigOptions  []ConfigOption       `json:"config_options,omitempty"`
	Modes          []Value              `json:"modes,omitempty"`
	LaunchInfo     LaunchInfo           `json:"launch_info"`
	Persisted      bool                 `json:"persisted,omitempty"`
}

// LaunchInfo is how the agent was started.
type LaunchInfo struct {
	Target         string     `json:"target"`
	Runtime        string     `json:"runtime"`
	PermissionMode string     `json:"permission_mode"`
	Cwd            string     `json:"cwd"`
	TransportPID   int        `json:"transport_pid,omitempty"`
	StartedAt      *time.Time `json:"started_at,omitempty"`
}

// Value is one value of a setting that the agent offers.
type Value struct {
	ID          string `json:"id"`
	Name        string `json:"name,omitempty"`
	Description string `json:"description,omitempty"`
}

// ConfigOption is a setting that the agent offers.
type ConfigOption struct {
	ID       string  `json:"id"`
	Name     string  `json:"name,omitempty"`
	Category string  `json:"category,omitempty"`
	Type     string  `json:"type,omitempty"`
	Current  string  `json:"current_value"`
	Values   []Value `json:"values,omitempty"`
}

func timeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func values(list []acp.Choice) (out []Value) {
	for _, c := range list {
		out = append(out, Value{c.Value, c.Name, c.Description})
	}
	return out
}

// find returns the session if it has an agent.
func (s *Service) find(id string) *live {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.live[id]
}

// stored reads a session's record.
func (s *Service) stored(ctx context.Context, id string) (rec harness.Session, err error) {
	err = s.db.View(ctx, func(tx *store.Tx) error {
		var ok bool
		if rec, ok, err = harnesssql.Session(tx, id); err == nil && !ok {
			return harness.Refuse(harness.UnknownSession, "there is no session %q", id).Advise("list_sessions shows what there is")
		}
		return err
	})
	return rec, err
}

// view is the stored truth of a live session, with the channel of its next change.
func (l *live) view() (shown, <-chan struct{}, int, time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var pid int
	var at time.Time
	if l.process != nil {
		pid, at = l.process.Started()
	}
	return l.shown, l.changed, pid, at
}

// stopped reports that a signal or a debugger holds the agent. It answers nothing until
// somebody continues or closes it; nothing is wrong with its session, so no state changes,
// and a time limit goes on. Of a process that can't be read nothing is said.
func stopped(pid int) bool {
	held, err := procinfo.Stopped(pid)
	return err == nil && held
}

// Status is what is known of a session.
func (s *Service) Status(ctx context.Context, id string) (SessionStatus, error) {
	if err := harness.CheckSessionID(id); err != nil {
		return SessionStatus{}, err
	}
	if l := s.find(id); l != nil {
		v, _, pid, at := l.view()
		st := sessionStatus(v.rec, v.slot)
		st.Seq = v.seq
		if len(v.questions) > 0 {
			st.Questions = v.questions
		}
		if v.message != nil && !v.message.State.Terminal() {
			st.ActiveMessage = v.message.ID
		}
		st.LaunchInfo.TransportPID, st.LaunchInfo.StartedAt = pid, timeOrNil(at)
		st.AgentStopped = stopped(pid)
		for _, o := range v.open.Config {
			st.ConfigOptions = append(st.ConfigOptions, ConfigOption{o.ID, o.Name, o.Category, o.Type, o.Current, values(o.Choices)})
			if o.Category == "model" {
				st.Models = values(o.Choices)
			}
		}
		if v.open.Models != nil && st.Models == nil {
			st.Models = values(v.open.Models.Available)
		}
		if v.open.Modes != nil {
			st.Modes = values(v.open.Modes.Available)
		}
		return st, nil
	}
	rec, err := s.stored(ctx, id)
	st := sessionStatus(rec, harness.SlotIdle)
	st.Persisted = true
	return st, err
}

func sessionStatus(rec harness.Session, slot harness.Slot) SessionStatus {
	var authenticated *bool
	if rec.State == harness.StateReady || rec.State == harness.StateAuthRequired {
		yes := rec.State == harness.StateReady
		authenticated = &yes
	}
	var resumed *bool
	if wanted := rec.Launch.ResumeSessionID; wanted != "" {
		same := rec.AgentSessionID == wanted
		resumed = &same
	}
	return SessionStatus{SessionID: rec.ID, State: rec.State, Resumed: resumed, Operation: slot, Seq: rec.Seq, Authenticated: authenticated, Harness: rec.Launch.Harness,
		ModelID: rec.ModelID, ModelName: rec.ModelName, ThinkingLevel: rec.Thinking, PermissionMode: rec.PermissionMode, Cwd: rec.Launch.Cwd, Title: rec.Launch.Title,
		AgentSessionID: rec.AgentSessionID, AgentName: rec.AgentName, AgentVersion: rec.AgentVersion, CanResume: rec.CanResume, Messages: rec.Messages,
		Questions: []harness.Question{}, Error: rec.Problem, CreatedAt: rec.CreatedAt, UpdatedAt: rec.UpdatedAt, ClosedAt: timeOrNil(rec.ClosedAt),
		LaunchInfo: LaunchInfo{Target: rec.Launch.Target, Runtime: rec.Launch.Runtime, PermissionMode: rec.PermissionMode, Cwd: rec.Launch.Cwd}}
}

// Sessions lists the sessions that changed last.
func (s *Service) Sessions(ctx context.Context, limit int) ([]SessionStatus, error) {
	var recs []harness.Session
	if err := s.db.View(ctx, func(tx *store.Tx) (err error) {
		recs, err = harnesssql.Sessions(tx, limit)
		return err
	}); err != nil {
		return nil, err
	}
	out := make([]SessionStatus, 0, len(recs))
	for _, rec := range recs {
		st := sessionStatus(rec, harness.SlotIdle)
		if l := s.find(rec.ID); l != nil {
			v, _, _, _ := l.view()
			st = sessionStatus(v.rec, v.slot)
			if v.message != nil && !v.message.State.Terminal() {
				st.ActiveMessage = v.message.ID
			}
		} else {
			st.Persisted = true
		}
		out = append(out, st)
	}
	return out, nil
}

// MessageStatus is what is stored of a message.
func (s *Service) MessageStatus(ctx context.Context, session, message string) (MessageStatus, error) {
	st, _, err := s.message(ctx, session, message)
	return st, err
}

// message also returns the channel of the session's next change, nil when it has no agent.
func (s *Service) message(ctx context.Context, session, message string) (MessageStatus, <-chan struct{}, error) {
	if err := harness.CheckSessionID(session); err != nil {
		return MessageStatus{}, nil, err
	}
	if err := harness.CheckMessageID(message); err != nil {
		return MessageStatus{}, nil, err
	}
	var v shown
	var changed <-chan struct{}
	l := s.find(session)
	if l != nil {
		var pid int
		v, changed, pid, _ = l.view()
		if v.message != nil && v.message.ID == message {
			st := messageStatus(*v.message, v)
			st.AgentStopped = !st.Terminal && stopped(pid)
			return st, changed, nil
		}
	}
	var m harness.Message
	err := s.db.View(ctx, func(tx *store.Tx) error {
		rec, there, err := harnesssql.Session(tx, session)
		if err != nil {
			return err
		}
		if !there {
			return harness.Refuse(harness.UnknownSession, "there is no session %q", session)
		}
		if l == nil {
			v = shown{rec: rec, seq: rec.Seq, slot: harness.SlotIdle}
		}
		var ok bool
		if m, ok, err = harnesssql.Message(tx, session, message); err == nil && !ok {
			return harness.Refuse(harness.UnknownMessage, "the session has no message %q", message)
		}
		return err
	})
	if err != nil {
		return MessageStatus{}, nil, err
	}
	st := messageStatus(m, v)
	st.Persisted = l == nil
	return st, changed, nil
}

func messageStatus(m harness.Message, v shown) MessageStatus {
	st := MessageStatus{SessionID: m.SessionID, MessageID: m.ID, State: m.State, Terminal: m.State.Terminal(), Seq: v.seq, Operation: v.slot, SessionState: v.rec.State,
		CreatedAt: m.CreatedAt, StartedAt: timeOrNil(m.StartedAt), FinishedAt: timeOrNil(m.FinishedAt), Questions: []harness.Question{}, Unsupported: []string{},
		Errors: []harness.Problem{}, Error: m.Problem, StopReason: m.StopReason, Outcome: m.Outcome, CancelReason: m.CancelReason, CancelledBy: m.CancelledBy,
		Rejected: m.Rejected, Orphaned: m.Orphaned}
	for _, q := range v.questions {
		if q.MessageID == m.ID {
			st.Questions = append(st.Questions, q)
		}
	}
	st.Unsupported = append(st.Unsupported, m.Unsupported...)
	st.Errors = append(st.Errors, m.Errors...)
	switch m.State {
	case harness.MessageCompleted:
		st.Result = m.Result
	case harness.MessageFailed, harness.MessageCancelled:
		st.Partial = m.Result
	}
	return st
}

// Wait is how long a reader waits for news. AfterSeq is the seq of what it has seen: the
// wait ends when there is something newer. Without it the wait ends when the message is
// terminal or a question is open, or when anything else changes.
type Wait struct {
	For      time.Duration
	AfterSeq *int64
}

// AwaitMessage is MessageStatus that waits for news first. A caller that goes away ends
// only its own waiting.
func (s *Service) AwaitMessage(ctx context.Context, session, message string, w Wait) (MessageStatus, error) {
	timer, stop := s.after(w.For)
	defer stop()
	var first *int64
	for {
		st, changed, err := s.message(ctx, session, message)
		if err != nil || changed == nil || st.Terminal || w.For <= 0 {
			return st, err
		}
		if w.AfterSeq != nil {
			if st.Seq > *w.AfterSeq {
				return st, nil
			}
		} else if len(st.Questions) > 0 || first != nil && st.Seq != *first {
			return st, nil
		}
		if first == nil {
			first = &st.Seq
		}
		select {
		case <-changed:
		case <-timer:
			return s.MessageStatus(ctx, session, message)
		case <-ctx.Done():
			return st, nil
		}
	}
}

// Log is a piece of a session's event log. Next is the cursor for the following call.
type Log struct {
	SessionID string          `json:"session_id"`
	Events    []harness.Event `json:"events"`
	Next      int64           `json:"next"`
	Last      int64           `json:"last"` // the newest event there is
}

// maxLogBytes bounds the data of one piece.
const maxLogBytes = 8 << 20

// Events reads the log after a cursor, and waits for the next event when there is none.
func (s *Service) Events(ctx context.Context, session string, after int64, limit int, wait time.Duration) (Log, error) {
	if err := harness.CheckSessionID(session); err != nil {
		return Log{}, err
	}
	timer, stop := s.after(wait)
	defer stop()
	for {
		var changed <-chan struct{}
		if l := s.find(session); l != nil {
			_, changed, _, _ = l.view()
		}
		out := Log{SessionID: session, Next: after}
		err := s.db.View(ctx, func(tx *store.Tx) error {
			rec, ok, err := harnesssql.Session(tx, session)
			if err != nil {
				return err
			}
			if !ok {
				return harness.Refuse(harness.UnknownSession, "there is no session %q", session)
			}
			out.Last = rec.Seq
			out.Events, err = harnesssql.Events(tx, session, after, limit, maxLogBytes)
			return err
		})
		if n := len(out.Events); n > 0 {
			out.Next = out.Events[n-1].Seq
		}
		if err != nil || len(out.Events) > 0 || changed == nil || wait <= 0 {
			return out, err
		}
		select {
		case <-changed:
		case <-timer:
			wait = 0
		case <-ctx.Done():
			return out, nil
		}
	}
}
