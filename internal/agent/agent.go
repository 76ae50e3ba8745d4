// Package agent is the contract between the product and one kind of coding agent.
//
// An adapter knows how its agent's processes, files, sockets and screens look; all of it
// is data of that adapter. It reports facts as values. It holds no rule of a Turn, opens
// no Store, and types nothing: input is typed by the use case that owns the Turn, through
// package tmux, or submitted through the adapter's [Submitter].
package agent

import (
	"context"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/procinfo"
	"github.com/agent-knock-knock/akk/internal/tmux"
	"github.com/agent-knock-knock/akk/internal/turn"
)

// Ref names one live agent process in one pane.
type Ref struct {
	Endpoint turn.Endpoint    `json:"endpoint"`
	Process  turn.Incarnation `json:"process"`
	Cwd      string           `json:"cwd"`
	// Title is the pane title when the Ref was made; some agents name their thread there.
	Title string `json:"title,omitempty"`
}

// ThreadState says what is known of the agent's own conversation in the pane.
type ThreadState string

const (
	ThreadResolved       ThreadState = "resolved"        // exactly one thread, its id is known
	ThreadVerifiedAbsent ThreadState = "verified_absent" // complete evidence, and there is none yet
	ThreadAmbiguous      ThreadState = "ambiguous"       // more than one candidate
	ThreadUnavailable    ThreadState = "unavailable"     // evidence could not be read
)

// Activity is what the agent's durable evidence says, without the screen.
type Activity string

const (
	ActivityIdle    Activity = "idle"
	ActivityWorking Activity = "working"
	ActivityWaiting Activity = "waiting" // for an approval or an answer
	ActivityUnknown Activity = "unknown"
)

// Native is what the agent's process, files and sockets say of a Ref.
type Native struct {
	Version  string // "" when unknown
	Mode     string // codex: embedded, daemon, remote; claude: interactive
	Channel  turn.Channel
	Thread   ThreadState
	ThreadID string
	LogPath  string // "" until the agent writes it
	Activity Activity
	Reason   string            // one line: why something is unknown, ambiguous or degraded
	Extra    map[string]string // of the adapter alone; copied into the Anchor
}

// ScreenState is what a capture shows.
type ScreenState string

const (
	ScreenIdle     ScreenState = "idle"
	ScreenWorking  ScreenState = "working"
	ScreenApproval ScreenState = "awaiting_approval"
	ScreenDialog   ScreenState = "dialog" // another dialog, picker or questionnaire has the focus
	ScreenUnknown  ScreenState = "unknown"
)

// ComposerState is what the agent's input line shows.
type ComposerState string

const (
	ComposerEmpty   ComposerState = "empty" // focused, and nothing (or only the placeholder) in it
	ComposerDraft   ComposerState = "draft" // focused, with text in it
	ComposerAbsent  ComposerState = "absent"
	ComposerUnknown ComposerState = "unknown"
)

// Screen is a classified capture. Unknown is never idle.
type Screen struct {
	State    ScreenState
	Composer ComposerState
	Draft    string       // the composer's text as shown, lines joined by "\n"
	Prompt   *turn.Prompt // set for ScreenApproval, and for ScreenDialog when it could be read
	Reason   string
}

// Free reports whether the composer has the focus, with nothing in it.
func (s Screen) Free() bool { return s.State == ScreenIdle && s.Composer == ComposerEmpty }

// Match is a three-valued comparison.
type Match int

const (
	MatchUnknown Match = iota // the screen does not show enough to tell
	MatchYes
	MatchNo
)

// Adapter is one kind of agent.
type Adapter interface {
	// Kind is the agent's name in ids and schemas: "codex", "claude".
	Kind() string
	// Match reports whether p is an interactive process of this agent (its terminal
	// program itself, not a wrapper, server, or batch subcommand).
	Match(p procinfo.Process) bool
	// Identify reads the agent's own evidence for ref. An error means that nothing could
	// be said; partial knowledge is a Native with a Reason. It must return within its ctx.
	Identify(ctx context.Context, ref Ref) (Native, error)
	// Screen classifies a capture. Pure.
	Screen(c tmux.Capture) Screen
	// Literal returns text as it must be pasted so that the agent takes it as a plain
	// prompt, or a coded error (fault.Invalid) when that cannot be proved. Pure.
	Literal(text string) (string, error)
	// DraftMatches compares the composer with what was pasted. Pure.
	DraftMatches(s Screen, pasted string) Match
	// Anchor notes where the agent's records stand now. text is the request as it will be
	// pasted or submitted, clientID our message id.
	Anchor(ctx context.Context, ref Ref, n Native, text, clientID string) (turn.Anchor, error)
	// Follow reads the agent's records from a on and emits observations until the native
	// turn ended, gone was closed and the records were read to their end (then ObsGone if
	// they hold no end), or ctx ended. ObsArmed is emitted first. Follow reacts to file
	// events and does not poll faster than once a second. An error of emit ends it.
	Follow(ctx context.Context, ref Ref, a turn.Anchor, gone <-chan struct{}, emit func(turn.Observation) error) error
}

// Submission is the answer of a machine channel.
type Submission struct {
	ThreadID     string
	NativeTurnID string
}

// Submitter is implemented by an adapter whose agent has a machine channel. Submit is
// called at most once per message. An error that proves that the request was never
// written has the code [NotSubmitted]; every other error means that it may have been.
type Submitter interface {
	Submit(ctx context.Context, ref Ref, a turn.Anchor, clientID, text string) (Submission, error)
}

// Interrupter is implemented by an adapter whose agent has a machine channel that stops one
// turn and nothing else. An error with the code [NotSubmitted] proves that the request was
// never written, or that the agent refused it; after any other it may be on its way.
type Interrupter interface {
	Interrupt(ctx context.Context, ref Ref, a turn.Anchor, nativeTurnID string) error
}

// CodeIdleNoEnd is the code of an [turn.ObsTrouble]: the agent's records hold the request
// and no end of its turn, and the agent says that it is idle. A request that is back in
// the composer then proves that a person interrupted it before the first word.
const CodeIdleNoEnd = turn.CodeIdleNoEnd

// NotSubmitted is the code of an error that proves that nothing reached the agent.
const NotSubmitted fault.Code = "input_not_sent"
