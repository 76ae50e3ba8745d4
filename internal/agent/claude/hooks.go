package claude

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/agent-knock-knock/akk/internal/agent/claude/known"
	"github.com/agent-knock-knock/akk/internal/turn"
)

// sourceHook marks what the agent's hooks say. A hook is a faster source than the records,
// not a truer one: it wakes whoever looks, and proves nothing.
const sourceHook = "hook"

// maxHookTail bounds what is read of the events file; a line has some forty bytes.
const maxHookTail = 4 << 10

// hookEvents is the file to which the hooks of this process write, "" when it was not
// started with hooks of ours. The process's own arguments name it.
func (a *Adapter) hookEvents(pid int) string {
	p, err := a.process(pid)
	if err != nil {
		return ""
	}
	for i, arg := range p.Args {
		path, inline := strings.CutPrefix(arg, known.SettingsFlag+"=")
		if !inline && (arg != known.SettingsFlag || i+1 >= len(p.Args)) {
			continue
		}
		if !inline {
			path = p.Args[i+1]
		}
		events := filepath.Join(filepath.Dir(path), known.HookEventLog)
		if filepath.IsAbs(path) && filepath.Base(path) == known.HookSettings && isRegular(events) {
			return events
		}
	}
	return ""
}

// hookView is how the events file looked last.
type hookView struct {
	seen bool
	size int64
	mod  time.Time
}

// scanHooks reports the last event of the hooks as activity when there is a new one. What
// stood there before the first look is old.
func (f *follower) scanHooks() error {
	path := f.anchor.Extra[extraEvents]
	if path == "" {
		return nil
	}
	st, err := os.Stat(path)
	if err != nil {
		return nil // the pane is ending
	}
	v := hookView{true, st.Size(), st.ModTime()}
	old := f.hooks
	f.hooks = v
	if !old.seen || old == v {
		return nil
	}
	event := lastEvent(path, st.Size())
	if !slices.Contains(known.HookEvents, event) {
		return nil
	}
	return f.send(turn.Observation{Kind: turn.ObsActivity, Source: sourceHook, ThreadID: f.anchor.ThreadID, Code: event})
}

// lastEvent is the event of the last whole line, "" when there is none.
func lastEvent(path string, size int64) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	b, err := io.ReadAll(io.NewSectionReader(file, max(0, size-maxHookTail), maxHookTail))
	end := bytes.LastIndexByte(b, '\n')
	if err != nil || end < 0 {
		return ""
	}
	b = b[:end]
	var line struct {
		Event string `json:"event"`
	}
	if json.Unmarshal(b[bytes.LastIndexByte(b, '\n')+1:], &line) != nil {
		return ""
	}
	return line.Event
}
