package dispatch

import (
	"context"
	"time"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/crashpoint"
	"github.com/agent-knock-knock/akk/internal/discover"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/procinfo"
	"github.com/agent-knock-knock/akk/internal/tmux"
	"github.com/agent-knock-knock/akk/internal/turn"
)

const (
	// enterGap lies between paste and Enter: measured on real agents, an Enter in the same
	// moment as the paste is swallowed by some.
	enterGap = 100 * time.Millisecond
	// draftLimit bounds the wait for the pasted text to show in the composer.
	draftLimit = 3 * time.Second
	// draftPause lies between two looks at the composer.
	draftPause = 30 * time.Millisecond
)

// submit arms the monitor, proves the terminal once more under its lock, and submits. It
// is not given up half-way: once begun it ends by its own bounds, not by the caller's ctx.
func (s *Service) submit(ctx context.Context, sub submission) (turn.Turn, error) {
	ctx = context.WithoutCancel(ctx)
	if err := s.arm(ctx, sub); err != nil {
		return s.abort(ctx, sub, err)
	}
	crashpoint.At(crashpoint.SendArmed)
	inputCtx, cancel := context.WithTimeout(ctx, inputLimit)
	defer cancel()
	if !sub.locked {
		unlock, err := tmux.LockPane(inputCtx, s.LockDir, sub.term.Ref.Endpoint.Key())
		if err != nil {
			return s.abort(ctx, sub, err)
		}
		defer unlock()
	}
	if err := s.proveAgain(inputCtx, sub); err != nil {
		return s.abort(ctx, sub, err)
	}
	crashpoint.At(crashpoint.SendProved)
	if sub.turn.Channel == turn.ChannelCodexSocket {
		return s.submitOverSocket(ctx, inputCtx, sub)
	}
	return s.submitByKeyboard(ctx, inputCtx, sub)
}

func (s *Service) arm(ctx context.Context, sub submission) error {
	ctx, cancel := context.WithTimeout(ctx, armLimit)
	defer cancel()
	w := Watch{Turn: sub.turn, Ref: sub.term.Ref}
	if sub.turn.Channel == turn.ChannelKeyboard {
		w.Pasted = sub.pasted
	}
	return s.Monitors.Watch(ctx, w)
}

// abort records that nothing was typed and returns why.
func (s *Service) abort(ctx context.Context, sub submission, cause error) (turn.Turn, error) {
	_, msg, _ := fault.Public(cause)
	if _, err := s.record(ctx, sub, func(t turn.Turn, now time.Time) (turn.Plan, error) { return turn.Abort(t, msg, now) }); err != nil {
		s.Log.Error("an aborted submission could not be recorded", "turn", sub.turn.ID, "err", err)
	}
	return turn.Turn{}, cause
}

// record commits a step of the ladder. It has its own bound: a caller that went away must
// not leave a step out.
func (s *Service) record(ctx context.Context, sub submission, decide func(turn.Turn, time.Time) (turn.Plan, error)) (turn.Turn, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordLimit)
	defer cancel()
	return s.change(ctx, sub.turn.ID, decide)
}

// proveAgain reads all evidence of the terminal anew: same process in the same pane, same
// thread, idle, empty composer. Nothing older than this moment counts.
func (s *Service) proveAgain(ctx context.Context, sub submission) error {
	const op = "dispatch.prove"
	now, err := s.Scanner.Find(ctx, sub.term.ID)
	if err != nil {
		return err
	}
	if now.Key() != sub.term.Key() || now.Ref.Cwd != sub.term.Ref.Cwd {
		return fault.New(turn.CodeTerminal, op, "%s changed hands while the task was prepared", sub.term.ID).WithHint("call agent_knock_knock_list again")
	}
	if now.Native.ThreadID != sub.term.Native.ThreadID {
		return fault.New(turn.CodeTerminal, op, "%s shows another thread than a moment ago", sub.term.ID).WithHint("send again to follow it")
	}
	return discover.Ready(now)
}

func (s *Service) submitOverSocket(ctx, inputCtx context.Context, sub submission) (turn.Turn, error) {
	submitter, ok := sub.term.Adapter.(agent.Submitter)
	if !ok {
		return s.abort(ctx, sub, fault.New(fault.Internal, "dispatch.submit", "%s has no machine channel", sub.turn.Agent))
	}
	if _, err := s.record(ctx, sub, turn.Inject); err != nil {
		return s.abort(ctx, sub, err)
	}
	got, err := submitter.Submit(inputCtx, sub.term.Ref, sub.turn.Anchor, string(sub.turn.MessageID), sub.pasted)
	switch {
	case fault.Is(err, agent.NotSubmitted):
		return s.abort(ctx, sub, err)
	case err != nil:
		return s.uncertain(ctx, sub, "the agent's server did not confirm the request", err)
	}
	sent, err := s.record(ctx, sub, turn.Enter)
	if err != nil {
		return s.uncertain(ctx, sub, "the submission could not be recorded", err)
	}
	if got.NativeTurnID == "" {
		return sent, nil // no proof without an id; the monitor reads the acceptance in the records
	}
	t, err := s.record(ctx, sub, func(t turn.Turn, now time.Time) (turn.Plan, error) {
		return turn.Observe(t, turn.Observation{Kind: turn.ObsAccepted, At: now, Source: "socket", ThreadID: got.ThreadID, NativeTurnID: got.NativeTurnID}, now), nil
	})
	if err != nil { // the monitor sees the acceptance too
		s.Log.Error("an acceptance could not be recorded", "turn", sent.ID, "err", err)
		return sent, nil
	}
	return t, nil
}

func (s *Service) submitByKeyboard(ctx, inputCtx context.Context, sub submission) (turn.Turn, error) {
	if _, err := s.record(ctx, sub, turn.Inject); err != nil {
		return s.abort(ctx, sub, err)
	}
	crashpoint.At(crashpoint.SendInjecting)
	server, target := tmux.At(sub.term.Pane.Socket), sub.term.Pane.Target()
	if err := s.stillIdle(inputCtx, sub, server); err != nil {
		return s.abort(ctx, sub, err)
	}
	if err := server.Paste(inputCtx, target, []byte(sub.pasted)); err != nil {
		if fault.Is(err, tmux.CodeInputNotSent) {
			return s.abort(ctx, sub, err)
		}
		return s.uncertain(ctx, sub, "tmux did not confirm the paste", err)
	}
	crashpoint.At(crashpoint.SendPasted)
	err := s.proveDraft(inputCtx, sub, server)
	if err == nil {
		err = sameProcess(sub)
	}
	if err != nil {
		return s.uncertain(ctx, sub, "the text was pasted and Enter was not pressed", err)
	}
	crashpoint.At(crashpoint.SendDrafted)
	if err := server.Key(inputCtx, target, tmux.Enter); err != nil {
		if fault.Is(err, tmux.CodeInputNotSent) {
			return s.uncertain(ctx, sub, "the text was pasted and Enter was not pressed", err)
		}
		return s.uncertain(ctx, sub, "tmux did not confirm Enter", err)
	}
	crashpoint.At(crashpoint.SendEntered)
	t, err := s.record(ctx, sub, turn.Enter)
	if err != nil {
		return s.uncertain(ctx, sub, "Enter was pressed and could not be recorded", err)
	}
	crashpoint.At(crashpoint.SendSent)
	// From now on the monitor may prove that the request still is a draft. Without word
	// from us it only cannot prove that; acceptance it sees anyway.
	if err := s.Monitors.Entered(inputCtx, t.ID, t.EnteredAt); err != nil {
		s.Log.Debug("the monitor was not told of Enter", "turn", t.ID, "err", err)
	}
	return t, nil
}

// uncertain records that input was possible. It is a result, not an error, even when it
// cannot be recorded: the caller must not take it for "nothing happened". What is not
// recorded is decided by the next sweep or the next Bridge.
func (s *Service) uncertain(ctx context.Context, sub submission, reason string, cause error) (turn.Turn, error) {
	_, msg, _ := fault.Public(cause)
	reason += ": " + msg
	s.Log.Warn("submission uncertain", "turn", sub.turn.ID, "reason", reason, "err", cause)
	t, err := s.record(ctx, sub, func(t turn.Turn, now time.Time) (turn.Plan, error) {
		return turn.MarkUncertain(t, reason, now), nil
	})
	if err != nil {
		s.Log.Error("an uncertain submission could not be recorded", "turn", sub.turn.ID, "err", err)
		t = sub.turn
		t.Stage, t.Status, t.Reason = turn.Uncertain, turn.Stalled, reason
	}
	return t, nil
}

// stillIdle looks at the pane once more after text_injected was committed: a commit may
// have waited for the disk or for another process, and a person or a dialog was faster.
func (s *Service) stillIdle(ctx context.Context, sub submission, server tmux.Server) error {
	const op = "dispatch.prove"
	c, err := server.Capture(ctx, sub.term.Pane.ID, tmux.CaptureOptions{})
	if err != nil {
		return err
	}
	screen := sub.term.Adapter.Screen(c)
	if !screen.Free() {
		return fault.New(turn.CodeTerminal, op, "%s changed at the last moment (%s, composer %s)", sub.term.ID, screen.State, screen.Composer).
			WithHint("nothing was typed; call agent_knock_knock_list again")
	}
	return sameProcess(sub)
}

// sameProcess proves that the agent that was found is the one that runs: what would get
// the next key after its end is whatever the pane holds then.
func sameProcess(sub submission) error {
	alive, err := procinfo.Alive(sub.turn.Process)
	if err == nil && alive {
		return nil
	}
	e := fault.New(turn.CodeTerminal, "dispatch.prove", "the agent process of %s ended", sub.term.ID).WithHint("call agent_knock_knock_list again")
	e.Err = err
	return e
}

// proveDraft waits until the composer holds exactly what was pasted, and no dialog is
// open: Enter in a dialog approves it. A draft that the screen abbreviates is taken for
// ours when the composer was empty before and nothing contradicts it.
func (s *Service) proveDraft(ctx context.Context, sub submission, server tmux.Server) error {
	const op = "dispatch.draft"
	deadline := s.Clock.Now().Add(draftLimit)
	if err := s.pause(ctx, enterGap); err != nil {
		return err
	}
	stable := 0
	for {
		c, err := server.Capture(ctx, sub.term.Pane.ID, tmux.CaptureOptions{})
		if err != nil {
			return err
		}
		screen := sub.term.Adapter.Screen(c)
		switch {
		case c.Pane.InMode:
			return fault.New(turn.CodeTerminal, op, "the pane was scrolled back meanwhile")
		case screen.State == agent.ScreenApproval || screen.State == agent.ScreenDialog:
			return fault.New(turn.CodeTerminal, op, "a dialog opened: %s", screen.Reason)
		case screen.Composer == agent.ComposerDraft:
			switch sub.term.Adapter.DraftMatches(screen, sub.pasted) {
			case agent.MatchYes, agent.MatchUnknown:
				// Twice the same, so that a composer that is still being drawn does not count.
				if stable++; stable == 2 {
					return nil
				}
			case agent.MatchNo:
				stable = 0
			}
		default:
			stable = 0
		}
		if !s.Clock.Now().Before(deadline) {
			return fault.New(turn.CodeTerminal, op, "the composer does not show the request (%s, %s)", screen.State, screen.Composer)
		}
		if err := s.pause(ctx, draftPause); err != nil {
			return err
		}
	}
}

func (s *Service) pause(ctx context.Context, d time.Duration) error {
	timer, stop := s.Clock.NewTimer(d)
	defer stop()
	select {
	case <-timer:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
