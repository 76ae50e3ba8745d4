package claude

import "github.com/agent-knock-knock/akk/internal/pattern"

// What is known of conversations in Claude Code. All of it was seen on 2.1.197 (Linux):
//
//   - /clear begins a new session in the same process. The status file names it within
//     250 ms; its transcript begins with the command itself.
//   - /resume <id> shows the session's history; the status file names it within a second
//     (busy for a moment, then idle). Nothing is asked. It works for a session that holds
//     no prompt yet, and, without any warning, for one that another process has open: two
//     processes then write one transcript. Only the status files tell.
//   - An unknown id leaves the session as it is and says "Session <id> was not found.".
//   - The draft "/clear" opens a list below the composer, in which Enter runs what is typed.
//     "/resume <id>" opens none.
//   - The program itself keeps out of /resume: sidechains, sessions of teams (teamName) and,
//     marked sessionKind "bg", those of its background service.
const (
	newThreadCommand    = "/clear"
	resumeThreadCommand = "/resume "
	recCustomTitle      = "custom-title"
	recAITitle          = "ai-title"
	sdkEntrypoint       = "sdk" // begins the entrypoint of sessions that a program drives
)

// threadsSince is the oldest version on which the above was seen.
var threadsSince = [3]int{2, 1, 197}

var refusalLine = pattern.New(`Session ([0-9a-f-]{36}) was not found\.`)
