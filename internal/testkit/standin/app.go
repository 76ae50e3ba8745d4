package standin

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/agent-knock-knock/akk/internal/testkit/standin/term"
)

// The names of the agents that the stand-in plays.
const (
	Codex  = "codex"
	Claude = "claude"
)

// Config is everything the program needs to know.
type Config struct {
	Agent  string // Codex or Claude
	Home   string // the agent's own folder: ~/.codex or ~/.claude
	Cwd    string
	Gates  string
	Record string
	Events string
	Resume string // id of the thread to go on with
	Mode   Mode
	In     *os.File
	Out    io.Writer
}

const (
	escAlone  = 50 * time.Millisecond  // an Escape that nothing follows is the key
	burstStep = 8 * time.Millisecond   // Codex takes characters this close for a paste ...
	burstHold = 120 * time.Millisecond // ... and Enter this soon after them for a newline
	burstMin  = 3
	swallow   = 60 * time.Millisecond // swallow-enter: an Enter this soon after a paste is lost
	tick      = time.Second           // the working line counts seconds
	readSize  = 64 << 10

	ctrlCTwice = 2 * time.Second // Claude quits on the second C-c within this
)

type state int

const (
	idle state = iota
	working
	waiting // a dialog holds the focus
)

// face is what differs between the agents: screens and records.
type face interface {
	open() error
	close()
	sync()                                           // writes what it holds back for a moment
	status(s state)                                  // files and title that show the state
	begin(t *turn, queued bool)                      // a prompt was submitted: the turn starts
	steer(t *turn, text string)                      // a prompt joined the running turn
	enqueue(text string)                             // a prompt waits for the end of the turn
	preamble(t *turn, text string)                   // text before a tool call
	callStarted(t *turn, c *call)                    // a tool call was made
	callDone(t *turn, c *call, out string)           // it ran
	callDeclined(t *turn, c *call)                   // a person refused it, which ends the turn
	answered(t *turn, text string)                   // the final text
	ended(t *turn)                                   // the record of the end of an answered turn
	failed(t *turn, f failure)                       // the turn ended with an error
	interrupted(t *turn, partial string) (back bool) // Esc; back: the prompt returns to the composer
	shell(cmd string)                                // "!cmd"
	slash(text string) (keep bool)                   // "/word"; keep: it stays in the composer
	dialog(d *dialog) []string                       // the dialog's lines
	draw(cols, rows int) term.Frame
}

// app is the program: one goroutine owns everything in it; turns and timers hand it
// functions through tasks.
type app struct {
	base    context.Context // of Run; turns end with it
	cfg     Config
	j       journal
	face    face
	paint   term.Painter
	comp    composer
	dec     term.Decoder
	state   state
	dlg     *dialog
	turn    *turn
	queue   []string
	blocks  []block
	tasks   chan func()
	quit    bool
	deaf    bool
	parked  bool // queued-forever has taken a prompt
	pastes  int
	lastKey time.Time
	burst   int
	pasted  time.Time

	lastCtrlC time.Time
}

// Run plays the agent until it is told to quit, the terminal goes away or ctx ends.
func Run(ctx context.Context, cfg Config) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGHUP, syscall.SIGTERM)
	defer stop()
	j, err := openJournal(cfg.Record, cfg.Events)
	if err != nil {
		return err
	}
	a := &app{base: ctx, cfg: cfg, j: j, tasks: make(chan func(), 64), paint: term.Painter{W: cfg.Out}}
	switch cfg.Agent {
	case Codex:
		a.face = newCodex(a)
	case Claude:
		a.face = newClaude(a)
	default:
		return fmt.Errorf("standin: agent %q: want %s or %s", cfg.Agent, Codex, Claude)
	}
	j.event("start", "")
	a.die("start")
	if !wait(ctx, cfg.Mode.SlowStart) {
		return nil
	}
	restore, err := term.Raw(int(cfg.In.Fd()))
	if err != nil {
		return err
	}
	defer restore()
	a.start()
	defer a.stop()
	return a.loop(ctx)
}

func (a *app) start() {
	if a.cfg.Agent == Codex {
		io.WriteString(a.cfg.Out, "\x1b[?1049h")
	}
	if !a.cfg.Mode.NoBracketed {
		io.WriteString(a.cfg.Out, "\x1b[?2004h")
	}
	io.WriteString(a.cfg.Out, "\x1b[?25l")
}

func (a *app) stop() {
	a.face.close()
	end := "\x1b]0;\x07\x1b[?2004l\x1b[?25h"
	if a.cfg.Agent == Codex {
		end += "\x1b[?1049l"
	}
	io.WriteString(a.cfg.Out, end+"\r\n")
	a.j.event("exit", "")
}

func (a *app) loop(ctx context.Context) error {
	switch {
	case a.cfg.Mode.TrustDialog:
		a.ask(&dialog{kind: dialogTrust, options: 2})
	case a.cfg.Mode.Onboarding:
		a.ask(&dialog{kind: dialogOnboarding})
	default:
		if err := a.ready(); err != nil {
			return err
		}
	}
	input := make(chan []byte, 16)
	go readAll(a.cfg.In, input) // ends with the terminal, at the latest with the process
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	defer signal.Stop(resized)
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for !a.quit {
		a.draw()
		var esc <-chan time.Time
		if a.dec.Pending() {
			esc = time.After(escAlone)
		}
		select {
		case <-ctx.Done():
			return nil
		case b, ok := <-input:
			if !ok {
				return nil
			}
			a.j.input(b)
			if !a.cfg.Mode.DropInput {
				a.keys(a.dec.Feed(b))
			}
		case <-esc:
			a.keys(a.dec.Flush())
		case f := <-a.tasks:
			f()
		case <-resized:
			a.paint.Invalidate()
		case <-ticker.C:
		}
	}
	return nil
}

// ready opens the agent's records and shows the composer.
func (a *app) ready() error {
	if err := a.face.open(); err != nil {
		return err
	}
	a.set(idle)
	a.draw()
	a.j.event("ready", "")
	return nil
}

func (a *app) set(s state) {
	a.state = s
	a.face.status(s)
}

func (a *app) draw() {
	cols, rows := term.Size(int(a.cfg.In.Fd()))
	a.paint.Paint(a.face.draw(cols, rows))
}

// post hands f to the program's goroutine; it waits while the queue is full.
func (a *app) post(ctx context.Context, f func()) {
	select {
	case a.tasks <- f:
	case <-ctx.Done():
	}
}

// later runs f in the program's goroutine after d.
func (a *app) later(d time.Duration, f func()) {
	time.AfterFunc(d, func() { a.post(a.base, f) })
}

// die ends the process without any farewell when the mode asks for it at this point.
func (a *app) die(point string) {
	if a.cfg.Mode.DieAt == point {
		a.face.sync()
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // the signal is on its way
	}
}

func readAll(f *os.File, out chan<- []byte) {
	defer close(out)
	for {
		b := make([]byte, readSize)
		n, err := f.Read(b)
		if n > 0 {
			out <- b[:n]
		}
		if err != nil {
			return
		}
	}
}

// wait sleeps for d and reports whether ctx is still alive.
func wait(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// runPretend plays a command: touch and echo do what they say, nothing else is run.
func (a *app) runPretend(cmd string) string {
	word, rest, _ := strings.Cut(strings.TrimSpace(cmd), " ")
	switch rest = strings.TrimSpace(rest); {
	case word == "echo":
		return rest + "\n"
	case word == "touch" && rest != "" && !strings.ContainsAny(rest, " &;|$`'\"<>"):
		path := rest
		if !filepath.IsAbs(path) {
			path = filepath.Join(a.cfg.Cwd, path)
		}
		f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return err.Error() + "\n"
		}
		f.Close()
		return ""
	}
	return "(the stand-in runs nothing)\n"
}
