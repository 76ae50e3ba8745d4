package claude

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/agent/claude/known"
	"github.com/agent-knock-knock/akk/internal/turn"
)

// patience bounds every wait for a condition.
const patience = 15 * time.Second

// hands is a clock that a test moves.
type hands struct {
	mu     sync.Mutex
	now    time.Time
	timers []*handTimer
}

type handTimer struct {
	at time.Time
	c  chan time.Time
}

func newHands() *hands { return &hands{now: time.Unix(1_700_000_000, 0)} }

func (h *hands) Now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

func (h *hands) NewTimer(d time.Duration) (<-chan time.Time, func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := &handTimer{at: h.now.Add(d), c: make(chan time.Time, 1)}
	h.timers = append(h.timers, t)
	return t.c, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.timers = slices.DeleteFunc(h.timers, func(x *handTimer) bool { return x == t })
	}
}

// tick moves the clock and fires what is due.
func (h *hands) tick(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = h.now.Add(d)
	for _, t := range h.timers {
		if !t.at.After(h.now) {
			select {
			case t.c <- h.now:
			default:
			}
		}
	}
}

const (
	agentPID = 4242
	thread   = "11111111-2222-3333-4444-555555555555"
)

// rig is a configuration directory with one running agent, as its files show it.
type rig struct {
	t     *testing.T
	dir   string
	cwd   string
	clock *hands
	a     *Adapter
	ref   agent.Ref
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, dir: filepath.Join(t.TempDir(), ".claude"), cwd: "/w", clock: newHands()}
	r.a = New(Options{Clock: r.clock, Env: func(pid int, name string) (string, bool, error) {
		if name == known.ConfigDirEnv && pid == agentPID {
			return r.dir, true, nil
		}
		return "", false, nil
	}})
	r.ref = agent.Ref{Cwd: r.cwd, Process: turn.Incarnation{PID: agentPID, Birth: "777@abcdef01"}}
	if err := os.MkdirAll(filepath.Join(r.dir, known.SessionsDir), 0o700); err != nil {
		t.Fatal(err)
	}
	r.say("idle", "")
	return r
}

func (r *rig) statusPath() string {
	return filepath.Join(r.dir, known.SessionsDir, fmt.Sprintf("%d.json", agentPID))
}

// say writes the status file.
func (r *rig) say(status, waiting string, change ...func(map[string]any)) {
	r.t.Helper()
	m := map[string]any{
		"pid": agentPID, "sessionId": thread, "cwd": r.cwd, "procStart": "777", "version": "2.1.197",
		"kind": "interactive", "status": status, "anUnknownField": map[string]any{"x": 1},
	}
	if waiting != "" {
		m["waitingFor"] = waiting
	}
	for _, c := range change {
		c(m)
	}
	b, err := json.Marshal(m)
	if err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(r.statusPath(), b, 0o600); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) log() string { return r.logOf(thread) }

func (r *rig) logOf(id string) string {
	return filepath.Join(projectDir(r.dir, r.cwd), id+known.TranscriptExt)
}

func (r *rig) append(text string) { r.appendTo(r.log(), text) }

func (r *rig) appendTo(path, text string) {
	r.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		r.t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		r.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		r.t.Fatal(err)
	}
}

// anchor identifies and anchors a request.
func (r *rig) anchor(text string) turn.Anchor {
	r.t.Helper()
	n, err := r.a.Identify(r.t.Context(), r.ref)
	if err != nil {
		r.t.Fatal(err)
	}
	an, err := r.a.Anchor(r.t.Context(), r.ref, n, text, "msg-1")
	if err != nil {
		r.t.Fatal(err)
	}
	return an
}

// run is one Follow at work.
type run struct {
	r    *rig
	gone chan struct{}
	stop context.CancelFunc
	done chan error

	mu  sync.Mutex
	out []turn.Observation
}

func (r *rig) follow(an turn.Anchor) *run {
	ctx, stop := context.WithCancel(r.t.Context())
	u := &run{r: r, gone: make(chan struct{}), stop: stop, done: make(chan error, 1)}
	go func() {
		u.done <- r.a.Follow(ctx, r.ref, an, u.gone, func(o turn.Observation) error {
			u.mu.Lock()
			defer u.mu.Unlock()
			u.out = append(u.out, o)
			return nil
		})
	}()
	r.t.Cleanup(func() { stop() })
	u.until("armed", func() bool { return u.has(turn.ObsArmed, "") })
	return u
}

func (u *run) seen() []turn.Observation {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.out)
}

func (u *run) has(k turn.ObservationKind, code string) bool {
	return slices.ContainsFunc(u.seen(), func(o turn.Observation) bool {
		return o.Kind == k && (code == "" || o.Code == code)
	})
}

// until waits for a condition, moving the clock by the safety tick as real time passes.
func (u *run) until(what string, ok func() bool) {
	u.r.t.Helper()
	u.poll(what, ok, 0)
}

// untilQuiet waits for a condition that needs silence; the clock is moved meanwhile.
func (u *run) untilQuiet(what string, ok func() bool) {
	u.r.t.Helper()
	u.poll(what, ok, known.SafetyTick)
}

func (u *run) poll(what string, ok func() bool, step time.Duration) {
	u.r.t.Helper()
	deadline := time.After(patience)
	beat := time.NewTicker(5 * time.Millisecond)
	defer beat.Stop()
	for !ok() {
		select {
		case <-deadline:
			u.r.t.Fatalf("%s: not seen; got %s", what, strings.Join(u.brief(), " | "))
		case <-beat.C:
			if step > 0 {
				u.r.clock.tick(step)
			}
		}
	}
}

// settled lets the follower look n times more at everything.
func (u *run) settled(n int) {
	u.r.t.Helper()
	for range n {
		deadline := time.After(patience)
		for waiting := false; !waiting; {
			u.r.clock.mu.Lock()
			waiting = len(u.r.clock.timers) > 0
			u.r.clock.mu.Unlock()
			select {
			case <-deadline:
				u.r.t.Fatal("the follower does not wait")
			case err := <-u.done:
				u.done <- err
				return
			case <-time.After(time.Millisecond):
			}
		}
		u.r.clock.tick(known.SafetyTick)
		u.until("a look", func() bool {
			u.r.clock.mu.Lock()
			defer u.r.clock.mu.Unlock()
			return len(u.r.clock.timers) > 0 && u.r.clock.timers[0].at.After(u.r.clock.now) || len(u.done) > 0
		})
	}
}

// ended waits for the end of Follow and returns its error.
func (u *run) ended() error {
	u.r.t.Helper()
	select {
	case err := <-u.done:
		u.done <- err
		return err
	case <-time.After(patience):
		u.r.t.Fatalf("Follow did not end; got %s", strings.Join(u.brief(), " | "))
		return nil
	}
}

// brief names the observations other than armed and activity.
func (u *run) brief() []string {
	var s []string
	for _, o := range u.seen() {
		if o.Kind == turn.ObsArmed || o.Kind == turn.ObsActivity {
			continue
		}
		line := string(o.Kind)
		if o.Code != "" {
			line += " " + o.Code
		}
		if o.Text != "" {
			line += " " + o.Text
		}
		s = append(s, line)
	}
	return s
}

func (u *run) expect(want ...string) {
	u.r.t.Helper()
	if got := u.brief(); !slices.Equal(got, want) {
		u.r.t.Errorf("got  %q\nwant %q", got, want)
	}
}

// The records of case H8.

func record(kind, uuid, parent, rest string) string {
	p := "null"
	if parent != "" {
		p = `"` + parent + `"`
	}
	return fmt.Sprintf(`{"sessionId":%q,"cwd":"/w","version":"2.1.197","isSidechain":false,"type":%q,"uuid":%q,"parentUuid":%s,%s}`, thread, kind, uuid, p, rest) + "\n"
}

func prompt(uuid, parent, text string) string {
	b, _ := json.Marshal(text)
	return record("user", uuid, parent, `"message":{"role":"user","content":`+string(b)+`}`)
}

func answer(uuid, parent, text string) string {
	b, _ := json.Marshal(text)
	return record("assistant", uuid, parent, `"message":{"role":"assistant","stop_reason":"end_turn","content":[{"type":"text","text":`+string(b)+`}]}`)
}

func endOf(uuid, parent string) string {
	return record("system", uuid, parent, `"subtype":"turn_duration","content":""`)
}

func hookNote(uuid, parent string) string {
	return record("system", uuid, parent, `"subtype":"stop_hook_summary","content":""`)
}

func sidechain(line string) string {
	return strings.Replace(line, `"isSidechain":false`, `"isSidechain":true`, 1)
}
