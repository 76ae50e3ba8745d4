package sessions

import (
	"context"
	"encoding/json"
	"time"

	"github.com/agent-knock-knock/akk/internal/harness"
	"github.com/agent-knock-knock/akk/internal/harness/acp"
	"github.com/agent-knock-knock/akk/internal/harness/harnesssql"
	"github.com/agent-knock-knock/akk/internal/store"
)

// beginLater waits for the end of the quarantine of the turn before.
func (l *live) beginLater(ctx context.Context, t *turn, wait time.Duration) {
	timer, stop := l.svc.after(wait)
	defer stop()
	select {
	case <-ctx.Done():
		return
	case <-t.done:
		return
	case <-timer:
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.begin(t)
	l.svc.nudge()
}

// Cancel stops a message, the active one when no id is given, and waits until the agent has
// stopped or was ended. A message that ended is returned as it is; idle says that there was
// nothing to cancel.
func (s *Service) Cancel(ctx context.Context, session, message string) (status MessageStatus, idle bool, err error) {
	if err := harness.CheckSessionID(session); err != nil {
		return MessageStatus{}, false, err
	}
	l := s.find(session)
	if l == nil {
		if message == "" {
			_, err := s.stored(ctx, session)
			return MessageStatus{}, err == nil, err
		}
		status, err := s.MessageStatus(ctx, session, message)
		return status, false, err
	}
	l.mu.Lock()
	t := l.turn
	if message == "" && t == nil {
		l.mu.Unlock()
		return MessageStatus{}, true, nil
	}
	if t == nil || message != "" && t.msg.ID != message {
		l.mu.Unlock()
		status, err := s.MessageStatus(ctx, session, message)
		return status, false, err
	}
	if !t.msg.State.Terminal() {
		l.cancelTurn(t, harness.ReasonUser, "caller")
	}
	id := t.msg.ID
	l.mu.Unlock()
	select {
	case <-t.done:
	case <-ctx.Done(): // only the waiting ends
	}
	status, err = s.MessageStatus(ctx, session, id)
	return status, false, err
}

// Answered is what became of an answer.
type Answered struct {
	Status    string         `json:"status"`
	SessionID string         `json:"session_id"`
	MessageID *string        `json:"message_id"`
	RequestID string         `json:"request_id"`
	Routed    harness.Routed `json:"routed"`
}

// Answer gives an answer to an open question. A refused answer leaves the question open.
func (s *Service) Answer(ctx context.Context, session, request, message string, a harness.Answer) (Answered, error) {
	if err := harness.CheckSessionID(session); err != nil {
		return Answered{}, err
	}
	l := s.find(session)
	if l == nil {
		if _, err := s.stored(ctx, session); err != nil {
			return Answered{}, err
		}
		return Answered{}, harness.Refuse(harness.NoPendingRequest, "the session has no agent, so no question is open")
	}
	known := false
	if err := s.db.View(ctx, func(tx *store.Tx) (err error) {
		known, err = harnesssql.QuestionKnown(tx, session, request)
		return err
	}); err != nil {
		return Answered{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	open := make([]harness.Question, len(l.asked))
	for i, q := range l.asked {
		open[i] = q.Question
	}
	q, err := harness.Pick(open, request, message, known)
	if err != nil {
		return Answered{}, err
	}
	route, err := q.Route(a)
	if err != nil {
		return Answered{}, err
	}
	for _, b := range l.asked {
		if b.ID == q.ID {
			err = l.give(b, route)
			break
		}
	}
	if err != nil {
		return Answered{}, err
	}
	out := Answered{Status: "accepted", SessionID: session, RequestID: request, Routed: route.As}
	if q.MessageID != "" {
		out.MessageID = &q.MessageID
	}
	return out, nil
}

// give sends the answer, then records it: an answer that the agent did not take is none.
func (l *live) give(a *asked, r harness.Route) error {
	l.usedAt = l.now()
	if a.Style == harness.StyleAuth {
		return l.answerLogin(a, r)
	}
	if r.As == harness.RoutedTurnCancelled {
		if t := l.turn; t != nil && t.msg.ID == a.MessageID {
			if r.Rejected {
				t.rejected = append(t.rejected, harness.Rejected{RequestID: a.ID, Title: a.Message, Routed: string(r.As)})
			}
			l.cancelTurn(t, r.CancelReason, "caller")
		}
		return nil
	}
	if _, err := l.conn.Reply(a.ref, answerOf(r)); err != nil {
		return harness.Fail(err, harness.NoPendingRequest, "the agent does not wait for this answer any more").Advise("read message_status again")
	}
	if t := l.turn; t != nil && t.msg.ID == a.MessageID && (r.Rejected || r.As == harness.RoutedCancelled) {
		t.rejected = append(t.rejected, harness.Rejected{RequestID: a.ID, Title: a.Message, Routed: string(r.As)})
	}
	l.endQuestion(a, harness.QuestionAnswered, r.As, harness.EventAnswered)
	if a.MessageID == "" && l.login != nil {
		l.login.to(l, harness.AuthAnswered)
	}
	_ = l.flush() // retried by the loop; the agent has the answer already
	return nil
}

func answerOf(r harness.Route) acp.Answer {
	switch r.As {
	case harness.RoutedSelected:
		return acp.Select(r.OptionID)
	case harness.RoutedAccept:
		return acp.Accept(json.RawMessage(r.Content))
	case harness.RoutedDecline:
		return acp.Reject()
	}
	return acp.Dismiss()
}

// expire answers a question for which nobody came in time.
func (l *live) expire(a *asked) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range l.asked {
		if b == a {
			route, err := a.Route(harness.Answer{Word: harness.AnswerTimeout})
			if err == nil {
				err = l.give(a, route)
			}
			if err != nil {
				l.svc.log.Warn("a question cannot time out", "session", l.id, "error", err)
				l.endQuestion(a, harness.QuestionDropped, "", harness.EventWithdrawn)
			}
			return
		}
	}
}
