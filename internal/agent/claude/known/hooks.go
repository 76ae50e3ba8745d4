package known

// HookEvents are the events of Claude Code's hooks (settings.json, --settings) that tell of
// the course of a turn (2.1.197). No hook runs on an interrupt. Stop runs before the answer
// is in the transcript.
var HookEvents = []string{HookTurnStart, HookPermission, "Notification", "Stop", "StopFailure", "SessionEnd"}

const (
	HookTurnStart  = "UserPromptSubmit"
	HookPermission = "PermissionRequest" // what it prints may decide: ours prints nothing
)

// SettingsFlag names a further settings file on the command line (2.1.100–2.1.332).
const SettingsFlag = "--settings"

// The files of a pane that was started with hooks: the settings file, as its process's
// arguments name it, and beside it the file to which the hooks write a line each.
const (
	HookSettings = "akk-claude-settings.json"
	HookEventLog = "akk-claude-events.jsonl"
)
