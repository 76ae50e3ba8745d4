package observe

import (
	"context"
	"errors"

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
	c, s, err := w.capture(ctx)
	if err != nil {
		return false, w.blind(ctx, err)
	}
	now := w.Clock.Now()
	w.mu.Lock()
	w.facts.blind = 0
	seen := w.facts.seen(s, digest(c), now)
	w.mu.Unlock()
	for _, o := range seen {
		news = news || o.Kind != turn.ObsActivity // a busy screen changes all the time
		if err := w.emit(o); err != nil {
			return false, err
		}
	}
	if !f.draftDue(now) {
		return news, nil
	}
	return true, w.proveDraft(ctx, s)
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

// proveDraft emits [turn.ObsNotAccepted] when two captures show the same draft and it is
// exactly what was pasted. Anything less proves nothing (case 40): a draft that cannot be
// read stays pending.
func (w *watch) proveDraft(ctx context.Context, first agent.Screen) error {
	if w.adapter.DraftMatches(first, w.spec.Pasted) != agent.MatchYes {
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
	if err != nil || second.Draft != first.Draft || w.adapter.DraftMatches(second, w.spec.Pasted) != agent.MatchYes {
		return nil
	}
	return w.emit(turn.Observation{
		Kind: turn.ObsNotAccepted, Source: sourceScreen, ThreadID: w.spec.Anchor.ThreadID,
		Detail: "the request is still an unsent draft",
	})
}
