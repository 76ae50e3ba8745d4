package panels

import (
	"context"
	"time"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/keyboard"
	"github.com/agent-knock-knock/akk/internal/tmux"
)

// Repair is what became of a half-open panel.
type Repair struct {
	Outcome string `json:"outcome"` // restored, nothing_to_repair, or uncertain
	Subject
	Closed string `json:"closed,omitempty"` // the panel, or "composer" for a command that was not entered
	*Trouble
	DoNotRetry bool `json:"do_not_retry,omitempty"`
}

// The outcomes of a repair.
const (
	Restored        = "restored"
	NothingToRepair = "nothing_to_repair"
)

// RepairModelControl leaves a panel, or takes back a command that was not entered, that an
// interrupted operation of ours left. What was not provably left by us is a person's and
// gets no key. It changes no setting. An error proves that nothing was typed.
func (s *Service) RepairModelControl(ctx context.Context, id ids.TerminalID) (Repair, error) {
	const op = "panels.repair"
	seen, err := s.Desk.Finder.Find(ctx, id)
	if err != nil {
		return Repair{}, err
	}
	ses, err := s.hold(ctx, seen, "repair_model_control", func(ses *session) (err error) {
		p, ok := ses.term.Adapter.(agent.Panels)
		if !ok {
			return fault.New(CapabilityUnavailable, op, "the panels of %s are not known", ses.term.Adapter.Kind())
		}
		ses.panels = p
		if ses.profile, err = p.PanelProfile(ses.term.Native.Version); err != nil {
			return err
		}
		return s.free(ctx, ses.term)
	})
	if err != nil {
		return Repair{}, err
	}
	defer ses.release()
	shot, err := ses.hold.Look(ctx)
	if err != nil {
		return Repair{}, err
	}
	out := Repair{Outcome: NothingToRepair, Subject: ses.subject()}
	ours, marked := ses.marker.get(s.Clock.Now())
	open := ses.panels.PanelShown(shot.Capture)
	draft := shot.Screen.Composer == agent.ComposerDraft && marked && ses.term.Adapter.DraftMatches(shot.Screen, ours.Command) == agent.MatchYes
	switch {
	case shot.Screen.Free():
		ses.marker.drop()
		return out, nil
	case open == "" && !draft:
		return Repair{}, fault.New(ComposerNotReady, op, "%s shows nothing that a model operation leaves behind (%s)", id, shot.Screen.State).
			WithHint("nothing was typed; look at the pane")
	case !marked:
		return Repair{}, fault.New(IdentityUnverified, op, "nothing proves that the %s of %s was opened by a call; a person may be using it", open, id).
			WithHint("nothing was typed; ask the person at the pane to close it with Escape")
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.Budget+rescueLimit)
	defer cancel()
	if draft {
		out.Closed, out.Trouble = "composer", ses.takeBack(ctx, s.Budget)
	} else {
		var d driven
		out.Closed, out.Trouble = open, s.walk(ctx, ses, ses.panels.ClosePanel(), s.Clock.Now().Add(s.Budget), &d)
	}
	if out.Trouble != nil {
		out.Outcome, out.DoNotRetry = Uncertain, true
		return out, nil
	}
	ses.marker.drop()
	out.Outcome = Restored
	return out, nil
}

// takeBack clears the one line of the composer that is exactly our command.
func (ses *session) takeBack(ctx context.Context, limit time.Duration) *Trouble {
	if err := ses.hold.Press(ctx, tmux.CtrlU); err != nil {
		return trouble(EnterUncertain, EnterUnproven, "the command could not be taken back: %s", public(err))
	}
	_, err := ses.hold.Await(ctx, limit, func(s keyboard.Shot) bool {
		return s.Screen.Free()
	})
	if err != nil {
		return trouble(TextInjected, ComposerDrift, "the composer did not become empty: %s", public(err))
	}
	return nil
}
