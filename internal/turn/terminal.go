package turn

import (
	"fmt"
	"strings"
)

// Endpoint is one tmux pane of one tmux server, exactly: a new server that reuses a pane
// id, or a pane id whose first process was replaced, is another endpoint.
type Endpoint struct {
	Socket    string `json:"socket"`               // absolute path of the server's socket
	PaneID    string `json:"pane_id"`              // "%3"
	PanePID   int    `json:"pane_pid"`             // the pane's first process
	PaneBirth string `json:"pane_birth,omitempty"` // birth of that process, see Incarnation
	Target    string `json:"target"`               // session:window.pane, for people only
}

// Key is the stable identity of the endpoint: what the one-Turn-per-terminal fence is on.
func (e Endpoint) Key() string {
	return strings.Join([]string{"tmux", e.Socket, e.PaneID, fmt.Sprint(e.PanePID), e.PaneBirth}, "|")
}

// Incarnation is one start of one process. A pid alone is not an identity: pids are
// reused, births are not.
type Incarnation struct {
	PID   int    `json:"pid"`
	Birth string `json:"birth"` // <start time in clock ticks>@<first 8 hex of the boot id>
}

// Channel is the way a submission reaches the agent.
type Channel string

const (
	ChannelKeyboard    Channel = "keyboard"     // bracketed paste and one Enter, proved
	ChannelCodexSocket Channel = "codex_socket" // turn/start on the agent's own server
)

// LogMark is a position in one of the agent's own files. Device and inode tell a replaced
// file from a grown one.
type LogMark struct {
	Path   string `json:"path"`
	Device uint64 `json:"device,omitempty"`
	Inode  uint64 `json:"inode,omitempty"`
	Offset int64  `json:"offset"` // bytes; only records that begin at or after it are ours
}

// Anchor is where the agent's own records stood before the first byte was typed. It is
// taken once, stored with the Turn and handed to every monitor of the Turn, so that a
// monitor that starts again sees exactly what the first one would have seen.
type Anchor struct {
	Agent       string            `json:"agent"`
	Channel     Channel           `json:"channel"`
	ThreadID    string            `json:"thread_id,omitempty"` // "" while the thread has no id
	Log         *LogMark          `json:"log,omitempty"`       // nil: the log does not exist yet
	Candidates  []LogMark         `json:"candidates,omitempty"`
	RequestHash string            `json:"request_hash"`        // ids.TextHash of the request as sent
	ClientID    string            `json:"client_id,omitempty"` // our id inside the agent's records (message id)
	Extra       map[string]string `json:"extra,omitempty"`     // of the adapter alone, such as the agent's home
}
