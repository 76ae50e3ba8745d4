package agent

import (
	"context"
	"strings"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/tmux"
)

// Field is one line of an agent's status panel.
type Field struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Setting is a model and how much it thinks, in the agent's own names or in the ids of a
// catalogue. "" means that it is not known.
type Setting struct {
	Model  string `json:"model"`
	Effort string `json:"reasoning_effort"`
}

// Model is one row of the agent's model picker.
type Model struct {
	ID          string   `json:"model"` // made of Label; unique in its catalogue
	Label       string   `json:"label"`
	Description string   `json:"description"`
	Efforts     []string `json:"reasoning_efforts"` // ids, in the agent's order
}

// ModelCatalogue is what the agent's model picker offers now.
type ModelCatalogue struct {
	Models []Model
	// Effective is what the picker marks as current, in the catalogue's ids. It is empty
	// when the current model is none of the rows.
	Effective Setting
}

// NoEffort is the effort of a model that has none to choose.
const NoEffort = "default"

// Permission is one mode of what the agent may do without asking.
type Permission struct {
	ID          string `json:"id"`
	Label       string `json:"label"`
	Description string `json:"description"`
	// NeedsPerson: the mode takes away a protection, and only a person may choose it.
	NeedsPerson bool `json:"requires_confirmation"`
}

// Permissions is what the agent offers now.
type Permissions struct {
	Choices []Permission
	Current string // an id of Choices, "" when none of them is current
}

// Step is what a [Pilot] says of one look at the screen.
type Step struct {
	Do  Do
	Key tmux.Key // for DoPress
	// Commits: after this key a setting may have changed.
	Commits bool
	Reason  string // for DoFail: what is not as the data says
}

// Do is the kind of a Step.
type Do int

const (
	DoWait  Do = iota // not there yet: look again
	DoPress           // press Key once, then look again
	DoDone            // the panel is closed and the composer is free again
	DoFail            // the screen is not what is known; nothing more may be pressed
)

// Pilot walks through one of the agent's own panels, from its command to the free
// composer. It is a pure state machine over screens: it presses nothing itself, asks for
// one key at a time, and asks for the next one only when the screen shows what the last
// one did. What it read is valid after DoDone. A Pilot is used once.
type Pilot interface {
	// Command is typed into the empty composer and followed by one Enter; "" when the
	// panel needs no command.
	Command() string
	// Begin is given the screen before the command was typed.
	Begin(before tmux.Capture)
	// Next is given each later look.
	Next(c tmux.Capture, s Screen) Step
}

// StatusPilot reads the agent's status panel.
type StatusPilot interface {
	Pilot
	Status() StatusPanel
}

// StatusPanel is a fresh status panel.
type StatusPanel struct {
	Fields   []Field
	ThreadID string // the native thread that it names, "" when none
	// Dismissals is how many keys closed it; 0 for a panel that is not modal.
	Dismissals int
}

// CataloguePilot reads the model picker and changes nothing.
type CataloguePilot interface {
	Pilot
	Catalogue() ModelCatalogue
}

// SettingPilot reads which model is in effect.
type SettingPilot interface {
	Pilot
	Setting() Setting // in the ids of a catalogue
}

// ModelPilot chooses a model for the current session.
type ModelPilot interface {
	Pilot
	// Already reports that the picker showed the wanted setting as current and was left.
	Already() bool
}

// PermissionsPilot reads the permission modes and changes nothing.
type PermissionsPilot interface {
	Pilot
	Permissions() Permissions
}

// Panels is implemented by an adapter whose agent has command panels of known looks.
// Everything about them is data of the adapter.
type Panels interface {
	// PanelProfile names the data that a version is read with. The error has the code
	// [PanelsUnsupported] and says why there is none. A newer version than any that was
	// seen gets the newest data: a screen that does not fit ends the pilot.
	PanelProfile(version string) (string, error)
	// PanelWidth is the fewest columns in which panels are read.
	PanelWidth() int
	// ReadStatus, ReadModels, ReadSetting and ReadPermissions read.
	ReadStatus() StatusPilot
	ReadModels() CataloguePilot
	ReadSetting() SettingPilot
	ReadPermissions() PermissionsPilot
	// ChooseModel chooses want out of cat, which must be what the picker shows.
	ChooseModel(cat ModelCatalogue, want Setting) ModelPilot
	// ChoosePermission chooses the mode with the id out of offered, in the same way.
	ChoosePermission(offered Permissions, id string) Pilot
	// ClosePanel leaves whatever panel of these is open, without choosing anything.
	ClosePanel() Pilot
	// PanelShown names the panel of these that c shows, "" when none is recognised.
	PanelShown(c tmux.Capture) string
	// Defaults reads what the agent's configuration gives to new sessions, in its own
	// names. An error means that it cannot be told.
	Defaults(ctx context.Context, ref Ref, n Native) (Setting, error)
}

// PanelsUnsupported is the code of what the panel data does not know.
const PanelsUnsupported fault.Code = "unsupported_profile"

// Wait, Press and Fail make steps.
func Wait() Step              { return Step{Do: DoWait} }
func Press(k tmux.Key) Step   { return Step{Do: DoPress, Key: k} }
func Commit(k tmux.Key) Step  { return Step{Do: DoPress, Key: k, Commits: true} }
func Done() Step              { return Step{Do: DoDone} }
func Fail(reason string) Step { return Step{Do: DoFail, Reason: reason} }

// LabelID is the id that a label of a picker gets: what a command line or a configuration
// calls it, such as "gpt-5.2-codex" for "GPT-5.2 Codex".
func LabelID(label string) string {
	var b strings.Builder
	gap := false
	for _, r := range strings.ToLower(label) {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '.' || r == '_' || r == ':' || r == '/' || r == '+' {
			if gap && b.Len() > 0 {
				b.WriteByte('-')
			}
			b.WriteRune(r)
			gap = false
			continue
		}
		gap = true
	}
	return b.String()
}
