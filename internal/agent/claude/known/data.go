// Package known holds what is known of Claude Code's releases: names, glyphs, questions,
// files and limits, in one place, so that a release that changes them changes this file.
//
// It is data only and decides nothing.
package known

import (
	"time"

	"github.com/agent-knock-knock/akk/internal/pattern"
)

// Everything in this file is what Claude Code was seen to do, not what it promises.
// Seen on 2.1.197 (Linux, native binary from npm) unless a line says otherwise. A marker
// that a later release drops makes the adapter know less, never guess more.

const Kind = "claude"

// TurnEndVersions are the version prefixes that end every turn with a turn_duration
// record. Another version may complete by a final answer and an idle status file alone.
var TurnEndVersions = []string{"2.1."}

// --- processes ---

const (
	ProgramName    = "claude"
	ProgramNameExe = "claude.exe" // the npm package's native binary has this name on Linux too
)

// NativeInstall matches the executable of a native install; the group is the version.
var NativeInstall = pattern.New(`/\.local/share/claude/versions/(\d+\.\d+\.\d+[^/]*)$`)

// ScriptInstall matches the script argument of an install that runs on node.
var ScriptInstall = pattern.New(`/claude-code/cli\.m?js$`)

// ScriptRunners are the programs that may run ScriptInstall.
var ScriptRunners = map[string]bool{"node": true, "nodejs": true, "bun": true}

// BatchCommands are the subcommands that show no composer.
var BatchCommands = map[string]bool{
	"agents": true, "auth": true, "auto-mode": true, "config": true, "daemon": true, "doctor": true,
	"gateway": true, "install": true, "mcp": true, "migrate-installer": true, "plugin": true, "plugins": true,
	"project": true, "remote-control": true, "setup-token": true, "ultrareview": true, "update": true, "upgrade": true,
}

// BatchFlags are the flags that make a run non-interactive.
var BatchFlags = map[string]bool{
	"-h": true, "--help": true, "-p": true, "--print": true, "-v": true, "--version": true,
	"--bg": true, "--background": true, "--bg-pty-host": true, "--bg-spare": true,
}

// ValueFlags take their value from the next argument, so that value is not a subcommand.
var ValueFlags = map[string]bool{
	"--add-dir": true, "--agent": true, "--agents": true, "--allowedTools": true, "--allowed-tools": true,
	"--append-system-prompt": true, "--betas": true, "--debug-file": true, "--disallowedTools": true,
	"--disallowed-tools": true, "--effort": true, "--fallback-model": true, "--mcp-config": true, "--model": true,
	"-n": true, "--name": true, "--permission-mode": true, "--plugin-dir": true, "--session-id": true,
	"--setting-sources": true, "--settings": true, "--system-prompt": true, "--tools": true,
}

// --- files ---

const (
	ConfigDirEnv    = "CLAUDE_CONFIG_DIR"
	ConfigDirName   = ".claude"
	SessionsDir     = "sessions"
	ProjectsDir     = "projects"
	TranscriptExt   = ".jsonl"
	SlugMaxUnits    = 200       // longer slugs are cut and get a hash
	MaxStatusFile   = 256 << 10 // bytes; the file has about 400
	MaxLine         = 64 << 20  // bytes of one transcript record
	MaxCandidates   = 256       // transcripts of one project that may be watched at once
	ReadChunk       = 256 << 10 // bytes per read
	MaxChainRecords = 400_000   // records of one turn that are kept as a graph
)

// The values of "status" in the status file.
const (
	StatusIdle    = "idle"
	StatusBusy    = "busy"
	StatusWaiting = "waiting"
	StatusShell   = "shell" // idle, while a background shell runs
)

const StatusKindInteractive = "interactive"

// --- waits (our own limits, not the agent's) ---

const (
	SafetyTick   = time.Second           // file events may be lost; nothing is polled faster
	QuietTick    = 5 * time.Second       // the same while an accepted turn is followed by file events and nothing is due
	SettleAfter  = 2 * time.Second       // a batch holds records of several turns in any order
	IdleGrace    = 4 * time.Second       // the end of a turn reaches the file up to 1 s after idle
	StatusRetry  = 20 * time.Millisecond // the status file is rewritten in place and may be read half written
	StatusReads  = 4
	ActivityRate = time.Second // at most one activity observation of the transcript per this
)

// --- transcript records ---

const (
	RecUser       = "user"
	RecAssistant  = "assistant"
	RecSystem     = "system"
	RecAttachment = "attachment"
	RecQueue      = "queue-operation"

	SubTurnDuration = "turn_duration"

	AttachQueued = "queued_command" // a prompt absorbed into a running turn
	ModePrompt   = "prompt"

	OriginHuman = "human"

	ModelSynthetic = "<synthetic>"

	StopEndTurn  = "end_turn"
	StopSequence = "stop_sequence"
	StopToolUse  = "tool_use"

	InterruptPrefix = "[Request interrupted by user" // also "… for tool use]"
)

// LocalPrefixes begin user records that the program writes for its own commands.
var LocalPrefixes = []string{
	"<command-name>", "<command-message>", "<command-args>", "<local-command-", "<bash-input>", "<bash-stdout>",
	"<bash-stderr>", "<task-notification>", "<user-memory-input>", "<system-reminder>",
}

// --- screens ---

const (
	PromptGlyph = '❯'
	Nbsp        = '\u00a0'
	RuleRune    = '─'
	RuleMin     = 8 // a rule has at least this many ruleRunes
	BrailleLow  = '\u2800'
	BrailleHigh = '\u28ff'
	DialogTail  = 8 // non-empty lines at the end of a screen in which a dialog's footer is looked for
	ExcerptMax  = 4000
)

// AnswerGlyphs begin a line of the conversation, never a spinner.
const AnswerGlyphs = "●⏺❯⎿│╭╰├!>"

// WorkingFooters are shown under the composer while a turn runs.
var WorkingFooters = []string{"esc to interrupt"}

// RetryMarks are shown on the spinner line while a failed request waits.
var RetryMarks = []string{"Retrying in "}

// SpinnerLine is the generic shape of the line above the composer while a turn runs: one
// symbol, a text with an ellipsis, an optional parenthesis. The symbol changes between
// releases (· ✢ ✳ ✶ ✻ ✽ were seen), so it is only required to be no letter.
var SpinnerLine = pattern.New(`^[^\pL\pN\s]\x{fe0f}? \S.*…( ?\(.*)?\s*$`)

// ForeignTitles end the pane title, ForeignFooters stand below the last rule, of a view
// whose input line looks like the composer and is not: text typed into the agents view
// starts another session.
var (
	ForeignTitles  = []string{"claude agents"}
	ForeignFooters = []string{"ctrl+x to delete", "space to reply"}
)

// DialogFooters say that something other than the composer has the focus.
var DialogFooters = []string{
	"Esc to cancel", "Esc to exit", "Esc to close", "Enter to confirm", "Enter to select", "Enter to continue",
	"Enter to set as default", "Showing detailed transcript", "search prompts:", "to navigate",
}

// ApprovalQuestions begin the question of a permission prompt. A question that is not
// listed is a dialog for a person: the API key dialog also asks "Do you want to …?" and
// also offers a plain Yes.
var ApprovalQuestions = []string{
	"Do you want to proceed?", // shell, read, search, MCP, other tools
	"Do you want to create ", "Do you want to overwrite ", "Do you want to make this edit to",
	"Do you want to allow Claude to fetch this content?",
	"Do you want to allow this connection?", // from the program text, not seen
}

// QuestionMarks tell a questionnaire, a plan or their last page.
var QuestionMarks = []string{
	SubmitQuestion, "Exit plan mode?", "Would you like to proceed?", ChatChoice, "Type something",
}

// A questionnaire (AskUserQuestion). A digit takes a choice and goes on at once; a
// questionnaire with several questions ends with a page that sends all answers. The last
// choice of a question opens a line for own words in its own row: text, then Enter; a digit
// is text in it. With several choices allowed, or with previews, the layout is another one.
const (
	SubmitQuestion    = "Ready to submit your answers?"
	UnansweredMark    = "You have not answered all questions"
	SubmitTab         = "✔ Submit"
	ChatChoice        = "Chat about this" // gives the questionnaire up; below a rule of its own
	SelectFooter      = "Enter to select"
	OwnWordsLabel     = "Type something."
	TabBoxes          = "☐☒"
	DescriptionIndent = 5
)

var (
	TabRow    = pattern.New(`^(?:←\s+)?[☐☒] \S`)
	MultiMark = pattern.New(`^\[[ ✔]\] `)
	// SecretWords in a question make its answer a person's.
	SecretWords = pattern.New(`(?i)\b(?:password|passphrase|passcode|secret|token|api[ -]?key|private key|credentials?)\b`)
)

// The end of plan mode: short without a plan file, and with one a plan above three choices,
// of which the last opens a line for own words. LastingChoices of it change the mode for
// what follows and are a person's.
const (
	PlanTitle    = "Ready to code?"
	PlanOwnWords = "Tell Claude what to change"
	PlanFeedback = "shift+tab to approve with this feedback"
	PlanFooter   = "ctrl+g to edit in"
)

var (
	PlanQuestions   = []string{"Exit plan mode?", "Would you like to proceed?"}
	LastingChoices  = pattern.New(`\b(?:auto mode|auto-accept|bypass|clear context|don't ask again|always)\b`)
	RefusingChoices = map[string]bool{"No": true, "Cancel": true}
)

// NarrowBelow is the width under which dialogs are wrapped and scrolled so much that none
// is answered by key. Seen at 40 columns.
const NarrowBelow = 60

const (
	LabelYes      = "Yes" // exactly this grants one request
	LabelNoPrefix = "No"
)

// OptionLine is one numbered choice: marker, number, label. Narrow panes lose the blank
// after the dot.
var OptionLine = pattern.New(`^\s*(❯)?\s*(\d{1,2})\.\s*(\S.*)$`)

// PastedMark is the composer's placeholder for a long paste. Without "+M lines" the paste
// had no newline.
var PastedMark = pattern.New(`^\[Pasted text #\d+(?: \+(\d+) lines)?\]$`)

// A paste of more bytes or more newlines than these is collapsed to PastedMark.
const (
	PasteInlineChars    = 800
	PasteInlineNewlines = 2
)

// --- text that is a command ---

// ExitWords quit the program when they are the whole prompt, blanks aside.
var ExitWords = map[string]bool{"exit": true, "quit": true, ":q": true, ":q!": true, ":wq": true, ":wq!": true}

// CommandGlyphs begin a shell command or a slash command. One leading blank makes the
// text a plain prompt; Claude Code keeps that blank in its record.
const CommandGlyphs = "!/"
