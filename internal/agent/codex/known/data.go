// Package known holds what is known of the looks of Codex: names of processes, files,
// records, methods and marks on the screen, each with the versions it was seen on.
//
// It is data and nothing else; what follows from it is decided by its readers.
package known

import "github.com/agent-knock-knock/akk/internal/pattern"

// This file is the only place that knows how a version of Codex looks. Every entry says
// on which versions it was seen; a version that changes one of them loses precision,
// never safety: what is not recognised is unknown, and unknown is never idle.
//
// Seen on: 0.98.0, 0.130.0, 0.150.0 and 0.171.0 (Linux, 2026-12).

// ── processes ─────────────────────────────────────────────────────────────────────────

const ProgramName = "codex"

// BatchCommands are the subcommands that are not the terminal program (0.171, and older
// names). "resume", "fork" and "agents" are: they open it.
var BatchCommands = set("exec", "e", "review", "login", "logout", "mcp", "mcp-server", "plugin",
	"app-server", "remote-control", "completion", "update", "doctor", "sandbox", "debug", "apply",
	"a", "queue", "archive", "unarchive", "delete", "migrate-rollouts", "migrate-nfs-db", "cloud",
	"exec-server", "features", "help", "daemon", "proto", "responses-api-proxy", "stdio-to-uds",
	"execpolicy")

// BatchFlags end the program at once or make it a helper of another Codex process.
var BatchFlags = set("-h", "--help", "-V", "--version")

const HelperFlagPrefix = "--codex-run-as" // 0.130–0.171: the binary re-executes itself

// ValueFlags are the global options that take the next argument as their value.
var ValueFlags = set("-c", "--config", "--enable", "--disable", "--remote",
	"--remote-auth-token-env", "-i", "--image", "-m", "--model", "--local-provider", "-p",
	"--profile", "-s", "--sandbox", "-C", "--cd", "--add-dir", "-a", "--ask-for-approval")

const RemoteFlag, RemoteUnixScheme = "--remote", "unix://" // 0.171

// PackageFiles hold the version in one of the directories above the executable:
// codex-package.json (0.171), package.json of the npm package (all).
var PackageFiles = []string{"codex-package.json", "package.json"}

// ReleaseInPath is a version as it stands in the path of a daemon's own copy (0.171).
var ReleaseInPath = pattern.New(`/(\d+\.\d+\.\d+(?:-(?:alpha|beta)\.\d+)?)(?:-[a-z0-9_]+)*/`)

// DaemonSince is the oldest version that was seen to use a shared background server;
// 0.150 was seen not to.
var DaemonSince = [3]int{0, 151, 0}

// ErrorFieldSince is the oldest version that was seen to write task_complete.error for a
// failed turn. Before it, a failed turn is a task_complete without message and error.
// The records tell it too: a UserMessage item exists since the same version.
const ErrorFieldSince = "0.150.0"

// ── files under CODEX_HOME ────────────────────────────────────────────────────────────

const (
	HomeVariable  = "CODEX_HOME"
	DefaultHome   = ".codex"                                      // under HOME
	LockDir       = "thread-writer-locks"                         // <thread>.lock, held open; 0.171
	SessionsDir   = "sessions"                                    // sessions/Y/M/D/rollout-…; all
	ControlSocket = "app-server-control/app-server-control.sock"  // 0.171
	RolloutGlob   = "rollout-*-"                                  // + <thread> + .jsonl; all
	threadPattern = `[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}` // UUIDv7
)

var (
	LockName    = pattern.New(`^(` + threadPattern + `)\.lock$`)
	RolloutName = pattern.New(`^rollout-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-(` + threadPattern + `)\.jsonl$`)
	// TitleThread is a thread id in the pane title, cut at 29 characters and "..."
	// (tui.terminal_title with "thread-id", 0.171).
	TitleThread = pattern.New(`^([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{4,25})(?:\.\.\.)?$`)
)

// ── rollout records ───────────────────────────────────────────────────────────────────

const (
	RecEvent    = "event_msg"
	RecResponse = "response_item"
	RecMeta     = "session_meta"

	EvStarted   = "task_started"   // 0.130–
	EvComplete  = "task_complete"  // 0.130–
	EvAborted   = "turn_aborted"   // all; without turn_id in 0.98
	EvItem      = "item_completed" // 0.150–
	EvUser      = "user_message"   // 0.98, 0.130
	EvAgent     = "agent_message"  // 0.98, 0.130
	ItemUser    = "UserMessage"
	ItemAgent   = "AgentMessage"
	ItemPlan    = "Plan"
	PhaseFinal  = "final_answer"
	TypeMessage = "message"
)

// CallItems are the response items with which the model calls a tool. An approval of it has
// no record of its own: it is asked right after (function_call was seen on all).
var CallItems = set("function_call", "custom_tool_call", "local_shell_call")

// ── the app server (0.171) ────────────────────────────────────────────────────────────

const (
	MInitialize    = "initialize"
	MInitialized   = "initialized"
	MLoadedList    = "thread/loaded/list"
	MThreadRead    = "thread/read"
	MThreadResume  = "thread/resume"
	MTurnStart     = "turn/start"
	MTurnInterrupt = "turn/interrupt"
	NTurnCompleted = "turn/completed"
	NItemStarted   = "item/started"
	NItemCompleted = "item/completed"
	NStatusChanged = "thread/status/changed"
	NResolved      = "serverRequest/resolved"

	StatusIdle      = "idle"
	StatusFailed    = "systemError" // the last turn failed; the thread takes a new one
	StatusActive    = "active"
	StatusNotLoaded = "notLoaded"
	FlagApproval    = "waitingOnApproval"
	FlagInput       = "waitingOnUserInput"
)

// MutedNotifications are not sent to us: text by the token that nobody reads here.
var MutedNotifications = []string{"item/agentMessage/delta", "item/plan/delta",
	"item/reasoning/textDelta", "item/reasoning/summaryTextDelta", "item/reasoning/summaryPartAdded",
	"item/commandExecution/outputDelta", "item/fileChange/outputDelta", "command/exec/outputDelta",
	"process/outputDelta", "turn/diff/updated", "thread/tokenUsage/updated", "account/rateLimits/updated"}

// Request is one kind of request of the server to its clients.
type Request struct {
	Title           string
	Approve, Reject string
	Question        bool // not an approval
	Form            bool // of an MCP server; an approval only with MCPApproval
	Permissions     bool // answered with what is granted, for the turn
	Edits           bool // what it grants is told by an item of the thread alone
}

// ServerRequests are what the server asks its clients. Approve is the answer that grants
// one request, "" where no such answer is known. All were seen on 0.171.
var ServerRequests = map[string]Request{
	"item/commandExecution/requestApproval": {Title: "Run a command", Approve: "accept", Reject: "cancel"},
	"item/fileChange/requestApproval":       {Title: "Make edits", Approve: "accept", Reject: "cancel", Edits: true},
	"item/permissions/requestApproval":      {Title: "Grant permissions", Approve: "grant for this turn", Reject: Decline, Permissions: true},
	"mcpServer/elicitation/request":         {Title: "An MCP server asks", Approve: "accept", Reject: "cancel", Form: true},
	"item/tool/requestUserInput":            {Title: "The agent asks", Question: true},
}

const (
	Decline     = "decline"
	MCPApproval = "mcp_tool_call" // _meta.codex_approval_kind: may this one call be made
	ScopeTurn   = "turn"          // the narrowest scope of a grant
)

// persistent are answers that grant more than the request at hand.
var PersistentDecisions = set("acceptForSession", "acceptWithExecpolicyAmendment", "applyNetworkPolicyAmendment")

// ── screens ───────────────────────────────────────────────────────────────────────────

const (
	ComposerGlyph = '›' // all
	ShellGlyph    = '!' // composer in shell mode: what is pasted would be run; 0.171
	ComposerCol   = 2   // first column of the text
)

var (
	// Placeholders are read when a capture has no colours (a placeholder is dim).
	Placeholders = set("Ask Codex to do anything", "Explain this codebase", "Implement {feature}",
		"Improve documentation in @filename", "Write tests for @filename", "Summarize recent commits",
		"Find and fix a bug in @filename")
	// workingLine: "• Working (1s • esc to interrupt)", "◦ Reconnecting... (3s • esc to
	// interrupt)"; the bullet blinks and is absent without animations; all versions.
	WorkingLine = pattern.New(`^(?:[•◦] )?\S.*\((?:\d+[hms] ?)+ • esc to interrupt\)`)
	// HistoryLine begins a block of the conversation, above any dialog or composer.
	HistoryLine = pattern.New(`^(?:[•◦✔✗■⚠╭│╰]|─+$|› (?:[^\d\[]|\d+[^.\d]|\[[^x ])|  Worked for |  >_ OpenAI Codex)`)
	// StartingFooter stands alone below the composer while no session exists yet: login,
	// first start (0.171). With a session the model or the context is shown as well.
	StartingFooter = "? for shortcuts"
	// PopupHint is shown above the composer while a completion list takes Enter (0.171).
	PopupHint = pattern.New(`^\s+enter(?:/tab)? insert · esc close`)
	// PastedContent stands for a paste of more than 1000 characters (Unicode code
	// points, measured with é and 🙂 on 0.171).
	PastedContent = pattern.New(`^\[PastedContent(\d+)chars\]$`)

	// EdgeMarks stand in the last column of a composer that is higher than its room (0.171).
	EdgeMarks = set("↑", "↓")

	TitleSpinner = pattern.New(`^[\x{2800}-\x{28FF}]( |$)`) // 0.130–
	TitleWorking = set("Working", "Thinking")               // run-state, 0.171
	TitleReady   = "Ready"
	TitleAction  = "Action Required" // "[ ! ] Action Required", 0.130–
	TitleFields  = " | "
)

// ApprovalMarkers are the question lines of approvals. All were found in 0.171; "run" was
// seen on every version.
var ApprovalMarkers = []*pattern.Pattern{
	pattern.New(`^\s*Would you like to run the following command\?$`),
	pattern.New(`^\s*Would you like to make the following edits\?$`),
	pattern.New(`^\s*Would you like to grant these permissions\?$`),
	pattern.New(`^\s*Would you like to send input to (?:the existing terminal|terminal .+)\?$`),
	pattern.New(`^\s*Do you want to approve network access to ".+"\?$`),
	pattern.New(`^\s*\S.* needs your approval\.$`),
}

var (
	OptionLine = pattern.New(`^(\s*)(?:› )?\s*(\d{1,2})\. (\S.*)$`)
	OptionKey  = pattern.New(`\(([a-z]|esc|enter)\)$`)
	// ApprovalBegin tells whether a row may begin a question that a narrow pane wraps.
	ApprovalBegin  = pattern.New(`^(?:Would you like to |Do you want to approve )`)
	FooterBegin    = pattern.New(`^\s*(?:Press enter |enter (?:to submit|select) |tab (?:to add|or esc) |option \d+/)`) // also right below the choices
	ApprovalFooter = pattern.New(`^\s*Press enter to confirm or esc to cancel$`)
	YesLabel       = pattern.New(`^Yes\b`)
	RejectLabel    = pattern.New(`^(?:No\b|Cancel\b|Decline\b)`)
	// LastingLabel grants more than one request.
	LastingLabel = pattern.New(`don't ask again|this session|this conversation|in the future|strict auto review|[Aa]lways`)
)

const OneTimeKey = "y"

// NarrowBelow is the width under which dialogs are wrapped and cut so much that none is
// answered by key. Seen at 40 columns on 0.171: labels and footers over several rows, rows
// left out.
const NarrowBelow = 60

// ElidedLine stands for rows of a request that do not fit ("[… 12 lines] ^a view all", 0.171).
var ElidedLine = pattern.New(`^\s*\[… \d+ lines?\]`)

// The questionnaire of request_user_input (0.171). A digit answers a step at once. Tab
// opens a line for notes below the marked choice, Enter there answers with both; in it a
// digit is text. Down and Up move the marker.
var (
	QuestionHead   = pattern.New(`^\s*Question (\d+)/(\d+)(?: \(\d+ unanswered\))?$`)
	QuestionFooter = pattern.New(`^\s*tab to add notes \| enter to submit (?:answer|all) \|`)
	NotesFooter    = pattern.New(`^\s*tab or esc to clear notes \| enter to submit (?:answer|all)$`)
	// QuestionScrolled begins the footer when not all choices fit the screen.
	QuestionScrolled = pattern.New(`^\s*option \d+/\d+ \|`)
	NotesLine        = pattern.New(`^  › ?(.*)$`)
	// SecretWords in a question make its answer a person's: the screen does not say whether
	// the agent keeps an answer secret, only the request of a server does.
	SecretWords = pattern.New(`(?i)\b(?:password|passphrase|passcode|secret|token|api[ -]?key|private key|credentials?)\b`)
)

const (
	NotesPlaceholder = "Add notes"
	NotesCol         = 4                   // first column of the notes
	NoneLabel        = "None of the above" // the choice that Codex adds for own words
	KeyDown, KeyTab  = "Down", "Tab"
)

// MCPQuestion asks for one call of an MCP tool; it is a form of one field, and a digit
// answers it at once (0.171). Only MCPOnce grants that one call: "Allow for this session"
// and "Always allow" stand beside it.
var (
	FormHead    = pattern.New(`^\s*Field (\d+)/(\d+)`)
	MCPQuestion = pattern.New(`^\s*Allow the \S.* MCP server to run tool ".+"\?$`)
	FormFooter  = pattern.New(`^\s*enter to submit \| esc to cancel$`)
)

const MCPOnce, MCPCancel = "Allow", "Cancel"

// The choices after a plan (0.171): a digit answers at once. PlanElsewhere goes on in
// another thread.
const PlanStay, PlanElsewhere = "No, stay in Plan mode", "Yes, clear context and implement"

// PlanFooter closes that dialog.
var PlanFooter = pattern.New(`^\s*enter select · esc back$`)

// LongPaste is the most characters that a paste may have and be shown as text; a longer
// one is shown as PastedContent. Seen on 0.171: the placeholder is replaced by its text
// before commands are looked for, so a blank in front of "/word" helps only up to here.
const LongPaste = 1000

// Dialogs are the other things that take the keyboard (0.171 unless noted). Find is
// looked for in the lines below the conversation.
var Dialogs = []struct {
	Name     string
	Find     *pattern.Pattern
	Question bool
}{
	{"questionnaire", pattern.New(`^\s*Question \d+/\d+`), true},
	{"unanswered questions", pattern.New(`^\s*Submit with unanswered questions\?$`), true},
	{"plan picker", pattern.New(`^\s*Implement this plan\?$`), true},
	{"form", pattern.New(`^\s*Field \d+/\d+`), true},
	{"folder trust", pattern.New(`^\s*(?:Folder access|Trust this folder\?|Do you trust the contents of this directory\?)`), false},
	{"hooks review", pattern.New(`^\s*Hooks need review$`), false},
	{"model picker", pattern.New(`^\s*Select Model`), false},
	{"resume picker", pattern.New(`^\s*Resume a previous session$`), false},
	{"worktree picker", pattern.New(`^\s*Where should the new conversation run\?$`), false},
	{"agents view", pattern.New(`^\s*Agent command center\b`), false},
	{"update notice", pattern.New(`Update available!`), false},
	{"login", pattern.New(`^\s*(?:\d\. )?Sign in with ChatGPT`), false},
	{"warnings", pattern.New(`^\s*Warnings · \d`), false},
	{"picker", pattern.New(`(?:enter select|enter confirm|enter continue|enter save|enter resume|space toggle|esc back|esc dismiss|esc cancel|Press enter to confirm)`), false},
}

func set(words ...string) map[string]bool {
	m := make(map[string]bool, len(words))
	for _, w := range words {
		m[w] = true
	}
	return m
}
