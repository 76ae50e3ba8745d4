// Package tmux drives tmux servers by running the tmux client: it lists panes, captures
// screens, pastes text and sends single keys, always to an exact pane.
//
// It never starts a server, a session or a pane, and never closes one. It knows no agent:
// whether a pane may be typed into is decided by its callers, whether it still is the
// same pane is proved here, in the same tmux command that types.
//
// It needs tmux 3.2 or newer; what a version does not tell is reported as unknown.
package tmux

// Flag is a fact that some tmux versions do not report.
type Flag int8

const (
	FlagUnknown Flag = iota
	FlagOff
	FlagOn
)

// Pane is one pane as tmux reports it.
type Pane struct {
	Socket      string // absolute path of the server socket
	ServerPID   int
	Version     string // of the server: "3.3a"
	Session     string
	Window      int
	Index       int
	ID          string // "%3"
	PID         int    // the pane's first process
	Dead        bool
	InMode      bool   // copy mode, view mode, ...: keys go to tmux, not to the program
	InputOff    bool   // a person disabled input: tmux drops everything that is sent
	Synced      bool   // synchronize-panes: keys would reach every pane of the window
	Command     string // name of the foreground program, "" when it cannot be told exactly
	Path        string // directory of the foreground program, "" when it cannot be told exactly
	Title       string // "" when it cannot be told exactly
	Width       int
	Height      int
	CursorX     int
	CursorY     int
	CursorFlag  bool // the program shows its cursor
	AlternateOn bool
	// BracketedPaste says whether the program frames pastes. tmux tells it from 3.7 on;
	// before that it is FlagUnknown and whoever pastes several lines vouches for the program.
	BracketedPaste Flag
}

// Target returns the exact target of input for this pane.
func (p Pane) Target() Target { return Target{Socket: p.Socket, PaneID: p.ID, PanePID: p.PID} }

// Target names the pane that input is meant for. All fields must match at the moment of
// input or nothing is sent.
type Target struct {
	Socket  string
	PaneID  string
	PanePID int
}

// Capture is a screen and the facts of its pane, read by one tmux command.
type Capture struct {
	Pane Pane
	// Lines is the screen as plain text, one entry a row, without blanks at the ends of
	// rows. Empty rows are kept: without scrollback Lines[i] is row FirstRow+i.
	Lines  []string
	Styled []string // the same rows with SGR sequences (capture-pane -e)
	// FirstRow is the screen row of Lines[0]: 0, negative with scrollback, positive when
	// a very high pane was cut to MaxCaptureLines rows.
	FirstRow int
}
