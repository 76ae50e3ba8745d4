package sessions_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/harness"
	"github.com/agent-knock-knock/akk/internal/harness/launch"
	"github.com/agent-knock-knock/akk/internal/harness/sessions"
)

// killer ends every agent a moment after its start.
type killer struct {
	*launch.Local
	after time.Duration
}

func (k *killer) Start(ctx context.Context, spec launch.Spec) (*launch.Process, error) {
	p, err := k.Local.Start(ctx, spec)
	if err == nil {
		time.AfterFunc(k.after, p.Kill)
	}
	return p, err
}

// An agent that dies while it starts, at any moment: the session never was, or it failed; the
// server goes on.
func TestAnAgentThatDiesWhileItStartsLeavesNoSessionAndTheServerGoesOn(t *testing.T) {
	w := newWorld(t)
	w.stop()
	k := &killer{Local: w.launch}
	w.open(sessions.On(k))
	for i := range 40 {
		k.after = time.Duration(i) * 3 * time.Millisecond
		id := fmt.Sprint("s", i)
		_, err := w.svc.Create(w.ctx, w.launchOf(id, "--slow-new", "30ms"))
		switch {
		case err == nil: // it died a moment later
			w.session(id, "failed", func(st sessions.SessionStatus) bool { return st.State == harness.StateFailed })
		case !fault.Is(err, harness.Transport):
			t.Errorf("after %v: %v (%s)", k.after, err, fault.CodeOf(err))
		default:
			_, err := w.svc.Status(w.ctx, id)
			w.refused(err, harness.UnknownSession)
		}
	}
	if n := w.svc.Live(); n != 0 {
		t.Errorf("%d sessions are live", n)
	}
}
