package sessions

import (
	"context"
	"errors"
	"slices"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/harness"
	"github.com/agent-knock-knock/akk/internal/harness/acp"
)

// keepModel is the model_id that leaves the agent's own choice alone, unless the agent
// offers a model of this name.
const keepModel = "default"

// The names of the options for people and in what is said of an error.
const (
	optionModel    = "model"
	optionMode     = "permission_mode"
	optionThinking = "thinking_level"
)

// about says which option an error is about.
func about(option string, err error) error {
	var known *harness.Error
	if !errors.As(err, &known) {
		return err
	}
	return known.With(harness.Detail{"option": option})
}

// Change is what set_session_options asks for; an empty field stays as it is.
type Change struct {
	ModelID        string
	ThinkingLevel  string
	PermissionMode string
}

// Applied is one setting that was changed.
type Applied struct {
	Option string `json:"option"`
	From   string `json:"from"`
	To     string `json:"to"`
	Via    string `json:"via"`
}

// SetOptions changes settings of an idle session.
func (s *Service) SetOptions(ctx context.Context, session string, want Change) (SessionStatus, []Applied, error) {
	if want == (Change{}) {
		return SessionStatus{}, nil, harness.Refuse(harness.InvalidParam, "give at least one of model_id, thinking_level and permission_mode")
	}
	if want.PermissionMode != "" && !slices.Contains(harness.PermissionModes, want.PermissionMode) {
		return SessionStatus{}, nil, harness.Refuse(harness.InvalidMode, "permission_mode must be read, edit, auto or yolo")
	}
	if err := harness.CheckSessionID(session); err != nil {
		return SessionStatus{}, nil, err
	}
	l := s.find(session)
	if l == nil {
		rec, err := s.stored(ctx, session)
		if err == nil {
			err = harness.MayStart(rec, harness.SlotIdle)
		}
		return SessionStatus{}, nil, err
	}
	l.mu.Lock()
	err := harness.MayStart(l.rec, l.slot())
	if err == nil {
		l.switching = true
	}
	l.mu.Unlock()
	if err != nil {
		return SessionStatus{}, nil, err
	}
	applied, err := l.apply(s.group.Context(), want, false)
	l.mu.Lock()
	l.switching, l.usedAt = false, l.now()
	l.facts.session, l.facts.visible = true, true
	switch {
	case err == nil:
		l.mended(want)
	case fault.Is(err, harness.AuthRequired):
		if !l.ending {
			l.moved(harness.SessionLoggedOut, nil)
		}
		err = l.needLogin()
	}
	flushErr := l.flush()
	l.mu.Unlock()
	if err == nil {
		err = flushErr
	}
	if err != nil {
		return SessionStatus{}, applied, err
	}
	st, err := s.Status(ctx, session)
	return st, applied, err
}

// setting is one thing of the agent that can be chosen, in whatever form it offers it.
type setting struct {
	name    string // for people
	code    fault.Code
	config  *acp.ConfigOption
	legacy  func(ctx context.Context, value string) error // nil without an older form
	via     string
	current string
	offered []string
}

// apply chooses mode, model and effort, in this order: a change of the model may reset the
// effort. atStart a missing setting is a refusal only when the caller asked for it.
func (l *live) apply(ctx context.Context, want Change, atStart bool) (applied []Applied, err error) {
	applied = []Applied{}
	ctx, cancel := context.WithTimeout(ctx, l.svc.cfg.Transport.OptionTimeoutSeconds.Duration())
	defer cancel()
	if want.PermissionMode != "" {
		a, err := l.applyMode(ctx, want.PermissionMode, atStart)
		if err != nil {
			return applied, about(optionMode, err)
		}
		applied = append(applied, a...)
	}
	if want.ModelID != "" {
		s := l.modelSetting()
		switch {
		case want.ModelID == keepModel && !slices.Contains(s.offered, keepModel):
		case s.config == nil && s.legacy == nil && atStart:
			// The agent has one model and does not speak of it.
		default:
			a, err := l.choose(ctx, s, want.ModelID)
			if err != nil {
				return applied, about(optionModel, err)
			}
			applied = append(applied, a...)
		}
		l.mu.Lock()
		l.rec.ModelID = want.ModelID
		l.refresh()
		l.mu.Unlock()
	}
	if want.ThinkingLevel != "" {
		a, err := l.choose(ctx, l.thinkingSetting(), want.ThinkingLevel)
		if err != nil {
			return applied, about(optionThinking, err)
		}
		applied = append(applied, a...)
		l.mu.Lock()
		l.rec.Thinking = want.ThinkingLevel
		l.mu.Unlock()
	}
	return applied, nil
}

func (l *live) applyMode(ctx context.Context, mode string, atStart bool) ([]Applied, error) {
	s := l.modeSetting()
	name, err := harness.AgentMode(mode, s.offered)
	if err != nil {
		// auto is what a caller gets who asks for nothing: the agent's own mode is kept.
		if atStart && mode == harness.ModeAuto {
			return nil, nil
		}
		return nil, err
	}
	applied, err := l.choose(ctx, s, name)
	if err == nil {
		l.mu.Lock()
		l.rec.PermissionMode = mode
		l.mu.Unlock()
	}
	return applied, err
}

// choose sets a value and believes only what the agent says it is afterwards.
func (l *live) choose(ctx context.Context, s setting, value string) ([]Applied, error) {
	if s.config == nil && s.legacy == nil {
		return nil, harness.Refuse(s.code, "the agent has no %s to choose", s.name).Advise("leave it out")
	}
	if s.current == value {
		return nil, nil
	}
	done := []Applied{{Option: s.name, From: s.current, To: value, Via: "config_option"}}
	if s.config != nil {
		all, err := l.conn.SetConfigOption(ctx, l.agentSession(), s.config.ID, value)
		switch {
		case err == nil:
			return done, l.verify(s, all, value)
		case !noMethod(err) || s.legacy == nil:
			return nil, refused(err, s, value)
		}
	}
	if err := s.legacy(ctx, value); err != nil {
		return nil, refused(err, s, value)
	}
	done[0].Via = s.via
	return done, nil
}

func (l *live) verify(s setting, all []acp.ConfigOption, value string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if all != nil {
		l.open.Config = all
	}
	for _, o := range l.open.Config {
		if o.ID == s.config.ID && o.Current != value {
			return harness.Refuse(harness.OptionNotApplied, "the agent kept %q as its %s", o.Current, s.name).With(harness.Detail{"offered": s.offered})
		}
	}
	return nil
}

func noMethod(err error) bool {
	var rpc *acp.RPCError
	return errors.As(err, &rpc) && rpc.Code == acp.CodeNoMethod
}

// refused says that the agent does not take a value, with what it offers.
func refused(err error, s setting, value string) error {
	var rpc *acp.RPCError
	if !errors.As(err, &rpc) {
		return startFault(err, "the change of the "+s.name, 0)
	}
	if rpc.Code == acp.CodeAuthRequired {
		return harness.Fail(err, harness.AuthRequired, "the agent demands a login")
	}
	p := problemOf(err)
	return harness.Fail(err, s.code, "the agent refuses %q as its %s", value, s.name).Advise("use one that it offers").
		With(harness.Detail{"offered": s.offered, "acp": p.Detail["acp"]})
}

func (l *live) agentSession() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rec.AgentSessionID
}

// option finds a setting by what it is for, which agents agree on, not by its id.
func (l *live) option(category string) *acp.ConfigOption {
	var found *acp.ConfigOption
	for i := range l.open.Config {
		o := l.open.Config[i]
		if o.Category == category && (found == nil || o.ID == category) || found == nil && o.Category == "" && o.ID == category {
			found = &o
		}
	}
	return found
}

func (s *setting) from(o *acp.ConfigOption) {
	if o == nil {
		return
	}
	s.config, s.current, s.offered = o, o.Current, choiceIDs(o.Choices)
}

func choiceIDs(list []acp.Choice) []string {
	out := make([]string, 0, len(list))
	for _, c := range list {
		out = append(out, c.Value)
	}
	return out
}

// legacy chooses by a method of its own, as agents without config options have it, and
// notes what is current then.
func (l *live) legacy(set func(ctx context.Context, session, value string) error, current *string) func(context.Context, string) error {
	id := l.rec.AgentSessionID
	return func(ctx context.Context, v string) error {
		err := set(ctx, id, v)
		if err == nil {
			l.mu.Lock()
			*current = v
			l.mu.Unlock()
		}
		return err
	}
}

func (l *live) modelSetting() setting {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := setting{name: optionModel, code: harness.InvalidModel, via: "set_model"}
	if m := l.open.Models; m != nil {
		s.current, s.offered, s.legacy = m.Current, choiceIDs(m.Available), l.legacy(l.conn.SetModel, &m.Current)
	}
	s.from(l.option("model"))
	return s
}

func (l *live) modeSetting() setting {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := setting{name: optionMode, code: harness.InvalidMode, via: "set_mode"}
	if m := l.open.Modes; m != nil {
		s.current, s.offered, s.legacy = m.Current, choiceIDs(m.Available), l.legacy(l.conn.SetMode, &m.Current)
	}
	s.from(l.option("mode"))
	return s
}

func (l *live) thinkingSetting() setting {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := setting{name: optionThinking, code: harness.InvalidThinking}
	s.from(l.option("thought_level"))
	return s
}

// refresh reads what the agent says of its model and effort into the record.
func (l *live) refresh() {
	if o := l.option("model"); o != nil {
		l.rec.ModelID = o.Current
		for _, c := range o.Choices {
			if c.Value == o.Current {
				l.rec.ModelName = c.Name
			}
		}
	} else if m := l.open.Models; m != nil {
		for _, c := range m.Available {
			if c.Value == m.Current {
				l.rec.ModelID, l.rec.ModelName = c.Value, c.Name
			}
		}
	}
	if o := l.option("thought_level"); o != nil && l.rec.Thinking != "" {
		l.rec.Thinking = o.Current
	}
	l.facts.session = true
}
