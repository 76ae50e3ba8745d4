package standin

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/agent-knock-knock/akk/internal/testkit/fakemodel/script"
)

// turn is one native turn of the agent. The program's goroutine owns it; play only reads
// what it was started with.
type turn struct {
	id      string
	prompt  string
	script  script.Script
	started time.Time
	first   time.Time // when the first text came; zero before
	partial string    // text shown so far
	call    *call     // the tool call that runs or waits
	cancel  context.CancelFunc
	gen     int // steering starts play again; older plays are ignored
}

// call is one tool call as the agent sees it.
type call struct {
	id       string
	name     string
	args     string // JSON
	cmd      string // the shell command, "" for other tools
	reason   string
	approval bool
}

// failure is an error that ends a turn.
type failure struct {
	status int    // HTTP status, 0 for a broken stream
	text   string // of the stream
}

const (
	gatePoll  = 20 * time.Millisecond  // at first; an eighth slower each time ...
	gateSlow  = 250 * time.Millisecond // ... down to this: hundreds of stand-ins may wait
	callPause = 10 * time.Millisecond
)

func (a *app) beginTurn(text string, queued bool) {
	t := &turn{id: newID(), prompt: text, script: script.Parse(text), started: time.Now()}
	a.turn = t
	a.face.begin(t, queued)
	a.set(working)
	a.die("accepted")
	a.play(t)
}

// steer lets a prompt join the running turn: what was asked before is dropped.
func (a *app) steer(text string) {
	t := a.turn
	t.cancel()
	t.prompt, t.script, t.partial, t.call = text, script.Parse(text), "", nil
	a.face.steer(t, text)
	a.play(t)
}

// play starts the script of t in its own goroutine, which ends when the script ends or
// the turn is cancelled.
func (a *app) play(t *turn) {
	ctx, cancel := context.WithCancel(a.base)
	t.cancel = cancel
	t.gen++
	p := player{a: a, t: t, gen: t.gen, sc: t.script, prompt: t.prompt}
	go func() {
		defer cancel()
		p.run(ctx)
	}()
}

// player performs one script.
type player struct {
	a      *app
	t      *turn
	gen    int
	sc     script.Script
	prompt string
}

// do runs f in the program's goroutine if the turn is still the running one, and waits
// for it. It reports whether f ran.
func (p player) do(ctx context.Context, f func()) bool {
	ran := make(chan bool, 1)
	p.a.post(ctx, func() {
		live := p.a.turn == p.t && p.t.gen == p.gen && ctx.Err() == nil
		if live {
			f()
		}
		ran <- live
	})
	select {
	case ok := <-ran:
		return ok
	case <-ctx.Done():
		return false
	}
}

func (p player) run(ctx context.Context) {
	if !wait(ctx, p.sc.Hold) {
		return
	}
	if p.sc.Fail > 0 {
		p.do(ctx, func() { p.a.failTurn(failure{status: p.sc.Fail}) })
		return
	}
	if !wait(ctx, p.sc.Sleep) || !p.gate(ctx) {
		return
	}
	if p.sc.FailEv != "" {
		p.do(ctx, func() { p.a.failTurn(failure{text: p.sc.FailEv}) })
		return
	}
	if p.sc.Pre != "" && !p.do(ctx, func() { p.a.face.preamble(p.t, p.sc.Pre) }) {
		return
	}
	last := ""
	for _, c := range p.sc.Calls {
		out, ok := p.call(ctx, c)
		if !ok {
			return
		}
		last = out
	}
	if p.stream(ctx, p.sc.Text(p.prompt, last)) && wait(ctx, p.sc.Linger) {
		p.do(ctx, p.a.finishTurn)
	}
}

// gate waits for the file that releases GATE.
func (p player) gate(ctx context.Context) bool {
	if p.sc.Gate == "" {
		return true
	}
	path := filepath.Join(p.a.cfg.Gates, filepath.Base(p.sc.Gate))
	for pause := gatePoll; ; pause = min(pause+pause/8, gateSlow) {
		if _, err := os.Stat(path); err == nil {
			return true
		}
		if !wait(ctx, pause) {
			return false
		}
	}
}

// call makes one tool call and waits for the person's decision when it needs one.
func (p player) call(ctx context.Context, sc script.Call) (out string, ok bool) {
	c := p.a.resolve(sc)
	answer := make(chan struct{}, 1)
	ok = p.do(ctx, func() {
		p.t.call = c
		p.a.face.callStarted(p.t, c)
		if c.approval {
			p.a.ask(&dialog{kind: dialogApproval, call: c, options: 3, approved: answer})
		}
	})
	if !ok {
		return "", false
	}
	if c.approval {
		select {
		case <-answer:
		case <-ctx.Done():
			return "", false
		}
	}
	if !wait(ctx, callPause) {
		return "", false
	}
	ok = p.do(ctx, func() {
		p.a.die("tool")
		out = "ok\n"
		if c.cmd != "" {
			out = p.a.runPretend(c.cmd)
		}
		p.t.call = nil
		p.a.face.callDone(p.t, c, out)
	})
	return out, ok
}

func (p player) stream(ctx context.Context, text string) bool {
	for i, piece := range p.sc.Pieces(text) {
		if i > 0 && !wait(ctx, p.sc.Every) {
			return false
		}
		ok := p.do(ctx, func() {
			if p.t.first.IsZero() {
				p.t.first = time.Now()
			}
			p.t.partial += piece
		})
		if !ok {
			return false
		}
		if p.sc.Drop > 0 && i+1 >= p.sc.Drop {
			p.do(ctx, func() {
				p.a.failTurn(failure{text: "Transport error: network error: error decoding response body"})
			})
			return false
		}
	}
	return true
}

// finishTurn records the answer and then the end of the turn.
func (a *app) finishTurn() {
	t := a.turn
	a.die("answer")
	a.face.answered(t, t.partial)
	a.j.event("answer", t.partial)
	a.die("final")
	a.face.ended(t)
	a.j.event("end", t.id)
	a.die("end")
	a.settle()
}

func (a *app) failTurn(f failure) {
	a.face.failed(a.turn, f)
	a.j.event("fail", fmt.Sprint(f.status, f.text))
	a.settle()
}

// interrupt is Escape on a working agent.
func (a *app) interrupt() {
	t := a.turn
	t.cancel()
	a.j.event("interrupt", t.partial)
	if a.face.interrupted(t, t.partial) {
		a.comp.set(t.prompt)
	}
	a.settle()
}

func (a *app) decline(c *call) {
	t := a.turn
	t.cancel()
	a.j.event("decline", c.cmd)
	a.face.callDeclined(t, c)
	a.settle()
}

// settle makes the agent idle, or starts the next queued prompt.
func (a *app) settle() {
	a.turn, a.dlg = nil, nil
	a.set(idle)
	if len(a.queue) > 0 {
		next := a.queue[0]
		a.queue = a.queue[1:]
		a.j.event("submit", next)
		a.beginTurn(next, true)
	}
}

// resolve turns a scripted call into one of the agent's own tools.
func (a *app) resolve(sc script.Call) *call {
	c := &call{id: "call_" + strings.ReplaceAll(newID(), "-", "")[:16], name: sc.Name, args: sc.Arg}
	shell, key := "exec_command", "cmd"
	if a.cfg.Agent == Claude {
		shell, key = "Bash", "command"
		c.id = "toolu_" + c.id[5:]
	}
	if sc.Kind == script.Run {
		c.name, c.cmd, c.approval = shell, sc.Arg, true
		args := map[string]string{key: sc.Arg}
		if a.cfg.Agent == Claude {
			args["description"] = "Run " + sc.Arg
		}
		b, _ := json.Marshal(args) // a map of strings always encodes
		c.args = string(b)
		return c
	}
	var args struct {
		Cmd         string `json:"cmd"`
		Command     string `json:"command"`
		Permissions string `json:"sandbox_permissions"`
		Reason      string `json:"justification"`
	}
	if sc.Name == shell && json.Unmarshal([]byte(sc.Arg), &args) == nil {
		c.cmd, c.reason = args.Cmd+args.Command, args.Reason
		c.approval = a.cfg.Agent == Claude || args.Permissions == "require_escalated"
	}
	return c
}

// newID is a UUID of version 7, as Codex numbers threads and turns.
func newID() string { return uuid.Must(uuid.NewV7()).String() }
