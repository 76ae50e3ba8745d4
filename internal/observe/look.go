package observe

import (
	"context"
	"errors"
	"time"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/tmux"
	"github.com/agent-knock-knock/akk/internal/turn"
)

// errOtherPane says that the pane id is another program's now.
var errOtherPane = errors.New("the pane holds another program now")

// look reads the screen once and emits what it says. news is true when a prompt came
// or went. A failed look is no failure of the watch: the records go on.
func (w *watch) look(ctx context.Context) (news bool, err error) {
	f := w.know()
	if !f.watched() {
		return false, nil
	}
	begun := w.Clock.Now()
	c, s, err := w.capture(ctx)
	if err != nil {
		return false, w.blind(ctx, err)
	}
	now := w.Clock.Now()
	w.mu.Lock()
	if w.facts.outdated(s.Prompt, begun) {
		w.mu.Unlock()
		return true, nil // the next look is soon
	}
	w.facts.blind = 0
	seen := w.facts.seen(s, digest(c), now)
	w.mu.Unlock()
	for _, o := range seen {
		if o.Kind == turn.ObsPrompt && !f.accepted {
			continue // it may be of what ran before; the acceptance has the screen looked at again
		}
		news = news || o.Kind != turn.ObsActivity // a busy screen changes all the time
		if err := w.emit(o); err != nil {
			return false, err
		}
	}
	switch {
	case f.draftDue(now):
		return true, w.proveDraft(ctx, s, w.unsent, turn.Observation{
			Kind: turn.ObsNotAccepted, ThreadID: w.spec.Anchor.ThreadID, Detail: "the request is still an unsent draft",
		})
	case f.givenBack():
		o := f.unended
		o.Kind, o.Log, o.Detail = turn.ObsInterrupted, nil, "the request is back in the composer, and the agent wrote no answer"
		return news, w.proveDraft(ctx, s, w.back, o)
	}
	return news, nil
}

// unsent: a draft is the request only when it is so to the letter.
func (w *watch) unsent(s agent.Screen) bool {
	return s.State != agent.ScreenDialog && w.adapter.DraftMatches(s, w.spec.Pasted) == agent.MatchYes
}

// back: the records say already that the turn ran and is over, so that a draft which the
// screen abbreviates is enough, if nothing in it contradicts.
func (w *watch) back(s agent.Screen) bool {
	return s.State == agent.ScreenIdle && s.Composer == agent.ComposerDraft && w.adapter.DraftMatches(s, w.spec.Pasted) != agent.MatchNo
}

// asked passes on a question that the agent's server reported as one whole. The terminal
// shows its steps one by one, and they are answered there by keys: when the first one is on
// the screen, that is the prompt, and the screen goes on to tell.
func (w *watch) asked(ctx context.Context, o turn.Observation) error {
	p, title := *o.Prompt, o.Prompt.Title
	o.Prompt = &p
	if p.Manual != "" {
		return w.emit(o)
	}
	for range questionLooks {
		if _, s, err := w.capture(ctx); err == nil && s.Prompt != nil && s.Prompt.Kind == turn.PromptQuestion {
			p, o.Source = *s.Prompt, sourceScreen
			err := w.emit(o)
			w.toldOnScreen(title)
			return err
		}
		if w.toldOnScreen(title) {
			return nil
		}
		t, stop := w.Clock.NewTimer(questionGap)
		select {
		case <-t:
		case <-ctx.Done():
		}
		stop()
	}
	p.Manual = "the terminal does not show the question"
	return w.emit(o)
}

// toldOnScreen is [facts.reported].
func (w *watch) toldOnScreen(title string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.facts.reported(title)
}

// capture reads and classifies the screen of the very pane of the Spec.
func (w *watch) capture(ctx context.Context) (tmux.Capture, agent.Screen, error) {
	ctx, cancel := context.WithTimeout(ctx, captureLimit)
	defer cancel()
	e := w.spec.Ref.Endpoint
	c, err := w.Screen.Capture(ctx, e.PaneID, tmux.CaptureOptions{})
	if err == nil && e.PanePID != 0 && c.Pane.PID != e.PanePID {
		err = errOtherPane
	}
	if err != nil {
		return c, agent.Screen{}, err
	}
	return c, w.adapter.Screen(c), nil
}

// blind counts looks that failed and says so once when they stay failures.
func (w *watch) blind(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil // the loop sees it
	}
	w.mu.Lock()
	w.facts.blind++
	n := w.facts.blind
	w.mu.Unlock()
	if n != blindAfter {
		return nil
	}
	detail := "the terminal could not be read"
	if _, msg, _ := fault.Public(err); fault.CodeOf(err) != fault.Internal {
		detail = msg
	} else if errors.Is(err, errOtherPane) {
		detail = errOtherPane.Error()
	}
	return w.emit(turn.Observation{Kind: turn.ObsTrouble, Source: sourceScreen, Code: CodeScreen, Detail: detail})
}

// proveDraft emits o when two captures show the same draft and it is ours. Anything less
// proves nothing (case 40): a draft that cannot be read stays pending.
func (w *watch) proveDraft(ctx context.Context, first agent.Screen, ours func(agent.Screen) bool, o turn.Observation) error {
	if !ours(first) {
		return nil
	}
	t, stop := w.Clock.NewTimer(draftGap)
	defer stop()
	select {
	case <-t:
	case <-ctx.Done():
		return nil
	}
	_, second, err := w.capture(ctx)
	if err != nil || second.Draft != first.Draft || !ours(second) {
		return nil
	}
	o.Source, o.At = sourceScreen, time.Time{}
	return w.emit(o)
}
