package panel

import "github.com/agent-knock-knock/akk/internal/pattern"

// What is known of Codex's panels. Seen on 0.171.0, 120x40 (Linux). Another
// version that shows something else loses the panels, never safety: a screen that does
// not fit gets no key.

// Profile names this data.
const Profile = "codex-panels-0.171"

// Since is the oldest version that was seen.
var Since = [2]int{0, 171}

// Width is the fewest columns: below, rows wrap in ways that were not recorded.
const Width = 80

const (
	statusCommand     = "/status"
	modelCommand      = "/model"
	permissionCommand = "/permissions"

	cursorGlyph  = "›"
	fieldModel   = "Model"
	fieldSession = "Session"
)

var (
	statusHead  = pattern.New(`^\s*>_ OpenAI Codex \(v[^)]+\)$`)
	statusField = pattern.New(`^  (\S[^:]{0,40}):\s+(\S.*)$`)
	statusMore  = pattern.New(`^ {12,}(\S.*)$`) // a value that goes on in the next row
	// statusModel is the value of fieldModel: "GPT-6.1 Terra (reasoning medium, …)".
	statusModel = pattern.New(`^(.+?) \(reasoning ([a-z]+)`)
	threadID    = pattern.New(`^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
)

// titles begin the pickers; each stands alone in its row.
var titles = []struct {
	kind kind
	find *pattern.Pattern
}{
	{models, pattern.New(`^  Select Model and Effort$`)},
	{efforts, pattern.New(`^  Select Reasoning Level for (\S.*)$`)},
	{advanced, pattern.New(`^  Advanced Reasoning$`)},
	{permissions, pattern.New(`^  Update Model Permissions$`)},
}

var (
	// footer ends a picker. "s session" is offered where a choice may be for this session.
	footer        = pattern.New(`^\s+enter (?:select|default)( · s session)? · esc back$`)
	numberedRow   = pattern.New(`^(› |  )(\d{1,2})\. (\S.*)$`)
	unnumberedRow = pattern.New(`^(› |  ) {4}(\S.*)$`) // the tenth and later rows have no number
	continuedRow  = pattern.New(`^ {7,}(\S.*)$`)
	noteRow       = pattern.New(`^  ⚠ `)
	hiddenRows    = pattern.New(`^\s*[↑↓]$`) // rows above or below are not shown
	labelAndText  = pattern.New(`^(\S.*?)(?:\s{2,}(\S.*))?$`)
	labelMark     = pattern.New(`^(.*) \((current|default)\)$`)
)

// manyEfforts are the models whose row was seen to open the list of efforts. Enter on a
// model with one effort only would choose it at once, and for new sessions too, so the
// row of any other model is never opened; it is listed without efforts.
var manyEfforts = pattern.New(`^GPT-\d`)

// moreEfforts is the row that leads to further efforts; its text names them.
var (
	moreEfforts = pattern.New(`^More reasoning…$`)
	moreNames   = pattern.New(`^([A-Z]\w+)(?: and ([A-Z]\w+))? `)
)

// effortNames are the ids of labels that are not simply the label in small letters.
var effortNames = map[string]string{"Extra high": "xhigh"}

// freePermission are the modes in which Codex asks before it leaves its sandbox. Any other
// one, known or not, takes a protection away and needs a person.
var freePermission = pattern.New(`^(?:Ask for approval|Read Only)$`)
