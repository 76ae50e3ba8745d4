// Package tmux drives tmux servers by running the tmux client: it lists panes, captures
// screens, pastes text and sends single keys, always to an exact pane.
//
// It never starts a server, a session or a pane, and never closes one. It knows no agent:
// whether a pane may be typed into is decided by its callers, whether it still is the
// same pane is proved here, in the same tmux command that types.
package tmux

// Pane is one pane as tmux reports it.
type Pane struct {
	Socket      string // absolute path of the server socket
	Session     string
	Window      int
	Index       int
	ID          string // "%3"
	PID         int    // the pane's first process
	Dead        bool
	InMode      bool // copy mode, view mode, ...: keys go to tmux, not to the program
	Command     string
	Path        string
	Title       string
	Width       int
	Height      int
	CursorX     int
	CursorY     int
	CursorFlag  bool // the program shows its cursor
	AlternateOn bool
}

// Target names the pane that input is meant for. All fields must match at the moment of
// input or nothing is sent.
type Target struct {
	Socket  string
	PaneID  string
	PanePID int
}

// Capture is a screen and the facts of its pane, read by one tmux command.
type Capture struct {
	Pane   Pane
	Lines  []string // visible screen, plain text, without trailing blanks
	Styled []string // the same lines with SGR sequences (capture-pane -e)
}
