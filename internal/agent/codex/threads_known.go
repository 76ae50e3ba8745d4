package codex

import "github.com/agent-knock-knock/akk/internal/pattern"

// What is known of threads in Codex. All of it was seen on 0.171.0 (Linux), in the pane's
// own process and as a client of the shared server:
//
//   - /clear begins a new thread in the same process, with no question asked (/new asks for
//     a worktree in a git repository). The pane's title names the new thread within a
//     second; "Starting | <id>" may be shown before "Ready | <id>".
//   - In the pane's process a new lock is held open from then on; locks of earlier threads
//     stay open until the process ends. /resume takes the lock anew, which changes its time.
//   - /resume <id> shows the thread's history and an empty composer. An id without a
//     rollout (never prompted, archived, unknown) leaves the thread as it is and says
//     "■ No saved chat found matching '<id>'.".
//   - A thread whose lock another process holds is shown without a composer: "This
//     conversation is open in another app", with the cursor hidden and the title already
//     naming it. So the title alone proves nothing; the composer must be there.
//   - The draft "/clear" opens a list of commands above the composer, which takes Enter. A
//     blank behind the word closes the list, and the command runs as without it.
//     "/resume <id>" opens none.
//   - `codex archive <id>` moves the rollout to archived_sessions, without day folders.
//   - The first line of a rollout has 22 kB; the directory stands in its first 400 bytes.
const (
	newThreadCommand    = "/clear "
	resumeThreadCommand = "/resume "
	archivedDir         = "archived_sessions"
	sessionIndex        = "session_index.jsonl" // {"id","thread_name","updated_at"}: the last line of an id counts
	serverArgument      = "app-server"
)

// threadsSince is the oldest version on which the above was seen.
var threadsSince = [3]int{0, 171, 0}

var refusalLine = pattern.New(`^\s*■ No saved chat found matching '([0-9a-f-]{36})'\.`)
