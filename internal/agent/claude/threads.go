package claude

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/agent/claude/known"
	"github.com/agent-knock-knock/akk/internal/agent/claude/transcript"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/redact"
	"github.com/agent-knock-knock/akk/internal/turn"
)

var _ agent.ThreadKeeper = (*Adapter)(nil)

// Bounds of a listing: heads and tails of transcripts, never whole ones.
const (
	maxTranscripts = 20_000
	headRead       = 256 << 10
	tailRead       = 64 << 10
	maxStatusFiles = 1000
)

// ThreadSupport says whether what a pane shows after a command can be proved: the status
// file of its process must name the session.
func (a *Adapter) ThreadSupport(n agent.Native) error {
	const op = "claude.threads"
	no := func(hint, format string, args ...any) error {
		return fault.New(agent.CodeThreads, op, format, args...).WithHint("%s", hint)
	}
	switch {
	case n.Version == "":
		return no("change the session by hand in the pane", "the version of this Claude Code is not known")
	case olderThan(n.Version, threadsSince):
		return no("change the session by hand in the pane, or update Claude Code", "changing sessions is not verified for Claude Code %s", n.Version)
	case n.Thread != agent.ThreadResolved:
		return no("mend that, then call agent_knock_knock_list again", "the pane's own session is not proved: %s", n.Reason)
	}
	return nil
}

// olderThan reports that a version is older than another, or no version at all.
func olderThan(version string, than [3]int) bool {
	var v [3]int
	if n, _ := fmt.Sscanf(version, "%d.%d.%d", &v[0], &v[1], &v[2]); n != 3 {
		return true
	}
	return slices.Compare(v[:], than[:]) < 0
}

// ThreadCommand returns the command of the pane's own composer.
func (a *Adapter) ThreadCommand(id string) string {
	if id == "" {
		return newThreadCommand
	}
	return resumeThreadCommand + id
}

// ThreadRefusals counts "was not found" lines for id.
func (a *Adapter) ThreadRefusals(lines []string, id string) int {
	n := 0
	for _, l := range lines {
		if m := refusalLine.FindStringSubmatch(l); m != nil && m[1] == id {
			n++
		}
	}
	return n
}

// Threads lists the sessions of ref's directory in which a person said something.
func (a *Adapter) Threads(ctx context.Context, ref agent.Ref, n agent.Native, limit int) (agent.ThreadList, error) {
	const op = "claude.threads"
	dir := n.Extra[extraProjectDir]
	if dir == "" {
		return agent.ThreadList{}, fault.New(fault.Invalid, op, "the agent was not identified").WithHint("identify it first")
	}
	var out agent.ThreadList
	owners := a.holders(ref, n)
	files, cut := transcriptsIn(dir)
	out.Cut = cut
	for _, f := range files {
		if err := ctx.Err(); err != nil {
			return agent.ThreadList{}, fault.Wrap(err, fault.Timeout, op, "reading the agent's sessions took too long")
		}
		t, ok := f.thread(ref.Cwd)
		if !ok {
			continue
		}
		if len(out.Threads) == limit {
			out.Cut = true
			break
		}
		t.Owner = owners.of(t.ID)
		out.Threads = append(out.Threads, t)
	}
	return out, nil
}

// Thread reads the one session of id.
func (a *Adapter) Thread(_ context.Context, ref agent.Ref, n agent.Native, id string) (agent.Thread, error) {
	if dir := n.Extra[extraProjectDir]; dir != "" && sessionIDShape.MatchString(id) {
		f := transcriptFile{id: id, path: filepath.Join(dir, id+known.TranscriptExt)}
		info, err := os.Lstat(f.path)
		if f.info = info; err == nil && info.Mode().IsRegular() {
			if t, ok := f.thread(ref.Cwd); ok {
				t.Owner = a.holders(ref, n).of(id)
				return t, nil
			}
		}
	}
	return agent.Thread{}, fault.New(fault.NotFound, "claude.thread", "there is no session %s in this directory", id).
		WithHint("call agent_knock_knock_list_resumable_threads and use an id from it")
}

// transcriptFile is one transcript that may be listed.
type transcriptFile struct {
	id   string
	path string
	info fs.FileInfo
}

// transcriptsIn returns the transcripts of a project, newest first.
func transcriptsIn(dir string) (out []transcriptFile, cut bool) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, false // no session was ever written here
	}
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), known.TranscriptExt)
		if !ok || !sessionIDShape.MatchString(id) || !e.Type().IsRegular() {
			continue
		}
		if len(out) == maxTranscripts {
			cut = true
			break
		}
		if info, err := e.Info(); err == nil {
			out = append(out, transcriptFile{id, filepath.Join(dir, e.Name()), info})
		}
	}
	slices.SortFunc(out, func(a, b transcriptFile) int {
		if c := b.info.ModTime().Compare(a.info.ModTime()); c != 0 {
			return c
		}
		return cmp.Compare(b.id, a.id)
	})
	return out, cut
}

// headRecord is what a record says of its session.
type headRecord struct {
	SessionID   string `json:"sessionId"`
	Cwd         string `json:"cwd"`
	IsSidechain bool   `json:"isSidechain"`
	TeamName    string `json:"teamName"`
	SessionKind string `json:"sessionKind"`
	Entrypoint  string `json:"entrypoint"`
}

// thread reads the head and the tail of the file. It is false for a session of another
// directory (two may share a folder), for one that no person leads, and for one in which
// nobody said anything yet.
func (f transcriptFile) thread(cwd string) (agent.Thread, bool) {
	file, err := os.Open(f.path)
	if err != nil {
		return agent.Thread{}, false
	}
	defer file.Close()
	t := agent.Thread{ID: f.id, Workspace: cwd, UpdatedAt: f.info.ModTime().UTC().Truncate(time.Millisecond), Token: f.token()}
	prompt, placed := "", false
	lines := bufio.NewScanner(io.LimitReader(file, headRead))
	lines.Buffer(make([]byte, 0, 32<<10), headRead)
	for prompt == "" && lines.Scan() {
		var h headRecord
		if json.Unmarshal(lines.Bytes(), &h) != nil {
			continue // broken, or cut by the bound
		}
		switch {
		case h.IsSidechain, h.TeamName != "", h.SessionKind != "", strings.HasPrefix(h.Entrypoint, sdkEntrypoint):
			return t, false
		case h.SessionID != "" && h.SessionID != f.id, h.Cwd != "" && !placed && !sameDir(h.Cwd, cwd):
			return t, false
		}
		placed = placed || h.Cwd != ""
		if rec, err := transcript.ParseRecord(lines.Bytes()); err == nil {
			prompt, _ = rec.HumanPrompt()
		}
	}
	if prompt == "" || !placed {
		return t, false
	}
	t.Preview = redact.Line(prompt, agent.MaxThreadPreview)
	t.Title = redact.Line(titleOf(file, f.info.Size()), agent.MaxThreadTitle)
	return t, true
}

func sameDir(a, b string) bool {
	if a == b {
		return true
	}
	realA, errA := filepath.EvalSymlinks(a)
	realB, errB := filepath.EvalSymlinks(b)
	return errA == nil && errB == nil && realA == realB
}

// titleOf returns the newest title near the end of a transcript; a person's wins.
func titleOf(f io.ReaderAt, size int64) string {
	from := max(0, size-tailRead)
	buf, err := io.ReadAll(io.NewSectionReader(f, from, tailRead))
	if err != nil {
		return ""
	}
	var own, made string
	for line := range bytes.Lines(buf) {
		if !bytes.Contains(line, []byte(recCustomTitle)) && !bytes.Contains(line, []byte(recAITitle)) {
			continue
		}
		var r struct {
			Type   string `json:"type"`
			Custom string `json:"customTitle"`
			AI     string `json:"aiTitle"`
		}
		if json.Unmarshal(line, &r) != nil {
			continue
		}
		switch r.Type {
		case recCustomTitle:
			own = r.Custom
		case recAITitle:
			made = r.AI
		}
	}
	return cmp.Or(own, made)
}

func (f transcriptFile) token() string {
	st, ok := f.info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return ids.TextHash(fmt.Sprintf("%s|%d|%d|%d|%d", f.path, st.Dev, st.Ino, f.info.Size(), f.info.ModTime().UnixNano()))
}

// owners is who has sessions open, by the status files.
type owners struct {
	by    map[string][]int // session id → living processes
	self  int
	blind bool // a living process that may work in this directory has no readable status
}

func (o owners) of(id string) agent.Ownership {
	here := false
	for _, pid := range o.by[id] {
		if pid != o.self {
			return agent.OwnedElsewhere
		}
		here = true
	}
	switch {
	case here:
		return agent.OwnedHere
	case o.blind:
		return agent.OwnedUnknown
	}
	return agent.OwnedByNobody
}

// holders reads the status files of the pane's configuration directory. A file that a
// killed process left behind counts for nothing.
func (a *Adapter) holders(ref agent.Ref, n agent.Native) owners {
	o := owners{by: map[string][]int{}, self: ref.Process.PID}
	dir := filepath.Join(n.Extra[extraConfigDir], known.SessionsDir)
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) > maxStatusFiles {
		o.blind = true
		return o
	}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".json")
		pid, err := strconv.Atoi(name)
		if !ok || err != nil {
			continue
		}
		p, err := a.process(pid)
		if err != nil || p.Zombie() {
			o.blind = o.blind || err != nil && !fault.Is(err, fault.NotFound)
			continue
		}
		s, err := readStatus(filepath.Join(dir, e.Name()))
		if fault.Is(err, fault.Unavailable) { // it is rewritten in place
			s, err = readStatus(filepath.Join(dir, e.Name()))
		}
		switch {
		case fault.Is(err, fault.NotFound): // it ended meanwhile
		case err != nil:
			o.blind = o.blind || p.Cwd == "" || p.Cwd == ref.Cwd
		case s.of(p.Incarnation):
			o.by[s.SessionID] = append(o.by[s.SessionID], pid)
		}
	}
	return o
}

// of reports whether s was written by exactly this process, whatever kind of session it
// leads: a background one holds its session too.
func (s status) of(p turn.Incarnation) bool {
	s.Kind = ""
	return s.foreign(p) == ""
}
