package panels

import (
	"context"
	"slices"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
)

// PermissionOptions is what the agent may be allowed now.
type PermissionOptions struct {
	Status string `json:"status"` // observed, or uncertain
	Subject
	Scope   string             `json:"scope"`
	Current string             `json:"current,omitempty"`
	Choices []agent.Permission `json:"choices"`
	*Trouble
	DoNotRetry bool `json:"do_not_retry,omitempty"`
}

// PermissionOptions reads the agent's permission modes. What it returns may be chosen
// from once, within ten minutes. An error proves that nothing was typed.
func (s *Service) PermissionOptions(ctx context.Context, id ids.TerminalID) (PermissionOptions, error) {
	ses, err := s.begin(ctx, id, "permission_options", oneThread)
	if err != nil {
		return PermissionOptions{}, err
	}
	defer ses.release()
	s.permissions.Void(target(ses.term))
	p := ses.panels.ReadPermissions()
	d, err := s.drive(ctx, ses, p, s.Budget)
	if err != nil {
		return PermissionOptions{}, err
	}
	out := PermissionOptions{Status: "observed", Subject: ses.subject(), Scope: ScopeSession, Choices: []agent.Permission{}}
	if d.trouble != nil {
		out.Status, out.Trouble, out.DoNotRetry = Uncertain, d.trouble, true
		return out, nil
	}
	got := p.Permissions()
	out.Current, out.Choices = got.Current, got.Choices
	s.permissions.Put(target(ses.term), got)
	return out, nil
}

// PermissionChange is what became of a choice of a mode.
type PermissionChange struct {
	Outcome string `json:"outcome"`
	Subject
	Scope     string `json:"scope"`
	Requested string `json:"requested"`
	Effective string `json:"effective,omitempty"` // read anew after the choice
	*Trouble
	DoNotRetry bool `json:"do_not_retry,omitempty"`
}

// SetPermissions chooses a mode out of what [Service.PermissionOptions] returned for this
// terminal and thread, which one call uses up. A mode that takes a protection away is
// refused: a person chooses it in the pane. An error proves that nothing was typed.
func (s *Service) SetPermissions(ctx context.Context, id ids.TerminalID, mode string) (PermissionChange, error) {
	const op = "panels.set_permissions"
	started := s.Clock.Now()
	seen, err := s.Desk.Finder.Find(ctx, id)
	if err != nil {
		return PermissionChange{}, err
	}
	none := fault.New(CodeNoOffer, op, "the permissions of %s were not shown in the last ten minutes, or were chosen from already", id).
		WithHint("nothing was typed; call agent_knock_knock_permission_options first")
	offered, _, ok := s.permissions.Get(target(seen))
	if !ok {
		return PermissionChange{}, none
	}
	i := slices.IndexFunc(offered.Choices, func(c agent.Permission) bool { return c.ID == mode })
	switch {
	case i < 0:
		return PermissionChange{}, fault.New(fault.Invalid, op, "%s has no mode %s", id, mode).
			WithHint("nothing was typed; use a mode that agent_knock_knock_permission_options returned")
	case offered.Choices[i].NeedsPerson:
		return PermissionChange{}, fault.New(CodeNeedsPerson, op, "%s takes a protection away", mode).
			WithHint("nothing was typed; ask a person to choose it in the pane")
	}
	if _, ok := s.permissions.Take(target(seen)); !ok {
		return PermissionChange{}, none
	}
	ses, err := s.begin(ctx, id, "set_permissions", oneThread)
	if err != nil {
		return PermissionChange{}, err
	}
	defer ses.release()
	if target(ses.term) != target(seen) {
		return PermissionChange{}, fault.New(CodeNoOffer, op, "%s shows another thread than the one whose permissions were shown", id).
			WithHint("nothing was typed; call agent_knock_knock_permission_options again")
	}
	out := PermissionChange{Outcome: Uncertain, Subject: ses.subject(), Scope: ScopeSession, Requested: mode}
	d, err := s.drive(ctx, ses, ses.panels.ChoosePermission(offered, mode), s.left(started))
	if err != nil {
		return PermissionChange{}, err
	}
	reader := ses.panels.ReadPermissions()
	if out.Trouble = d.trouble; out.Trouble == nil {
		d, err = s.drive(ctx, ses, reader, s.left(started))
		out.Trouble = d.trouble
		if err != nil {
			out.Trouble = trouble(EnterUncertain, EvidenceUnproven, "the choice was made and could not be proved: %s", public(err))
		}
	}
	if out.Trouble == nil {
		out.Effective = reader.Permissions().Current
		switch {
		case out.Effective != mode:
			out.Trouble = trouble(EnterUncertain, EvidenceUnproven, "the choice was made, and the agent does not say that it is in effect")
		case offered.Current == mode:
			out.Outcome = AlreadyEffective
		default:
			out.Outcome = Changed
		}
	}
	out.DoNotRetry = out.Outcome == Uncertain
	return out, nil
}
