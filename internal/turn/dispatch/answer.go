package dispatch

import (
	"context"
	"time"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/discover"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/keyboard"
	"github.com/agent-knock-knock/akk/internal/redact"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/tmux"
	"github.com/agent-knock-knock/akk/internal/turn"
	"github.com/agent-knock-knock/akk/internal/turn/turnsql"
)

const (
	// answerInput bounds everything from the pane's lock to the key.
	answerInput = 6 * time.Second
	// takenLimit bounds the look for the effect of an answer; without it nothing is known
	// of the effect, which the monitor goes on to see.
	takenLimit = 2 * time.Second
)

// answering is one answer to the open prompt of a Turn.
type answering struct {
	turn   turn.Turn
	prompt turn.Prompt // as stored and reviewed
	option turn.PromptOption
	text   string // free text for the line that the option opens; "" for none
	answer turn.Answer
	call   *turnsql.Call // recorded with the reservation; nil for no tool call
	// check is asked again under the lock, right before the key; nil: nothing more.
	check func(context.Context, discover.Terminal, turn.Prompt) error
}

// answered is what is known after an answer that may have reached the agent.
type answered struct {
	turn  turn.Turn
	state turn.AnswerState // sent or uncertain
	taken bool             // the prompt was seen gone
	next  *turn.Prompt     // what is open instead, when the screen shows it
	via   turn.Channel
}

// answer gives an answer: lock, look, reserve, look, one key, record. An error means that
// no key was pressed; what may have been pressed is a result.
func (s *Service) answer(ctx context.Context, a answering) (answered, error) {
	ctx = context.WithoutCancel(ctx) // once begun it ends by its own bounds
	inputCtx, cancel := context.WithTimeout(ctx, answerInput)
	defer cancel()
	hold, err := s.holdTurn(inputCtx, a.turn)
	if err != nil {
		return answered{}, err
	}
	defer hold.Release()
	defer s.begin(a.turn.ID)() // a sweep must not take it for cut off
	press, via, err := s.way(a, hold)
	if err != nil {
		return answered{}, err
	}
	if _, err := s.proveOpen(inputCtx, a, hold); err != nil {
		return answered{}, err
	}
	t, err := s.reserveAnswer(ctx, a)
	if err != nil {
		return answered{}, err
	}
	live, err := s.proveOpen(inputCtx, a, hold)
	if err == nil && a.check != nil {
		err = a.check(inputCtx, hold.Terminal(), a.prompt)
	}
	if err != nil {
		s.settle(ctx, t, turn.AnswerNotSent, err)
		return answered{}, err
	}
	out := answered{state: turn.AnswerSent, via: via}
	switch err := press(inputCtx, live); {
	case notSent(err, hold):
		s.settle(ctx, t, turn.AnswerNotSent, err)
		return answered{}, err
	case err != nil:
		out.state = turn.AnswerUncertain
		out.turn = s.settle(ctx, t, turn.AnswerUncertain, err)
		return out, nil
	}
	out.turn = s.settle(ctx, t, turn.AnswerSent, nil)
	s.seeTaken(ctx, a, hold, &out)
	return out, nil
}

// notSent reports whether err proves that nothing reached the agent.
func notSent(err error, hold *keyboard.Hold) bool {
	switch fault.CodeOf(err) {
	case agent.NotSubmitted, fault.NotFound, fault.Invalid:
		return err != nil && !hold.Touched()
	}
	return false
}

// holdTurn takes the terminal of a Turn, which must be the very one that it was sent to.
func (s *Service) holdTurn(ctx context.Context, t turn.Turn) (*keyboard.Hold, error) {
	term, err := s.terminalOf(ctx, t)
	if err != nil {
		return nil, err
	}
	return s.desk().Take(ctx, term)
}

// pressing gives the answer to the prompt as the last look showed it.
type pressing func(ctx context.Context, live turn.Prompt) error

// way is how the answer reaches the agent: the agent's own server when the prompt is a
// request of it, else the choice's key, and for an answer in words the line that it opens.
func (s *Service) way(a answering, hold *keyboard.Hold) (pressing, turn.Channel, error) {
	const op = "dispatch.answer"
	if a.prompt.RequestID != "" {
		answerer, ok := hold.Terminal().Adapter.(agent.Answerer)
		if !ok || a.text != "" || a.option.Key == "" {
			return nil, "", fault.New(turn.CodeNotApprovable, op, "this request of the agent's server cannot be answered from here").
				WithHint("a person must answer it in the terminal")
		}
		return func(ctx context.Context, _ turn.Prompt) error {
			return answerer.Answer(ctx, hold.Terminal().Ref, a.turn.Anchor, a.prompt, a.option.Key)
		}, turn.ChannelCodexSocket, nil
	}
	if a.text != "" {
		return func(ctx context.Context, live turn.Prompt) error { return s.typeAnswer(ctx, a, hold, live) }, turn.ChannelKeyboard, nil
	}
	if _, err := keysOf(a.option); err != nil {
		return nil, "", err
	}
	return func(ctx context.Context, live turn.Prompt) error { return pressOption(ctx, hold, live, a.option) }, turn.ChannelKeyboard, nil
}

// keysOf are the keys of a choice.
func keysOf(o turn.PromptOption) ([]tmux.Key, error) {
	names := o.Keys
	if o.Key != "" {
		names = []string{o.Key}
	}
	keys := make([]tmux.Key, len(names))
	for i, n := range names {
		k, ok := keyNamed(n)
		if !ok {
			keys = nil
			break
		}
		keys[i] = k
	}
	if len(keys) == 0 {
		return nil, fault.New(turn.CodeNotApprovable, "dispatch.answer", "the key of the choice %q is not known", o.Label).
			WithHint("a person must answer it in the terminal")
	}
	return keys, nil
}

// sameOption finds a choice in the prompt as it is shown now.
func sameOption(live turn.Prompt, o turn.PromptOption) (turn.PromptOption, bool) {
	for _, l := range live.Options {
		if l.ID == o.ID && l.Label == o.Label && l.OneTime == o.OneTime && l.Reject == o.Reject && l.FreeText == o.FreeText {
			return l, true
		}
	}
	return o, false
}

// pressOption presses the keys that choose an option from where the marker stands now.
// Before the last of several keys it proves that the marker has come to the option.
func pressOption(ctx context.Context, hold *keyboard.Hold, live turn.Prompt, o turn.PromptOption) error {
	const op = "dispatch.answer"
	o, ok := sameOption(live, o)
	if !ok {
		return fault.New(agent.NotSubmitted, op, "the choice %q is not on the screen now", o.Label)
	}
	keys, err := keysOf(o)
	if err != nil {
		return fault.Wrap(err, agent.NotSubmitted, op, "the key of the choice %q is not known", o.Label)
	}
	last := len(keys) - 1
	for _, k := range keys[:last] {
		if err := hold.Press(ctx, k); err != nil {
			return err
		}
	}
	if last > 0 {
		if _, err := hold.Await(ctx, takenLimit, func(shot keyboard.Shot) bool {
			if shot.Screen.Prompt == nil {
				return false
			}
			now, ok := sameOption(*shot.Screen.Prompt, o)
			rest, err := keysOf(now)
			return ok && err == nil && len(rest) == 1 && rest[0] == keys[last]
		}); err != nil {
			return err
		}
	}
	return hold.Press(ctx, keys[last])
}

// typeAnswer answers in words: it opens the line, proves that it is open, pastes, proves
// that it holds exactly the text, and presses Enter.
func (s *Service) typeAnswer(ctx context.Context, a answering, hold *keyboard.Hold, live turn.Prompt) error {
	open := func(shot keyboard.Shot) bool {
		return shot.Screen.OwnWords() && shot.Screen.Prompt.Step.ID == a.prompt.Step.ID
	}
	if a.option.Label != "" || a.option.ID != "" {
		if err := pressOption(ctx, hold, live, a.option); err != nil {
			return err
		}
		if _, err := hold.Await(ctx, takenLimit, func(shot keyboard.Shot) bool { return open(shot) && shot.Screen.Composer == agent.ComposerEmpty }); err != nil {
			return err
		}
	}
	if err := hold.Paste(ctx, a.text); err != nil {
		return err
	}
	shot, err := hold.Look(ctx)
	if err == nil && (!open(shot) || hold.Terminal().Adapter.DraftMatches(shot.Screen, a.text) != agent.MatchYes) {
		err = fault.New(turn.CodeTerminal, "dispatch.answer", "the line of the question does not show the answer; Enter was not pressed")
	}
	if err != nil {
		return err
	}
	return hold.Press(ctx, tmux.Enter)
}

// keyNamed reads the key of an option as an adapter names it.
func keyNamed(name string) (tmux.Key, bool) {
	switch name {
	case "Escape":
		return tmux.Escape, true
	case "Enter":
		return tmux.Enter, true
	case "Up":
		return tmux.Up, true
	case "Down":
		return tmux.Down, true
	case "Left":
		return tmux.Left, true
	case "Right":
		return tmux.Right, true
	case "BTab":
		return tmux.BackTab, true
	case "Tab":
		return tmux.Tab, true
	}
	if r := []rune(name); len(r) == 1 && r[0] > ' ' && r[0] < 0x7f {
		return tmux.Char(r[0]), true
	}
	return tmux.Key{}, false
}

// proveOpen looks at the terminal: exactly the reviewed prompt must be open, and is
// returned. A request of the agent's server is compared there, by the server's own record.
func (s *Service) proveOpen(ctx context.Context, a answering, hold *keyboard.Hold) (turn.Prompt, error) {
	if a.prompt.RequestID != "" {
		return a.prompt, nil
	}
	shot, err := hold.Look(ctx)
	if err == nil {
		err = samePrompt(shot, a.prompt.Fingerprint, described(a.prompt))
	}
	if err != nil {
		return turn.Prompt{}, err
	}
	return *shot.Screen.Prompt, nil
}

// samePrompt refuses when another prompt than the one that was shown is open, and names
// both.
func samePrompt(shot keyboard.Shot, fingerprint, what string) error {
	const op = "dispatch.answer"
	switch live := shot.Screen.Prompt; {
	case shot.Capture.Pane.InMode:
		return fault.New(turn.CodeTerminal, op, "the pane is scrolled back (copy mode)").WithHint("leave the mode with q; no key was pressed")
	case live == nil:
		return fault.New(turn.CodePromptChanged, op, "the prompt that was shown (%s) is not open any more (%s)", what, shot.Screen.State).
			WithHint("no key was pressed; look at it with agent_knock_knock_status")
	case live.Fingerprint != fingerprint:
		return fault.New(turn.CodePromptChanged, op, "the prompt that was shown (%s) is not the one that is open (%s)", what, described(*live)).
			WithHint("no key was pressed; read the new one with agent_knock_knock_status before you decide")
	}
	return nil
}

// described names a prompt in one line.
func described(p turn.Prompt) string {
	text := p.Title
	if p.Detail != "" {
		text += ": " + p.Detail
	}
	return redact.Line(redact.String(text), 200)
}

// reserveAnswer makes the answer durable before the first key. Its check under the
// transaction is the fence: of two answers at one moment, one wins.
func (s *Service) reserveAnswer(ctx context.Context, a answering) (turn.Turn, error) {
	ctx, cancel := context.WithTimeout(ctx, recordLimit)
	defer cancel()
	return s.changeWith(ctx, a.turn.ID, func(t turn.Turn, now time.Time) (turn.Plan, error) {
		return turn.ReserveAnswer(t, a.answer, now)
	}, func(tx *store.Tx, _ turn.Turn) error {
		if a.call == nil {
			return nil
		}
		return turnsql.PutCall(tx, *a.call)
	})
}

// settle records what became of a reserved answer. What cannot be recorded stays reserved,
// and the next sweep or the next Bridge calls it uncertain; the caller is told the truth
// that is known here.
func (s *Service) settle(ctx context.Context, t turn.Turn, state turn.AnswerState, cause error) turn.Turn {
	reason := ""
	if cause != nil {
		_, reason, _ = fault.Public(cause)
		s.Log.Warn("an answer did not provably reach the agent", "turn", t.ID, "state", state, "err", cause)
	}
	ctx, cancel := context.WithTimeout(ctx, recordLimit)
	defer cancel()
	after, err := s.change(ctx, t.ID, func(t turn.Turn, now time.Time) (turn.Plan, error) {
		return turn.SettleAnswer(t, state, reason, now), nil
	})
	if err != nil {
		s.Log.Error("what became of an answer could not be recorded", "turn", t.ID, "state", state, "err", err)
		a := *t.Answer
		a.State, a.Reason = state, reason
		t.Answer = &a
		return t
	}
	return after
}

// seeTaken looks for the effect of an answer for a moment.
func (s *Service) seeTaken(ctx context.Context, a answering, hold *keyboard.Hold, out *answered) {
	fp := a.prompt.Fingerprint
	if out.via == turn.ChannelCodexSocket {
		out.taken = true // the server said so
	} else {
		shot, err := hold.Await(ctx, takenLimit, func(shot keyboard.Shot) bool { return left(shot, a.prompt) })
		if out.taken = err == nil; out.taken && shot.Screen.Prompt != nil {
			out.next = shot.Screen.Prompt
		}
	}
	if !out.taken {
		return
	}
	t, err := s.change(ctx, out.turn.ID, func(t turn.Turn, now time.Time) (turn.Plan, error) { return turn.TakeAnswer(t, fp, now), nil })
	if err != nil { // the monitor sees it too
		s.Log.Debug("the end of a prompt could not be recorded", "turn", out.turn.ID, "err", err)
		return
	}
	out.turn = t
	if err := s.Monitors.Answered(ctx, t.ID, fp); err != nil { // at worst the monitor sees it by itself
		s.Log.Debug("a monitor was not told of an answer", "turn", t.ID, "err", err)
	}
}

// left reports whether a look proves that a prompt is gone. A screen that is not
// recognised may be one that is being drawn, and a step whose line is open is still there.
func left(shot keyboard.Shot, p turn.Prompt) bool {
	switch live := shot.Screen.Prompt; {
	case shot.Screen.State == agent.ScreenIdle || shot.Screen.State == agent.ScreenWorking:
		return true
	case live == nil:
		return false
	case live.Step != nil && p.Step != nil:
		return live.Step.ID != p.Step.ID
	default:
		return live.Fingerprint != p.Fingerprint
	}
}
