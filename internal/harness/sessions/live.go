package sessions

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/agent-knock-knock/akk/internal/harness"
	"github.com/agent-knock-knock/akk/internal/harness/acp"
	"github.com/agent-knock-knock/akk/internal/harness/harnesssql"
	"github.com/agent-knock-knock/akk/internal/store"
)

// live is a session that has an agent. Its fields are what is true; shown is what is stored,
// and only that is told to anybody.
//
// mu is never held while an agent is waited for: its answers reach us through Handle, which
// takes mu.
type live struct {
	svc   *Service
	id    string
	ended chan struct{} // closed when there is no agent and everything is stored or given up

	mu        sync.Mutex
	rec       harness.Session
	facts     facts
	shown     shown
	changed   chan struct{} // closed and replaced when shown changes
	process   Program
	conn      *acp.Conn
	agent     acp.Initialized
	open      acp.Session
	turn      *turn // of the message that is not terminal, or whose prompt has no answer yet
	asked     []*asked
	login     *login
	switching bool
	ending    bool // somebody ends the agent; the end of its pipe is no news
	starting  context.CancelFunc
	secrets   harness.Launch // what was asked for, with its secret values
	usedAt    time.Time
	settledAt time.Time
}

// facts are true and not stored yet.
type facts struct {
	events    []harness.Event
	message   *harness.Message
	session   bool
	visible   bool // a status shows something else afterwards
	questions []questionFact
}

type questionFact struct {
	opened *harness.Question
	id     string
	state  harness.QuestionState
	routed harness.Routed
}

func (f facts) none() bool {
	return len(f.events) == 0 && f.message == nil && !f.session && len(f.questions) == 0 && !f.visible
}

// shown is the stored truth. seq is the event number of its last visible change.
type shown struct {
	rec       harness.Session
	message   *harness.Message
	questions []harness.Question
	slot      harness.Slot
	auth      authView
	open      acp.Session
	seq       int64
}

// asked is an open question and the agent's request behind it.
type asked struct {
	harness.Question
	ref acp.Ref // 0 for a question of ours
}

// now is the time of a fact.
func (l *live) now() time.Time { return l.svc.clock.Now().UTC().Truncate(time.Millisecond) }

// event appends to the log. visible says that a status changes with it.
func (l *live) event(kind harness.EventKind, message string, data any, visible bool) {
	raw, err := json.Marshal(data)
	if err != nil { // a value of an agent that was decoded before always marshals
		raw = []byte(`{"unreadable":true}`)
	}
	l.rec.Seq++
	l.facts.events = append(l.facts.events, harness.Event{Seq: l.rec.Seq, Kind: kind, MessageID: message, At: l.now(), Data: raw})
	l.facts.visible = l.facts.visible || visible
	if len(l.facts.events) == 1 {
		l.svc.nudge()
	}
}

// write stores the facts in a transaction.
func (l *live) write(tx *store.Tx) error {
	w := writer{tx: tx, rec: &l.rec}
	for _, e := range l.facts.events {
		w.do(harnesssql.AddEvent(tx, l.id, e))
	}
	if l.facts.message != nil {
		w.message(*l.facts.message)
	}
	for _, q := range l.facts.questions {
		if q.opened != nil {
			w.do(harnesssql.AddQuestion(tx, *q.opened))
		} else {
			w.do(harnesssql.EndQuestion(tx, q.id, q.state, q.routed))
		}
	}
	w.session()
	return w.err
}

// stored follows a commit of [live.write]: what is true is shown now.
func (l *live) stored() {
	before := l.shown
	l.shown = shown{rec: l.rec, message: before.message, slot: l.slot(), auth: l.authView(), open: l.open, seq: before.seq}
	if l.facts.message != nil {
		m := *l.facts.message
		l.shown.message = &m
	}
	for _, a := range l.asked {
		l.shown.questions = append(l.shown.questions, a.Question)
	}
	if l.facts.visible {
		l.shown.seq = l.rec.Seq
	}
	l.facts = facts{}
	close(l.changed)
	l.changed = make(chan struct{})
}

// flush stores the facts now. When it fails they stay, nobody hears of them, and the flush
// loop tries again.
func (l *live) flush() error {
	if l.facts.none() {
		return nil
	}
	err := l.svc.update(l.write)
	if err != nil {
		l.svc.log.Error("the session's facts are not stored yet", "session", l.id, "error", err)
		l.svc.nudge()
		return err
	}
	l.stored()
	return nil
}

// slot is what the session does in truth.
func (l *live) slot() harness.Slot {
	d := harness.Doing{Switching: l.switching, Authenticating: l.login != nil && l.login.state.InFlight()}
	if t := l.turn; t != nil {
		if !t.msg.State.Terminal() {
			d.Message = t.msg.State
		}
		d.Unsettled, d.Cancelling = true, t.cancelling
	}
	return d.Slot()
}

// moved applies an event to the session and logs the new state.
func (l *live) moved(e harness.SessionEvent, p *harness.Problem) {
	next, ok := l.rec.Moved(e, p, l.now())
	if !ok {
		return
	}
	l.rec, l.facts.session = next, true
	l.event(harness.EventSessionState, "", stateData(next), true)
}

// openQuestions of one message, "" for those of the session.
func (l *live) openQuestions(message string) (out []*asked) {
	for _, a := range l.asked {
		if a.MessageID == message {
			out = append(out, a)
		}
	}
	return out
}

// endQuestion takes a question out of the open ones and records its end.
func (l *live) endQuestion(a *asked, state harness.QuestionState, routed harness.Routed, kind harness.EventKind) {
	l.asked = slices.DeleteFunc(l.asked, func(b *asked) bool { return b.ID == a.ID })
	l.facts.questions = append(l.facts.questions, questionFact{id: a.ID, state: state, routed: routed})
	l.event(kind, a.MessageID, map[string]any{"request_id": a.ID, "state": state, "routed": routed}, true)
	if t := l.turn; t != nil && t.msg.ID == a.MessageID {
		if len(l.openQuestions(a.MessageID)) == 0 {
			t.move(l, harness.MessageAnswered{})
		}
		t.poke()
	}
}

// dropQuestions ends what nobody can answer any more. The agent is told that nobody decided:
// it may have ended its turn over an open request, and may use the request's id again.
func (l *live) dropQuestions(message string) {
	for _, a := range l.openQuestions(message) {
		if a.ref != 0 && l.conn != nil {
			_, _ = l.conn.Reply(a.ref, acp.Dismiss()) // it may be answered, or the agent gone
		}
		l.endQuestion(a, harness.QuestionDropped, "", harness.EventWithdrawn)
	}
}

// newQuestion opens a question of the session or of its message.
func (l *live) newQuestion(q harness.Question, ref acp.Ref) *asked {
	l.rec.Questions++
	q.ID, q.SessionID, q.State, q.CreatedAt = harness.QuestionID(l.id, l.rec.Questions), l.id, harness.QuestionOpen, l.now()
	if limit := l.svc.cfg.Transport.QuestionTimeoutSeconds.Duration(); limit > 0 && q.MessageID != "" {
		at := q.CreatedAt.Add(limit)
		q.ExpiresAt = &at
	}
	a := &asked{q, ref}
	l.asked = append(l.asked, a)
	stored := q
	l.facts.questions = append(l.facts.questions, questionFact{opened: &stored})
	l.event(harness.EventAsked, q.MessageID, map[string]any{"request_id": q.ID, "kind": q.Kind, "title": q.Title}, true)
	return a
}

// writer stores records in one transaction and keeps the first error.
type writer struct {
	tx  *store.Tx
	rec *harness.Session
	err error
}

func (w *writer) do(err error) {
	if w.err == nil {
		w.err = err
	}
}

func (w *writer) message(m harness.Message) { w.do(harnesssql.SaveMessage(w.tx, m)) }
func (w *writer) session()                  { w.do(harnesssql.SaveSession(w.tx, *w.rec)) }

func (w *writer) event(kind harness.EventKind, message string, data any) {
	raw, err := json.Marshal(data)
	w.do(err)
	w.rec.Seq++
	w.do(harnesssql.AddEvent(w.tx, w.rec.ID, harness.Event{Seq: w.rec.Seq, Kind: kind, MessageID: message, At: w.tx.Now, Data: raw}))
}

func stateData(s harness.Session) any {
	return struct {
		State   harness.SessionState `json:"state"`
		Problem *harness.Problem     `json:"error,omitempty"`
	}{s.State, s.Problem}
}

func settledData(m harness.Message) any {
	return struct {
		State        harness.MessageState `json:"state"`
		Outcome      harness.Outcome      `json:"outcome,omitempty"`
		StopReason   string               `json:"stop_reason,omitempty"`
		CancelReason string               `json:"cancel_reason,omitempty"`
		Problem      *harness.Problem     `json:"error,omitempty"`
	}{m.State, m.Outcome, m.StopReason, m.CancelReason, m.Problem}
}
