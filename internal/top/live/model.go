// Package live draws a [top.Snapshot] again and again in a terminal that a person looks at.
//
// It is linked by the program akk-top alone: the library that owns the terminal asks the
// terminal for its colours while it is initialised, in every program that holds it, and
// costs each start two milliseconds.
package live

import (
	"context"
	"io"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/top"
)

// Source reads a Snapshot. It never fails: the Snapshot says what could not be read.
type Source func(ctx context.Context) top.Snapshot

// Run draws until a person ends it or ctx does.
func Run(ctx context.Context, source Source, in io.Reader, out io.Writer, interval time.Duration, color bool) error {
	m := model{ctx: ctx, source: source, interval: interval, frame: top.Frame{Width: 80, Height: 24, Color: color, Focus: 1}}
	_, err := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(out), tea.WithAltScreen(), tea.WithoutSignalHandler()).Run()
	if err != nil && ctx.Err() == nil {
		return fault.Wrap(err, fault.Unavailable, "top.run", "the terminal cannot be used: %v", err).WithHint("run it in a terminal, or with --once")
	}
	return nil
}

type read struct{ top.Snapshot }
type due struct{}

type model struct {
	ctx      context.Context
	source   Source
	interval time.Duration
	last     top.Snapshot
	frame    top.Frame
}

func (m model) Init() tea.Cmd { return m.fetch }

// fetch reads once. The next one is due an interval after its end: slow reads never pile up.
func (m model) fetch() tea.Msg { return read{m.source(m.ctx)} }

func (m model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.frame.Width, m.frame.Height = msg.Width, msg.Height
	case read:
		m.last = msg.Snapshot
		return m, tea.Tick(m.interval, func(time.Time) tea.Msg { return due{} })
	case due:
		return m, m.fetch
	case tea.KeyMsg:
		switch msg.String() {
		case "q", "esc", "ctrl+c":
			return m, tea.Quit
		case "tab":
			m.frame.Focus, m.frame.Scroll = (m.frame.Focus+1)%top.Sections, 0
		case "shift+tab":
			m.frame.Focus, m.frame.Scroll = (m.frame.Focus+top.Sections-1)%top.Sections, 0
		case "down", "j":
			m.frame.Scroll++
		case "up", "k":
			m.frame.Scroll = max(m.frame.Scroll-1, 0)
		}
	}
	return m, nil
}

func (m model) View() string {
	f := m.frame
	f.Now = time.Now()
	return top.Render(m.last, f)
}
