package panels

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/clock"
	"github.com/agent-knock-knock/akk/internal/discover"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/keyboard"
	"github.com/agent-knock-knock/akk/internal/procinfo"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/testkit/faketmux"
	"github.com/agent-knock-knock/akk/internal/tmux"
	"github.com/agent-knock-knock/akk/internal/turn/dispatch"
	"github.com/agent-knock-knock/akk/internal/turn/turnsql"
)

// program is a small agent: a composer, a card, a picker, and a note of every byte that
// it gets. FAULT makes it misbehave.
const program = `stty raw -echo
buf= mode=composer model=one at=one lines=()
: >"$LOG"
draw() {
  printf '\033[2J\033[H'
  for l in "${lines[@]}"; do printf '%s\r\n' "$l"; done
  case $mode in
  composer) printf '> %s' "$buf" ;;
  picker) printf 'PICKER at=%s current=%s' "$at" "$model" ;;
  rules) printf 'RULES current=%s' "$model" ;;
  junk) printf 'JUNK' ;;
  esac
}
draw
while IFS= read -rN1 k; do
  [ "$k" = $'\n' ] && k=$'\r' # read itself makes it of a CR
  printf '%s' "$k" >>"$LOG"
  case $mode in
  composer)
    case $k in
    $'\r')
      case $FAULT$buf in
      silent/status) lines+=(/status) ;;
      junk/*) mode=junk ;;
      */status) lines+=(/status "CARD thread=$THREAD model=$model") ;;
      */model) mode=picker at=$model ;;
      */rules) mode=rules ;;
      esac
      buf= ;;
    $'\025') buf= ;;
    *) [ "$FAULT" = deaf ] || buf+=$k ;;
    esac ;;
  picker | rules)
    case $k in
    $'\033') mode=composer ;;
    d) if [ $at = one ]; then at=two; else at=one; fi ;;
    s) mode=composer; [ "$FAULT" = stubborn ] || model=$at ;;
    esac ;;
  esac
  draw
done`

// fake is the adapter of that agent.
type fake struct {
	agent.Adapter
	pid int

	mu     sync.Mutex
	native agent.Native
	screen *agent.Screen // shown in place of what is there
}

func (*fake) Kind() string                    { return "codex" }
func (f *fake) Match(p procinfo.Process) bool { return p.PID == f.pid }
func (f *fake) Identify(context.Context, agent.Ref) (agent.Native, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.native, nil
}

func last(c tmux.Capture) string {
	for i := len(c.Lines) - 1; i >= 0; i-- {
		if l := strings.TrimRight(c.Lines[i], " "); l != "" {
			return l
		}
	}
	return ""
}

func (f *fake) Screen(c tmux.Capture) agent.Screen {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.screen != nil {
		return *f.screen
	}
	l := last(c)
	draft, ok := strings.CutPrefix(l, ">")
	switch draft = strings.TrimSpace(draft); {
	case ok && draft == "":
		return agent.Screen{State: agent.ScreenIdle, Composer: agent.ComposerEmpty}
	case ok:
		return agent.Screen{State: agent.ScreenIdle, Composer: agent.ComposerDraft, Draft: draft}
	case strings.HasPrefix(l, "PICKER"), strings.HasPrefix(l, "RULES"):
		return agent.Screen{State: agent.ScreenDialog, Composer: agent.ComposerAbsent}
	}
	return agent.Screen{State: agent.ScreenUnknown, Composer: agent.ComposerUnknown}
}

func (*fake) DraftMatches(s agent.Screen, pasted string) agent.Match {
	if s.Draft == pasted {
		return agent.MatchYes
	}
	return agent.MatchNo
}

func (*fake) PanelProfile(version string) (string, error) {
	if version != "1.0" {
		return "", fault.New(agent.PanelsUnsupported, "fake.panels", "version %s is not known", version)
	}
	return "fake-1", nil
}
func (*fake) PanelWidth() int                         { return 80 }
func (*fake) ReadStatus() agent.StatusPilot           { return &card{} }
func (*fake) ReadSetting() agent.SettingPilot         { return &card{} }
func (*fake) ReadModels() agent.CataloguePilot        { return &picker{command: "/model"} }
func (*fake) ReadPermissions() agent.PermissionsPilot { return &picker{command: "/rules"} }
func (*fake) ChooseModel(_ agent.ModelCatalogue, want agent.Setting) agent.ModelPilot {
	return &picker{command: "/model", want: want.Model}
}
func (*fake) ChoosePermission(_ agent.Permissions, id string) agent.Pilot {
	return &picker{command: "/rules", want: id}
}
func (*fake) ClosePanel() agent.Pilot { return &picker{pressed: true, close: true} }
func (*fake) PanelShown(c tmux.Capture) string {
	if pickerLine.MatchString(last(c)) {
		return "model picker"
	}
	return ""
}
func (*fake) Defaults(context.Context, agent.Ref, agent.Native) (agent.Setting, error) {
	return agent.Setting{Model: "one"}, nil
}

var (
	cardLine   = regexp.MustCompile(`^CARD thread=(\S+) model=(\S+)$`)
	pickerLine = regexp.MustCompile(`^(?:PICKER at=(\S+)|RULES) current=(\S+)$`)
)

// card reads the card that came after the command.
type card struct {
	had   int
	match []string
}

func (*card) Command() string { return "/status" }
func (p *card) Begin(c tmux.Capture) {
	for _, l := range c.Lines {
		if cardLine.MatchString(l) {
			p.had++
		}
	}
}
func (p *card) Next(c tmux.Capture, s agent.Screen) agent.Step {
	n := 0
	for _, l := range c.Lines {
		if m := cardLine.FindStringSubmatch(l); m != nil {
			n, p.match = n+1, m
		}
	}
	if n <= p.had || s.Composer != agent.ComposerEmpty {
		return agent.Wait()
	}
	return agent.Done()
}
func (p *card) Status() agent.StatusPanel {
	if p.match == nil {
		return agent.StatusPanel{}
	}
	return agent.StatusPanel{ThreadID: p.match[1], Fields: []agent.Field{
		{Name: "Session", Value: p.match[1]}, {Name: "Account", Value: "me@example.com"}, {Name: "Contact", Value: "of you@example.org"}}}
}
func (p *card) Setting() agent.Setting { return agent.Setting{Model: p.match[2], Effort: "low"} }

// picker walks the picker: it reads, or chooses want, or closes.
type picker struct {
	command, want, from string
	current             string
	pressed, close      bool
}

func (p *picker) Command() string  { return p.command }
func (*picker) Begin(tmux.Capture) {}
func (p *picker) Next(c tmux.Capture, s agent.Screen) agent.Step {
	if s.Composer == agent.ComposerEmpty && p.pressed {
		return agent.Done()
	}
	m := pickerLine.FindStringSubmatch(last(c))
	switch {
	case m == nil || p.pressed && !p.close || m[1] != "" && m[1] == p.from:
		return agent.Wait()
	case p.want == "" || p.close:
		p.current, p.pressed, p.close = m[2], true, false
		return agent.Press(tmux.Escape)
	case m[1] != "" && m[1] != p.want:
		p.from = m[1]
		return agent.Press(tmux.Char('d'))
	}
	p.pressed = true
	return agent.Commit(tmux.Char('s'))
}
func (p *picker) Already() bool { return false }
func (p *picker) Catalogue() agent.ModelCatalogue {
	m := func(id string) agent.Model { return agent.Model{ID: id, Label: id, Efforts: []string{"low"}} }
	return agent.ModelCatalogue{Models: []agent.Model{m("one"), m("two")}, Effective: agent.Setting{Model: p.current, Effort: "low"}}
}
func (p *picker) Permissions() agent.Permissions {
	return agent.Permissions{Current: p.current, Choices: []agent.Permission{{ID: "one"}, {ID: "two"}, {ID: "full", NeedsPerson: true}}}
}

// world is the small agent in a real pane, and the use cases.
type world struct {
	t       *testing.T
	agent   *fake
	tmux    *faketmux.Server
	pane    *faketmux.Pane
	log     string
	db      *store.DB
	service *Service
	sent    []dispatch.SendInput
	onSend  func()
}

func newWorld(t *testing.T, fails string, width int) *world {
	t.Helper()
	w := &world{t: t, tmux: faketmux.New(t), log: filepath.Join(t.TempDir(), "bytes")}
	w.pane = w.tmux.Run(faketmux.Spec{Argv: []string{"bash", "-c", program}, Width: width, Env: []string{"LOG=" + w.log, "FAULT=" + fails, "THREAD=t1"}})
	w.agent = &fake{pid: w.pane.PID, native: agent.Native{Version: "1.0", Thread: agent.ThreadResolved, ThreadID: "t1", Activity: agent.ActivityIdle, Channel: "keyboard"}}
	w.pane.WaitScreen(func(c tmux.Capture) bool { return strings.HasPrefix(last(c), ">") })
	var err error
	if w.db, err = store.Open(t.Context(), t.TempDir(), store.Options{Relaxed: true}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.db.Close() })
	w.update(func(tx *store.Tx) error { return turnsql.PutBridge(tx, turnsql.Bridge{ID: "bridge-a", ProfileID: "p"}) })
	w.service = w.another()
	return w
}

// another is the use cases of another process on the same machine.
func (w *world) another() *Service {
	scanner := discover.New([]string{w.tmux.Socket()}, w.agent)
	dir := filepath.Join(filepath.Dir(w.log), "locks")
	return New(Config{DB: w.db, Desk: keyboard.Desk{Finder: scanner, LockDir: dir, Clock: clock.System{}}, Clock: clock.System{}, Sender: w, Extended: true, Budget: 20 * time.Second})
}

func (w *world) update(f func(*store.Tx) error) {
	w.t.Helper()
	if err := w.db.Update(w.t.Context(), f); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) Replay(context.Context, string, string) (dispatch.SendResult, bool, error) {
	return dispatch.SendResult{}, false, nil
}

func (w *world) Send(_ context.Context, in dispatch.SendInput) (dispatch.SendResult, error) {
	w.sent = append(w.sent, in)
	if w.onSend != nil {
		w.onSend()
	}
	return dispatch.SendResult{}, nil
}

// show makes the adapter see that screen, whatever is there.
func (w *world) show(s *agent.Screen) {
	w.agent.mu.Lock()
	defer w.agent.mu.Unlock()
	w.agent.screen = s
}

func (w *world) know(f func(*agent.Native)) {
	w.agent.mu.Lock()
	defer w.agent.mu.Unlock()
	f(&w.agent.native)
}

func (w *world) term() discover.Terminal {
	w.t.Helper()
	scan, err := w.service.Desk.Finder.(*discover.Scanner).Scan(w.t.Context(), discover.Options{Screens: true})
	if err != nil || len(scan.Terminals) != 1 {
		w.t.Fatalf("%+v %v", scan, err)
	}
	return scan.Terminals[0]
}

func (w *world) id() ids.TerminalID { w.t.Helper(); return w.term().ID }

// bytes is everything that the program got.
func (w *world) bytes() string {
	w.t.Helper()
	b, err := os.ReadFile(w.log)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(b)
}

// got waits until the program got exactly that.
func (w *world) got(want string) {
	w.t.Helper()
	faketmux.Wait(w.t, "the bytes", func() bool { return w.bytes() == want }, func() string { return "got " + w.bytes() })
}
