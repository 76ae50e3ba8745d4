package panels

import (
	"context"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/discover"
	"github.com/agent-knock-knock/akk/internal/native/nativesql"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/tmux"
	"github.com/agent-knock-knock/akk/internal/turn/dispatch"
)

// toolPrefix begins every tool's name.
const toolPrefix = "agent_knock_knock_"

var _ dispatch.RowSource = (*Service)(nil)

// Actions returns what can be done with the panels of each terminal now.
func (s *Service) Actions(ctx context.Context, seen []dispatch.SeenTerminal) (map[string]map[string]dispatch.Action, error) {
	moving := map[string]bool{}
	if err := s.DB.View(ctx, func(tx *store.Tx) error {
		rows, err := nativesql.Open(tx)
		for _, r := range rows {
			moving[r.Terminal] = true
		}
		return err
	}); err != nil {
		return nil, err
	}
	out := map[string]map[string]dispatch.Action{}
	for _, t := range seen {
		if t.Held != nil || moving[t.Terminal.Key()] {
			continue
		}
		if a := s.actions(t.Terminal); len(a) > 0 {
			out[t.Terminal.Key()] = a
		}
	}
	return out, nil
}

func (s *Service) actions(t discover.Terminal) map[string]dispatch.Action {
	out := map[string]dispatch.Action{}
	add := func(name string, person bool, missing ...string) {
		args := map[string]any{"terminal_id": t.ID}
		if name == "native_inspect" {
			args["inspection"] = InspectStatus
		}
		out[name] = dispatch.Action{Tool: toolPrefix + name, Arguments: args, MissingRequired: missing, NeedsPerson: person}
	}
	if _, _, err := Fit(t, false); err != nil {
		if s.Extended && s.repairable(t) {
			add("repair_model_control", false)
		}
		return out
	}
	add("native_inspect", false)
	if s.Extended {
		add("identify_foreground", false)
		add("identify_and_send", false, "request")
	}
	if t.Native.Thread != agent.ThreadResolved {
		return out
	}
	add("model_options", false)
	if _, _, ok := s.models.Get(target(t)); ok {
		add("set_model", false, "model", "reasoning_effort")
	}
	if s.Extended {
		add("permission_options", false)
		if _, _, ok := s.permissions.Get(target(t)); ok {
			add("set_permissions", true, "mode")
		}
	}
	return out
}

// repairable reports whether the screen shows a panel that we opened.
func (s *Service) repairable(t discover.Terminal) bool {
	p, ok := t.Adapter.(agent.Panels)
	if !ok || t.Conflict != "" || p.PanelShown(tmux.Capture{Pane: t.Pane, Lines: t.Lines}) == "" {
		return false
	}
	_, marked := s.markerOf(t).get(s.Clock.Now())
	return marked
}
