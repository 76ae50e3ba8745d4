package codex

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/agent/codex/panel"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/tmux"
)

var _ agent.Panels = (*Adapter)(nil)

// PanelProfile knows every version from the oldest that was seen on.
func (a *Adapter) PanelProfile(version string) (string, error) {
	var major, minor int
	if n, err := fmt.Sscanf(version, "%d.%d", &major, &minor); err != nil || n != 2 {
		return "", fault.New(agent.PanelsUnsupported, "codex.panels", "the version of this Codex is not known, so its panels are not either").
			WithHint("look at the pane")
	}
	if major < panel.Since[0] || major == panel.Since[0] && minor < panel.Since[1] {
		return "", fault.New(agent.PanelsUnsupported, "codex.panels", "the panels of Codex %s are not known; they are from %d.%d on", version, panel.Since[0], panel.Since[1]).
			WithHint("look at the pane, or update Codex")
	}
	return panel.Profile, nil
}

// PanelWidth is [panel.Width].
func (a *Adapter) PanelWidth() int { return panel.Width }

// ReadStatus reads the card of /status.
func (a *Adapter) ReadStatus() agent.StatusPilot { return new(panel.Status) }

// ReadModels reads the picker of /model.
func (a *Adapter) ReadModels() agent.CataloguePilot { return new(panel.Catalogue) }

// ReadSetting reads the model off the card of /status, which also names one that is not
// in the picker.
func (a *Adapter) ReadSetting() agent.SettingPilot { return new(panel.Status) }

// ReadPermissions reads the picker of /permissions.
func (a *Adapter) ReadPermissions() agent.PermissionsPilot { return new(panel.Permissions) }

// ChooseModel chooses in the picker of /model, for this session.
func (a *Adapter) ChooseModel(cat agent.ModelCatalogue, want agent.Setting) agent.ModelPilot {
	return panel.NewChoose(cat, want)
}

// ChoosePermission chooses in the picker of /permissions.
func (a *Adapter) ChoosePermission(offered agent.Permissions, id string) agent.Pilot {
	return panel.NewChoosePermission(offered, id)
}

// ClosePanel leaves the pickers.
func (a *Adapter) ClosePanel() agent.Pilot { return new(panel.Close) }

// PanelShown names the open picker.
func (a *Adapter) PanelShown(c tmux.Capture) string { return panel.Shown(c) }

const (
	configFile = "config.toml"
	maxConfig  = 1 << 20
)

// Defaults reads config.toml of the agent's home. What a named profile or a command line
// sets for one start is no default.
func (a *Adapter) Defaults(_ context.Context, _ agent.Ref, n agent.Native) (agent.Setting, error) {
	const op = "codex.defaults"
	home := n.Extra[extraHome]
	if home == "" {
		return agent.Setting{}, fault.New(fault.Unavailable, op, "the home of this Codex is not known")
	}
	f, err := os.Open(filepath.Join(home, configFile))
	if os.IsNotExist(err) {
		return agent.Setting{}, nil
	}
	if err != nil {
		return agent.Setting{}, fault.Wrap(err, fault.Unavailable, op, "the configuration of Codex cannot be read")
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxConfig))
	if err != nil {
		return agent.Setting{}, fault.Wrap(err, fault.Unavailable, op, "the configuration of Codex cannot be read")
	}
	return panel.Defaults(string(text)), nil
}
