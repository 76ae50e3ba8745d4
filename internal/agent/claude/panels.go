package claude

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/agent/claude/panel"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/tmux"
)

var _ agent.Panels = (*Adapter)(nil)

// PanelProfile knows every version from the oldest that was seen on.
func (*Adapter) PanelProfile(version string) (string, error) {
	var major, minor int
	if n, err := fmt.Sscanf(version, "%d.%d", &major, &minor); err != nil || n != 2 {
		return "", fault.New(agent.PanelsUnsupported, "claude.panels", "the version of this Claude Code is not known, so its panels are not either").
			WithHint("look at the pane")
	}
	if major < panel.Since[0] || major == panel.Since[0] && minor < panel.Since[1] {
		return "", fault.New(agent.PanelsUnsupported, "claude.panels", "the panels of Claude Code %s are not known; they are from %d.%d on", version, panel.Since[0], panel.Since[1]).
			WithHint("look at the pane, or update Claude Code")
	}
	return panel.Profile, nil
}

// PanelWidth is [panel.Width].
func (*Adapter) PanelWidth() int { return panel.Width }

// ReadStatus reads the page of /status.
func (*Adapter) ReadStatus() agent.StatusPilot { return new(panel.Status) }

// ReadModels reads the picker of /model.
func (*Adapter) ReadModels() agent.CataloguePilot { return new(panel.Catalogue) }

// ReadSetting reads the marked row of the picker of /model.
func (*Adapter) ReadSetting() agent.SettingPilot { return new(panel.Setting) }

// ReadPermissions reads the mode below the composer.
func (*Adapter) ReadPermissions() agent.PermissionsPilot { return new(panel.Permissions) }

// ChooseModel chooses in the picker of /model, for this session.
func (*Adapter) ChooseModel(cat agent.ModelCatalogue, want agent.Setting) agent.ModelPilot {
	return panel.NewChoose(cat, want)
}

// ChoosePermission goes round with Shift+Tab.
func (*Adapter) ChoosePermission(offered agent.Permissions, id string) agent.Pilot {
	return panel.NewChoosePermission(offered, id)
}

// ClosePanel leaves the panel that is open.
func (*Adapter) ClosePanel() agent.Pilot { return new(panel.Close) }

// PanelShown names the open panel.
func (*Adapter) PanelShown(c tmux.Capture) string { return panel.Shown(c) }

const (
	settingsFile = "settings.json"
	maxSettings  = 1 << 20
)

// Defaults reads the person's own settings.json, where the picker writes. What a project
// or an administrator sets above it is no default of the person.
func (*Adapter) Defaults(_ context.Context, _ agent.Ref, n agent.Native) (agent.Setting, error) {
	const op = "claude.defaults"
	dir := n.Extra[extraConfigDir]
	if dir == "" {
		return agent.Setting{}, fault.New(fault.Unavailable, op, "the configuration directory of this Claude Code is not known")
	}
	f, err := os.Open(filepath.Join(dir, settingsFile))
	if os.IsNotExist(err) {
		return agent.Setting{}, nil
	}
	if err != nil {
		return agent.Setting{}, fault.Wrap(err, fault.Unavailable, op, "the settings of Claude Code cannot be read")
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxSettings))
	if err != nil {
		return agent.Setting{}, fault.Wrap(err, fault.Unavailable, op, "the settings of Claude Code cannot be read")
	}
	var doc struct {
		Model  string `json:"model"`
		Effort string `json:"effortLevel"`
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		return agent.Setting{}, fault.Wrap(err, fault.Unavailable, op, "the settings of Claude Code are not JSON")
	}
	return agent.Setting{Model: doc.Model, Effort: doc.Effort}, nil
}
