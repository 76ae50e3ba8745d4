package panel

import "github.com/agent-knock-knock/akk/internal/pattern"

// What is known of Claude Code's panels. Seen on 2.1.197, 120x40 (Linux); the line of the manual
// mode was seen on a newer version. Another version
// that shows something else loses the panels, never safety: a screen that does not fit
// gets no key.

// Profile names this data.
const Profile = "claude-panels-2.1"

// Since is the oldest version that was seen.
var Since = [2]int{2, 1}

// Width is the fewest columns: below, rows wrap in ways that were not recorded.
const Width = 80

const (
	statusCommand = "/status"
	modelCommand  = "/model"

	fieldVersion = "Version"
	fieldSession = "Session ID"
)

// titles are the first row below the rule that begins a panel.
var titles = []struct {
	kind kind
	find *pattern.Pattern
}{
	{settings, pattern.New(`^  Settings  Status {2,}`)},
	{models, pattern.New(`^  Select model$`)},
	{rules, pattern.New(`^  Permissions  `)},
}

var (
	rule        = pattern.New(`^[─▔]{8,}$`)
	escFooter   = pattern.New(`^  .*Esc to cancel$`)
	modelFooter = pattern.New(`^  Enter to set as default · s to use this session only · Esc to cancel$`)
	statusField = pattern.New(`^  (\S[^:]{0,40}):\s+(\S.*)$`)
	statusMore  = pattern.New(`^ {12,}(\S.*)$`)
	threadID    = pattern.New(`^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

	modelRow     = pattern.New(`^  (❯ |  )(\d{1,2})\. (\S.*)$`)
	continuedRow = pattern.New(`^ {12,}(\S.*)$`)
	labelAndText = pattern.New(`^(\S.*?)(?:\s{2,}(\S.*))?$`)
	currentMark  = pattern.New(`^(.*) ✔$`)
	adviceMark   = pattern.New(`^(.*) \(recommended\)$`)
	effortRow    = pattern.New(`^  [^\w\s] (\S+) effort(?: \(default\))? ←/→ to adjust$`)
	noEffortRow  = pattern.New(`^  [^\w\s] Effort not supported for (\S.*)$`)
)

// lowestEffort begins the list of efforts, which the picker shows in a circle.
const lowestEffort = "low"

// modes are the permission modes with the footer that shows them, in the order in which
// Shift+Tab goes round. The last one is only there when the program was started for it.
var modes = []struct {
	id, label, text string
	footer          *pattern.Pattern
	needsPerson     bool
	always          bool // in every circle
}{
	{"default", "Ask", "Asks before it edits files or runs commands.", pattern.New(`^  (?:\? for shortcuts|⏸ manual mode on)(?: |$)`), false, true},
	{"accept_edits", "Accept edits", "Edits files in the workspace without asking.", pattern.New(`^  ⏵⏵ accept edits on(?: |$)`), false, true},
	{"plan", "Plan", "Reads and plans; changes nothing.", pattern.New(`^  ⏸ plan mode on(?: |$)`), false, true},
	{"auto", "Auto", "Decides by itself what needs no approval.", pattern.New(`^  ⏵⏵ auto mode on(?: |$)`), true, false},
	{"bypass", "Bypass permissions", "Asks for nothing.", pattern.New(`^  ⏵⏵ bypass permissions on(?: |$)`), true, false},
}
