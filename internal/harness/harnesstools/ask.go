package harnesstools

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/harness"
	"github.com/agent-knock-knock/akk/internal/harness/client"
	"github.com/agent-knock-knock/akk/internal/toolkit"
)

// Reasons why a question is left to the model.
const (
	hostCannotAsk    = "host_cannot_ask"
	hostAnsweredFast = "host_auto_answered"
	questionUnfit    = "question_cannot_be_shown"
	answerUnfit      = "answer_did_not_fit"
)

// progress is what a look at a message or login shows.
type progress struct {
	raw       json.RawMessage
	State     string     `json:"state"`
	Terminal  bool       `json:"terminal"`
	Questions []question `json:"questions"`
}

// asker is one conversation that may have questions: a message, or a login.
type asker interface {
	thread() thread
	look(ctx context.Context, wait time.Duration) (progress, error)
	then() string // the tool that goes on after a manual answer
}

// handled says what became of an open question.
type handled struct {
	waiting string               // the reason why it is left to the model
	inline  *toolkit.InputNeeded // it becomes the result of the call
	settled string               // its id, when it was answered by a repeated call
}

var errGone = errors.New("the question is no longer open")

// handle puts the first open question to the person, and sends the answer. Nothing is sent
// that the person did not say.
func (s *service) handle(ctx context.Context, call toolkit.Call, a asker, q question) (handled, error) {
	if s.options.Elicit == client.ElicitNever || s.mute.Load() {
		return handled{waiting: hostCannotAsk}, nil
	}
	d, ok := newDialog(q, call.Host)
	switch {
	case !call.Host.Forms() && !call.Host.URLs():
		return handled{waiting: hostCannotAsk}, nil
	case !ok:
		return handled{waiting: questionUnfit}, nil
	case call.Host.Inline():
		t := a.thread()
		t.RequestID = q.ID
		return handled{inline: &toolkit.InputNeeded{Questions: map[string]toolkit.Elicitation{q.ID: d.ask}, State: s.seal(t, time.Now())}}, nil
	}
	select {
	case s.dialog <- struct{}{}:
		defer func() { <-s.dialog }()
	case <-ctx.Done():
		return handled{}, context.Cause(ctx)
	}
	if s.mute.Load() { // another question found out
		return handled{waiting: hostCannotAsk}, nil
	}
	for attempt := 0; ; attempt++ {
		before := time.Now()
		answer, err := s.elicit(ctx, call.Host, a, d)
		switch {
		case errors.Is(err, errGone):
			return handled{}, nil
		case errors.Is(err, toolkit.ErrHostSilent):
			s.mute.Store(true)
			return handled{waiting: hostCannotAsk}, nil
		case err != nil:
			return handled{}, err
		}
		if s.robot(answer, time.Since(before)) {
			return handled{waiting: hostAnsweredFast}, nil
		}
		out, err := s.settle(ctx, a, d, answer)
		var again errAgain
		if !errors.As(err, &again) {
			return out, err
		}
		if attempt > 0 {
			return handled{waiting: answerUnfit}, nil
		}
		d = d.again(err)
	}
}

// robot notices a Host that says no by itself: no person reads that fast. It is asked no
// more. An acceptance always counts.
func (s *service) robot(a toolkit.Answer, after time.Duration) bool {
	if s.options.Elicit == client.ElicitAlways || a.Action == "accept" || after >= s.pace.Robot {
		return false
	}
	s.mute.Store(true)
	return true
}

// errLate is the end of a dialog that has a time limit.
var errLate = errors.New("the person did not answer in time")

// elicit shows one dialog and meanwhile looks whether its question is still open.
func (s *service) elicit(ctx context.Context, host toolkit.Host, a asker, d dialog) (toolkit.Answer, error) {
	open, end := context.WithCancelCause(ctx)
	defer end(nil)
	if s.options.ElicitTimeout > 0 {
		limited, stop := context.WithTimeoutCause(open, s.options.ElicitTimeout, errLate)
		defer stop()
		open = limited
	}
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		s.watch(open, a, d.question.ID, func() { end(errGone) })
	}()
	answer, err := host.Elicit(open, d.ask)
	cause := context.Cause(open)
	end(nil)
	<-watched
	switch {
	case err == nil:
		return answer, nil
	case errors.Is(cause, errLate):
		return toolkit.Answer{Action: harness.AnswerTimeout}, nil
	case errors.Is(cause, errGone):
		if d.ask.URL != "" {
			host.Elicited(d.ask.ID)
		}
		return toolkit.Answer{}, errGone
	case ctx.Err() != nil:
		return toolkit.Answer{}, context.Cause(ctx)
	}
	return toolkit.Answer{}, err
}

// watch calls gone when the question is no longer open.
func (s *service) watch(ctx context.Context, a asker, id string, gone func()) {
	tick := time.NewTicker(s.pace.Watch)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if p, err := a.look(ctx, 0); err == nil && !p.open(id) {
			gone()
			return
		}
	}
}

func (p progress) open(id string) bool {
	for _, q := range p.Questions {
		if q.ID == id {
			return true
		}
	}
	return false
}

// settle sends an answer, after one more look: an answer to a question that is gone is
// dropped.
func (s *service) settle(ctx context.Context, a asker, d dialog, answer toolkit.Answer) (handled, error) {
	r := reply{"answer": harness.AnswerTimeout}
	if answer.Action != harness.AnswerTimeout {
		var err error
		if r, err = d.answer(answer); err != nil {
			return handled{}, s.place(err, a)
		}
	}
	p, err := a.look(ctx, 0)
	if err != nil {
		return handled{}, err
	}
	if !p.open(d.question.ID) {
		return handled{}, nil
	}
	t := a.thread()
	r["session_id"], r["request_id"] = t.SessionID, d.question.ID
	if t.MessageID != "" {
		r["message_id"] = t.MessageID
	}
	_, err = s.gate.call(ctx, "answer_question", r, 0)
	switch fault.CodeOf(err) {
	case harness.NoPendingRequest, harness.RequestIDMismatch:
		return handled{}, nil // it was answered elsewhere or withdrawn
	case harness.InvalidResponse:
		return handled{}, errAgain{err}
	}
	return handled{}, err
}

// place adds to a refusal which conversation it is about.
func (s *service) place(err error, a asker) error {
	var e *harness.Error
	var again errAgain
	if errors.As(err, &again) || !errors.As(err, &e) {
		return err
	}
	t := a.thread()
	d := harness.Detail{"session_id": t.SessionID, "next_action": a.then()}
	if t.MessageID != "" {
		d["message_id"] = t.MessageID
	}
	return e.With(d)
}

// resume applies the answer that a Host sends with its repeated call.
func (s *service) resume(ctx context.Context, call toolkit.Call, a asker, t thread) (handled, error) {
	p, err := a.look(ctx, 0)
	if err != nil {
		return handled{}, err
	}
	for _, q := range p.Questions {
		if q.ID != t.RequestID {
			continue
		}
		answer, given := call.Resumed.Answers[q.ID]
		if !given {
			return handled{waiting: hostCannotAsk}, nil
		}
		if s.robot(answer, time.Since(time.UnixMilli(t.AskedAt))) {
			return handled{waiting: hostAnsweredFast}, nil
		}
		d, ok := newDialog(q, call.Host)
		if !ok {
			return handled{waiting: questionUnfit}, nil
		}
		out, err := s.settle(ctx, a, d, answer)
		var again errAgain
		if errors.As(err, &again) {
			return handled{waiting: answerUnfit}, nil
		}
		out.settled = q.ID
		return out, err
	}
	return handled{}, nil // it is no longer open
}

// waitingResult is the status with the open questions, for a model that answers itself.
func waitingResult(p progress, a asker, reason string) (any, error) {
	var out map[string]json.RawMessage
	if err := json.Unmarshal(p.raw, &out); err != nil {
		return nil, harness.Fail(err, client.InvalidReply, "the status is no object")
	}
	out["state"], out["terminal"] = quote("waiting_input"), json.RawMessage("false")
	out["next_action"] = json.RawMessage(`{"tool":"answer_question","then":` + string(quote(a.then())) + `}`)
	if reason != "" {
		detail := map[string]json.RawMessage{}
		_ = json.Unmarshal(out["detail"], &detail) // a detail of another kind is replaced
		if detail == nil {
			detail = map[string]json.RawMessage{}
		}
		detail["reason"] = quote(reason)
		b, err := json.Marshal(detail)
		if err != nil {
			return nil, harness.Fail(err, fault.Internal, "the detail cannot be written")
		}
		out["detail"] = b
	}
	return out, nil
}
