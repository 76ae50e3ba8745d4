package panels

import (
	"context"
	"fmt"
	"time"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/keyboard"
	"github.com/agent-knock-knock/akk/internal/tmux"
)

// Stage is how far an operation came before it could prove no more.
type Stage string

const (
	NotStarted     Stage = "not_started"     // proved: nothing was typed
	TextInjected   Stage = "text_injected"   // the command may be in the composer; Enter was not pressed
	EnterUncertain Stage = "enter_uncertain" // Enter or a later key may have been pressed
)

// Trouble is what is said instead of a result after a key was possible.
type Trouble struct {
	Stage      Stage      `json:"stage"`
	Diagnostic fault.Code `json:"diagnostic"`
	Reason     string     `json:"reason"`
	// Open names the panel that is still open, "" when none is or none is recognised.
	Open string `json:"panel_open,omitempty"`
}

// driven is what became of a pilot.
type driven struct {
	enters    int
	committed bool // a key was pressed after which a setting may have changed
	trouble   *Trouble
}

// drive types the pilot's command, presses Enter once and presses what the pilot asks
// for. An error proves that nothing was typed by it. Once begun it is not given up by the
// caller's ctx but by its own bounds, and whatever goes wrong, a panel that is recognised
// is left again.
func (s *Service) drive(ctx context.Context, ses *session, p agent.Pilot, budget time.Duration) (driven, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), budget+rescueLimit)
	defer cancel()
	var d driven
	end := s.Clock.Now().Add(budget)
	shot, err := ses.hold.Look(ctx)
	if err != nil {
		return d, err
	}
	if !shot.Screen.Free() || shot.Capture.Pane.InMode {
		return d, fault.New(ComposerNotReady, "panels.drive", "%s changed at the last moment (%s, composer %s)", ses.term.ID, shot.Screen.State, shot.Screen.Composer).
			WithHint("nothing was typed; call agent_knock_knock_list again")
	}
	p.Begin(shot.Capture)
	if p.Command() != "" {
		if err := ses.marker.put(p.Command(), s.Clock.Now()); err != nil {
			return d, err
		}
		if d.trouble, err = ses.command(ctx, p.Command()); err != nil {
			ses.marker.drop()
			return d, err
		}
		d.enters = 1
	}
	if d.trouble == nil {
		d.trouble = s.walk(ctx, ses, p, end, &d)
	}
	if d.trouble == nil {
		ses.marker.drop()
	} else if d.trouble.Stage == TextInjected {
		d.enters = 0
	} else {
		s.rescue(ctx, ses, d.trouble)
	}
	return d, nil
}

// command puts the command into the composer and presses Enter.
func (ses *session) command(ctx context.Context, text string) (*Trouble, error) {
	err := ses.hold.Paste(ctx, text)
	switch {
	case fault.Is(err, tmux.CodeInputNotSent):
		return nil, err
	case fault.Is(err, tmux.CodeInputUncertain):
		return trouble(TextInjected, TextUnproven, "tmux did not confirm the text: %s", public(err)), nil
	case fault.Is(err, fault.Timeout):
		return trouble(TextInjected, ComposerNotExact, "the composer does not show exactly %q", text), nil
	case err != nil:
		return trouble(TextInjected, ComposerDrift, "%s", public(err)), nil
	}
	err = ses.hold.Press(ctx, tmux.Enter)
	switch {
	case fault.Is(err, tmux.CodeInputNotSent):
		return trouble(TextInjected, ComposerDrift, "Enter was not pressed: %s", public(err)), nil
	case err != nil:
		return trouble(EnterUncertain, EnterUnproven, "tmux did not confirm Enter: %s", public(err)), nil
	}
	return nil, nil
}

// walk does what the pilot asks for until it is done, or until end.
func (s *Service) walk(ctx context.Context, ses *session, p agent.Pilot, end time.Time, d *driven) *Trouble {
	for {
		var step agent.Step
		shot, err := ses.hold.Await(ctx, end.Sub(s.Clock.Now()), func(shot keyboard.Shot) bool {
			step = p.Next(shot.Capture, shot.Screen)
			return step.Do != agent.DoWait
		})
		switch {
		case fault.Is(err, fault.Timeout):
			return trouble(EnterUncertain, EvidenceUnproven, "the screen did not show what was expected (%s, composer %s)", shot.Screen.State, shot.Screen.Composer)
		case err != nil:
			return trouble(EnterUncertain, EvidenceUnproven, "the panel could not be read: %s", public(err))
		case step.Do == agent.DoDone:
			return nil
		case step.Do == agent.DoFail:
			return trouble(EnterUncertain, EvidenceUnproven, "%s", step.Reason)
		case step.Do != agent.DoPress:
			return trouble(EnterUncertain, EvidenceUnproven, "the panel data is not of a known form")
		}
		err = ses.hold.Press(ctx, step.Key)
		if step.Commits && !fault.Is(err, tmux.CodeInputNotSent) {
			d.committed = true
		}
		if err != nil {
			return trouble(EnterUncertain, EnterUnproven, "%s could not be pressed: %s", step.Key, public(err))
		}
	}
}

// rescue leaves a panel that is recognised. It has its own bound.
func (s *Service) rescue(ctx context.Context, ses *session, t *Trouble) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rescueLimit)
	defer cancel()
	shot, err := ses.hold.Look(ctx)
	if err != nil {
		return
	}
	if t.Open = ses.panels.PanelShown(shot.Capture); t.Open == "" {
		return
	}
	var d driven
	if failed := s.walk(ctx, ses, ses.panels.ClosePanel(), s.Clock.Now().Add(rescueLimit), &d); failed == nil {
		t.Open = ""
		ses.marker.drop()
	}
}

func trouble(stage Stage, code fault.Code, format string, args ...any) *Trouble {
	return &Trouble{Stage: stage, Diagnostic: code, Reason: fmt.Sprintf(format, args...)}
}

func public(err error) string {
	_, msg, _ := fault.Public(err)
	return msg
}
