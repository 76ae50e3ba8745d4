package panels

import (
	"context"
	"slices"
	"time"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/discover"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
)

// ScopeSession: a choice is for the conversation in the terminal.
const ScopeSession = "current_session"

// modelOffer is a catalogue that was shown.
type modelOffer struct {
	cat     agent.ModelCatalogue
	profile string
}

// ModelOptions is the agent's model picker as it is now. With Trouble it is nothing that
// is proved, and nothing may be chosen.
type ModelOptions struct {
	Status string `json:"status"` // observed, or uncertain
	Subject
	Scope      string         `json:"scope"`
	Effective  *agent.Setting `json:"effective"` // null when it cannot be told
	Models     []agent.Model  `json:"models"`
	ValidUntil *time.Time     `json:"valid_until,omitempty"`
	*Trouble
	DoNotRetry bool `json:"do_not_retry,omitempty"`
}

// ModelOptions reads the agent's model picker and leaves it as it was. What it returns
// may be chosen from once, within ten minutes. An error proves that nothing was typed.
func (s *Service) ModelOptions(ctx context.Context, id ids.TerminalID) (ModelOptions, error) {
	started := s.Clock.Now()
	ses, err := s.begin(ctx, id, "model_options", oneThread)
	if err != nil {
		return ModelOptions{}, err
	}
	defer ses.release()
	s.models.Void(target(ses.term))
	p := ses.panels.ReadModels()
	d, err := s.drive(ctx, ses, p, s.left(started))
	if err != nil {
		return ModelOptions{}, err
	}
	out := ModelOptions{Status: "observed", Subject: ses.subject(), Scope: ScopeSession, Models: []agent.Model{}}
	if d.trouble != nil {
		out.Status, out.Trouble, out.DoNotRetry = "uncertain", d.trouble, true
		return out, nil
	}
	cat := p.Catalogue()
	out.Models = cat.Models
	if cat.Effective.Model == "" || cat.Effective.Effort == "" { // no row has the mark: the agent says it elsewhere
		reader := ses.panels.ReadSetting()
		if d, err := s.drive(ctx, ses, reader, s.left(started)); err == nil && d.trouble == nil {
			cat.Effective = reader.Setting()
		}
	}
	if cat.Effective.Model != "" {
		out.Effective = &cat.Effective
	}
	until := s.Clock.Now().Add(10 * time.Minute)
	out.ValidUntil = &until
	s.models.Put(target(ses.term), modelOffer{cat, ses.profile})
	return out, nil
}

// left is what remains of the budget, at least enough to leave a panel.
func (s *Service) left(started time.Time) time.Duration {
	return max(s.Budget-s.Clock.Now().Sub(started), rescueLimit)
}

// The outcomes of a choice.
const (
	Changed          = "changed"
	AlreadyEffective = "already_effective"
	Uncertain        = "uncertain"
)

// ModelChange is what became of a choice of a model.
type ModelChange struct {
	Outcome string `json:"outcome"`
	Subject
	Scope     string         `json:"scope"`
	Requested agent.Setting  `json:"requested"`
	Effective *agent.Setting `json:"effective"` // read anew after the choice; null when it cannot be told
	// Defaults and DefaultsChanged are read from the agent's own configuration, in its own
	// names, before and after; both null when that cannot be read.
	Defaults        *agent.Setting `json:"new_session_defaults"`
	DefaultsChanged *bool          `json:"defaults_changed"`
	*Trouble
	DoNotRetry bool `json:"do_not_retry,omitempty"`
}

// SetModel chooses a pair out of what [Service.ModelOptions] returned for this terminal
// and thread, which one call uses up. An error proves that nothing was typed.
func (s *Service) SetModel(ctx context.Context, id ids.TerminalID, want agent.Setting) (ModelChange, error) {
	const op = "panels.set_model"
	started := s.Clock.Now()
	seen, err := s.Desk.Finder.Find(ctx, id)
	if err != nil {
		return ModelChange{}, err
	}
	cat, err := s.takeOffer(seen, want)
	if err != nil {
		return ModelChange{}, err
	}
	ses, err := s.begin(ctx, id, "set_model", oneThread)
	if err != nil {
		return ModelChange{}, err
	}
	defer ses.release()
	if target(ses.term) != target(seen) {
		return ModelChange{}, fault.New(CodeNoOffer, op, "%s shows another thread than the one whose models were shown", id).
			WithHint("nothing was typed; call agent_knock_knock_model_options again")
	}
	out := ModelChange{Outcome: Uncertain, Subject: ses.subject(), Scope: ScopeSession, Requested: want}
	before, beforeErr := ses.panels.Defaults(ctx, ses.term.Ref, ses.term.Native)
	p := ses.panels.ChooseModel(cat, want)
	d, err := s.drive(ctx, ses, p, s.left(started))
	if err != nil {
		return ModelChange{}, err
	}
	switch {
	case d.trouble != nil:
		out.Trouble = d.trouble
	case p.Already():
		out.Outcome, out.Effective = AlreadyEffective, &want
	default:
		s.proveModel(ctx, ses, &out, s.left(started))
	}
	after, afterErr := ses.panels.Defaults(ctx, ses.term.Ref, ses.term.Native)
	if beforeErr == nil && afterErr == nil {
		changed := before != after
		out.Defaults, out.DefaultsChanged = &after, &changed
	}
	out.DoNotRetry = out.Outcome == Uncertain
	return out, nil
}

// proveModel reads anew what is in effect.
func (s *Service) proveModel(ctx context.Context, ses *session, out *ModelChange, budget time.Duration) {
	reader := ses.panels.ReadSetting()
	d, err := s.drive(ctx, ses, reader, budget)
	switch {
	case err != nil:
		out.Trouble = trouble(EnterUncertain, EvidenceUnproven, "the choice was made and could not be proved: %s", public(err))
		return
	case d.trouble != nil:
		out.Trouble = d.trouble
		return
	}
	got := reader.Setting()
	if got.Model != "" {
		out.Effective = &got
	}
	if got == out.Requested {
		out.Outcome = Changed
		return
	}
	out.Trouble = trouble(EnterUncertain, EvidenceUnproven, "the choice was made, and the agent does not say that it is in effect")
}

// takeOffer uses up the offer of the terminal and checks that it has the pair. A pair that
// it does not have leaves it in place: nothing was begun.
func (s *Service) takeOffer(t discover.Terminal, want agent.Setting) (agent.ModelCatalogue, error) {
	const op = "panels.set_model"
	none := fault.New(CodeNoOffer, op, "the models of %s were not shown in the last ten minutes, or were chosen from already", t.ID).
		WithHint("nothing was typed; call agent_knock_knock_model_options first")
	o, _, ok := s.models.Get(target(t))
	if !ok {
		return agent.ModelCatalogue{}, none
	}
	i := slices.IndexFunc(o.cat.Models, func(m agent.Model) bool { return m.ID == want.Model })
	if i < 0 || !slices.Contains(o.cat.Models[i].Efforts, want.Effort) {
		return agent.ModelCatalogue{}, fault.New(fault.Invalid, op, "%s with the effort %s is not in the catalogue of %s", want.Model, want.Effort, t.ID).
			WithHint("nothing was typed; use a pair that agent_knock_knock_model_options returned")
	}
	if o, ok = s.models.Take(target(t)); !ok {
		return agent.ModelCatalogue{}, none
	}
	return o.cat, nil
}
