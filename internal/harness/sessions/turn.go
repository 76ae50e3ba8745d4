package sessions

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/harness"
	"github.com/agent-knock-knock/akk/internal/harness/acp"
)

// quarantine is how long after the end of a turn its agent may still send what belongs to
// it. The next prompt waits for that long, so that late words never become its answer.
const quarantine = 250 * time.Millisecond

// turn is one message from its acceptance to the agent's answer of the prompt. live.mu
// guards it.
type turn struct {
	msg        harness.Message
	text       string // until the prompt is written
	transcript acp.Transcript
	rejected   []harness.Rejected
	sent       bool
	cancelling bool
	reason, by string        // of a cancel that we asked for
	late       bool          // the prompt settled without a word; the words may follow
	kick       chan struct{} // a question opened or ended
	done       chan struct{} // the prompt is settled, or its agent is gone
}

func newTurn(m harness.Message, text string) *turn {
	return &turn{msg: m, text: text, kick: make(chan struct{}, 1), done: make(chan struct{})}
}

func (t *turn) poke() {
	select {
	case t.kick <- struct{}{}:
	default:
	}
}

// move applies an event to the message. It reports false when the message does not know it.
func (t *turn) move(l *live, e harness.MessageEvent) bool {
	next, ok := t.msg.Moved(e, l.now())
	if !ok {
		return false
	}
	t.msg = next
	l.facts.message, l.facts.visible = &next, true
	l.svc.nudge()
	return true
}

// begin writes the prompt, once. The commit that accepted the message came before.
func (l *live) begin(t *turn) {
	if l.turn != t || t.msg.State.Terminal() || t.sent {
		return
	}
	t.sent = true
	text := t.text
	t.text = ""
	if _, err := l.conn.StartPrompt(l.rec.AgentSessionID, t.msg.ID, acp.Text(text)); err != nil {
		// The agent got nothing, so nothing has to settle.
		l.finish(t, harness.MessageBroken{Problem: *problemOf(err)})
		l.over(t)
		return
	}
	t.move(l, harness.MessageStarted{})
}

// finish moves the message to its end and keeps everything that the agent did until then.
func (l *live) finish(t *turn, e harness.MessageEvent) {
	if t.msg.State.Terminal() {
		return
	}
	l.dropQuestions(t.msg.ID)
	sum := t.transcript.Summary()
	m := t.msg
	m.Result = resultOf(sum, m.Result, l.rec.AgentSessionID)
	m.Unsupported, m.Rejected = sum.Unsupported, t.rejected
	t.msg = m
	if !t.move(l, e) {
		return
	}
	l.event(harness.EventSettled, t.msg.ID, settledData(t.msg), true)
}

// over frees the session after the prompt's answer, or after its agent's end.
func (l *live) over(t *turn) {
	if l.turn != t {
		return
	}
	l.turn, l.settledAt, l.usedAt = nil, l.now(), l.now()
	l.facts.visible = true
	close(t.done)
}

// watch bounds the turn: the agent's own time, which stands still while a person is asked,
// and the time of a question.
func (l *live) watch(ctx context.Context, t *turn) {
	left := l.svc.cfg.Transport.TurnTimeoutSeconds.Duration()
	for {
		l.mu.Lock()
		waiting := l.openQuestions(t.msg.ID)
		terminal := t.msg.State.Terminal()
		l.mu.Unlock()
		if terminal {
			return
		}
		began, limit := l.svc.clock.Now(), left
		if len(waiting) > 0 {
			limit = 0
			if at := waiting[0].ExpiresAt; at != nil {
				limit = max(at.Sub(began), time.Millisecond)
			}
		}
		timer, stop := l.svc.after(limit)
		select {
		case <-ctx.Done():
			stop()
			return
		case <-t.done:
			stop()
			return
		case <-t.kick:
			stop()
			if len(waiting) == 0 {
				left = max(left-l.svc.clock.Now().Sub(began), time.Millisecond)
			}
		case <-timer:
			stop()
			if len(waiting) > 0 {
				l.expire(waiting[0])
			} else {
				l.timeOut(t)
				return
			}
		}
	}
}

// timeOut ends a message whose agent took too long, and then asks the agent to stop.
func (l *live) timeOut(t *turn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.turn != t || t.msg.State.Terminal() {
		return
	}
	limit := l.svc.cfg.Transport.TurnTimeoutSeconds.Duration()
	l.finish(t, harness.MessageBroken{Problem: harness.Problem{Code: harness.OutputTimeout, Message: "the agent did not end its turn within " + limit.String()}})
	l.cancelTurn(t, "", "")
}

// cancelTurn asks the agent to stop and bounds the wait for its answer. Every open question
// of the turn is answered as cancelled first: agents never settle otherwise.
func (l *live) cancelTurn(t *turn, reason, by string) {
	if t.cancelling {
		return
	}
	t.cancelling, t.reason, t.by = true, reason, by
	l.facts.visible = true
	if !t.sent { // the prompt is still held back: the agent never hears of it
		l.finish(t, harness.MessageDropped{Reason: reason, By: by})
		l.over(t)
		_ = l.flush() // retried by the loop
		return
	}
	for _, a := range l.openQuestions(t.msg.ID) {
		t.rejected = append(t.rejected, harness.Rejected{RequestID: a.ID, Title: a.Message, Routed: string(harness.RoutedCancelled)})
		l.endQuestion(a, harness.QuestionAnswered, harness.RoutedCancelled, harness.EventAnswered)
	}
	_, err := l.conn.Cancel(l.rec.AgentSessionID)
	if err != nil {
		l.svc.log.Warn("the agent cannot be told to stop", "session", l.id, "error", err)
	}
	_ = l.flush() // retried by the loop
	l.svc.group.Go(func(ctx context.Context) { l.settleOrEnd(ctx, t) })
}

// settleOrEnd ends the agent when it does not obey a cancel: nothing else tells where its
// turn ends.
func (l *live) settleOrEnd(ctx context.Context, t *turn) {
	limit := l.svc.cfg.Transport.TurnCancelTimeoutSeconds.Duration()
	timer, stop := l.svc.after(limit)
	defer stop()
	select {
	case <-t.done:
	case <-ctx.Done():
	case <-timer:
		l.lose(ctx, &harness.Problem{Code: harness.CancelTimeout, Message: "the agent did not stop within " + limit.String() + " and was ended"})
	}
}

// settled is the agent's answer to the prompt.
func (l *live) settled(e *acp.Settled) {
	t := l.turn
	if t == nil || t.msg.ID != e.Turn {
		return
	}
	ev := harness.MessageSettled{StopReason: string(e.Result.StopReason), CancelReason: t.reason, CancelledBy: t.by}
	loggedOut := false
	if e.Err != nil {
		code := fault.CodeOf(e.Err)
		if code != acp.RPCFailed && code != acp.AuthRequired {
			return // the pipe ended; Closed says so next
		}
		ev.Failure = problemOf(e.Err)
		if loggedOut = code == acp.AuthRequired; loggedOut {
			ev.Failure.Detail["session_id"], ev.Failure.Detail["next_action"] = l.id, "authenticate"
		}
	}
	if u := usageOf(e.Result.Usage); u != nil {
		t.msg.Result = &harness.Result{Usage: u}
	}
	if e.Err == nil && e.Result.StopReason == acp.EndTurn && !t.cancelling && !t.msg.State.Terminal() && t.transcript.Summary().Text == "" {
		t.late = true
		l.svc.group.Go(func(ctx context.Context) { l.settleLate(ctx, t, ev) })
		return
	}
	l.conclude(t, ev, loggedOut)
}

// settleLate gives an agent that answered without a word a moment: some send the words
// after the answer.
func (l *live) settleLate(ctx context.Context, t *turn, ev harness.MessageSettled) {
	timer, stop := l.svc.after(quarantine)
	defer stop()
	select {
	case <-ctx.Done():
	case <-timer:
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.turn == t {
		ev.CancelReason, ev.CancelledBy = "", "" // it had ended before
		l.conclude(t, ev, false)
		l.settledAt = time.Time{} // the quarantine is over already
	}
}

func (l *live) conclude(t *turn, ev harness.MessageSettled, loggedOut bool) {
	l.finish(t, ev)
	l.over(t)
	if loggedOut && !l.ending {
		l.moved(harness.SessionLoggedOut, nil)
	}
	_ = l.flush() // retried by the loop; until then nobody hears of the end
}

// resultOf is what a message left behind. before holds what the prompt's answer said.
func resultOf(s acp.Summary, before *harness.Result, agentSession string) *harness.Result {
	r := &harness.Result{Text: s.Text, Tools: []harness.Tool{}, ChangedFiles: s.ChangedFiles, AgentSessionID: agentSession}
	for _, m := range s.Messages {
		r.Messages = append(r.Messages, harness.Text{ID: m.ID, Text: m.Text})
	}
	for _, t := range s.Tools {
		r.Tools = append(r.Tools, toolOf(t))
	}
	if before != nil {
		r.Usage = before.Usage
	}
	if s.Context != nil && len(s.Context.Cost) > 0 {
		var cost struct {
			Amount   float64 `json:"amount"`
			Currency string  `json:"currency"`
		}
		if json.Unmarshal(s.Context.Cost, &cost) == nil && cost.Amount > 0 {
			if r.Usage == nil {
				r.Usage = &harness.Usage{}
			}
			r.Usage.Cost, r.Usage.Money = cost.Amount, cost.Currency
		}
	}
	return r
}

func toolOf(t acp.ToolState) harness.Tool {
	out := harness.Tool{ID: t.ID, Title: t.Title, Kind: t.Kind, Status: t.Status, RawInput: t.RawInput, Output: t.Output}
	for _, loc := range t.Locations {
		out.Locations = append(out.Locations, harness.Location{Path: loc.Path, Line: loc.Line})
	}
	for _, c := range t.Content {
		if c.Type == "diff" && !slices.Contains(out.Changed, c.Path) {
			out.Changed = append(out.Changed, c.Path)
		}
	}
	return out
}

func usageOf(u *acp.Usage) *harness.Usage {
	if u == nil {
		return nil
	}
	n := func(p *int64) int64 {
		if p == nil {
			return 0
		}
		return *p
	}
	return &harness.Usage{Input: n(u.Input), Output: n(u.Output), Cached: n(u.CacheRead), Thought: n(u.Thought), Total: n(u.Total)}
}
