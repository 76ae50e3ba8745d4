package standin

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/google/uuid"
)

// CodexVersion is the version that the stand-in plays.
const CodexVersion = "0.171.0"

// codex plays the Codex TUI in its embedded mode: it holds its thread's writer lock from
// the start and its rollout from the first prompt on.
type codex struct {
	a           *app
	thread      string
	created     time.Time
	lock        *os.File
	rollout     *os.File
	oldFiles    []*os.File // of threads left by /new: Codex keeps them open
	log         recordLog
	ordinal     int
	history     int // history_sequence
	inputs      int // user_input_order
	totalIn     int
	titled      bool
	threadTitle bool // the title shows state and thread id, as configured
}

func newCodex(a *app) *codex {
	c := &codex{a: a}
	c.log = recordLog{a: a, write: c.writeRollout}
	config, err := os.ReadFile(filepath.Join(a.cfg.Home, "config.toml"))
	c.threadTitle = err == nil && strings.Contains(string(config), "terminal_title") && strings.Contains(string(config), "thread-id")
	return c
}

func (c *codex) open() error {
	c.created = time.Now()
	c.thread = newID()
	if id := c.a.cfg.Resume; id != "" {
		if err := c.resume(id); err != nil {
			return err
		}
	}
	dir := filepath.Join(c.a.cfg.Home, "thread-writer-locks")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	lock, err := os.OpenFile(filepath.Join(dir, c.thread+".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	c.lock = lock
	return syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}

// resume goes on with a thread that has a rollout.
func (c *codex) resume(id string) error {
	found, err := filepath.Glob(filepath.Join(c.a.cfg.Home, "sessions", "*", "*", "*", "rollout-*-"+id+".jsonl"))
	if err != nil || len(found) != 1 {
		return fmt.Errorf("standin: no rollout found for thread %s", id)
	}
	data, err := os.ReadFile(found[0])
	if err != nil {
		return err
	}
	c.thread, c.ordinal, c.titled = id, strings.Count(string(data), "\n"), true
	c.rollout, err = os.OpenFile(found[0], os.O_APPEND|os.O_WRONLY, 0)
	return err
}

func (c *codex) close() {
	for _, f := range append(c.oldFiles, c.lock, c.rollout) {
		if f != nil {
			f.Close()
		}
	}
}

func (c *codex) sync() {} // every record is written at once

func (c *codex) status(state) {} // the title and the screen are all that Codex shows

func (c *codex) writeRollout(b []byte) error {
	if c.rollout == nil {
		local := c.created.Local()
		dir := filepath.Join(c.a.cfg.Home, "sessions", local.Format("2006"), local.Format("01"), local.Format("02"))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		name := "rollout-" + local.Format("2006-01-02T15-04-05") + "-" + c.thread + ".jsonl"
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			return err
		}
		c.rollout = f
	}
	_, err := c.rollout.Write(b)
	return err
}

func (c *codex) begin(t *turn, queued bool) {
	c.log.next()
	c.remember(t.prompt)
	if c.ordinal == 0 {
		c.sessionMeta()
		c.taskStarted(t, "user")
		c.contextMessages(t)
		c.turnContext(t)
		c.settingsApplied()
	} else {
		c.settingsApplied()
		c.taskStarted(t, "user")
		c.turnContext(t)
	}
	c.userMessage(t, t.prompt)
	c.a.block(blockUser, t.prompt)
}

func (c *codex) steer(t *turn, text string) {
	c.remember(text)
	c.tokenCount()
	c.userMessage(t, text)
	c.a.block(blockUser, text)
}

func (c *codex) enqueue(string) {}

// remember adds a prompt to the history that the arrow keys use.
func (c *codex) remember(text string) {
	line := obj("session_id", c.thread, "ts", time.Now().Unix(), "text", text)
	if err := appendBytes(filepath.Join(c.a.cfg.Home, "history.jsonl"), append(line, '\n')); err != nil {
		c.a.j.event("error", err.Error())
	}
}

func (c *codex) preamble(t *turn, text string) {
	c.agentMessage(t, text, "commentary")
	c.a.block(blockAgent, text)
}

func (c *codex) answered(t *turn, text string) {
	c.log.final()
	c.agentMessage(t, text, "final_answer")
	c.usage(t)
	c.tokenCount()
	c.a.block(blockAgent, text)
}

func (c *codex) ended(t *turn) {
	if c.a.cfg.Mode.ForeignTurn {
		other := &turn{id: newID(), started: t.started, first: t.first}
		c.taskComplete(other, "not the answer of this turn", nil)
	}
	c.taskComplete(t, t.partial, nil)
	c.a.block(blockWorked, worked(time.Since(t.started)))
	c.titled = true
}

func (c *codex) failed(t *turn, f failure) {
	message, info := codexError(f)
	c.taskComplete(t, nil, obj("message", message, "codex_error_info", info))
	c.a.block(blockError, strings.TrimSpace(message))
	c.titled = true
}

// codexError is how Codex words an HTTP status or a broken stream.
func codexError(f failure) (message string, info any) {
	switch {
	case f.status == 0:
		return "stream disconnected before completion: " + f.text, "other"
	case f.status == 401, f.status == 403:
		return fmt.Sprintf("unexpected status %d: fake failure %d, url: http://127.0.0.1/v1/responses", f.status, f.status),
			obj("http_connection_failed", obj("http_status_code", f.status))
	case f.status == 429:
		return "exceeded retry limit, last status: 429 Too Many Requests",
			obj("response_too_many_failed_attempts", obj("http_status_code", 429))
	case f.status >= 500:
		return "We’re currently experiencing high demand, which may cause temporary errors.", "internal_server_error"
	}
	return string(obj("error", obj("code", nil, "message", fmt.Sprintf("fake failure %d", f.status),
		"param", nil, "type", "server_error"))) + "\n", "other"
}

const codexInterrupted = "Conversation interrupted - use /feedback if something went wrong"

func (c *codex) interrupted(t *turn, partial string) bool {
	c.tokenCount()
	c.turnAborted(t)
	if partial != "" {
		c.a.block(blockAgent, partial)
	}
	c.a.block(blockInterrupted, codexInterrupted)
	return false
}

func (c *codex) callStarted(t *turn, call *call) {
	c.functionCall(t, call)
	c.usage(t)
}

func (c *codex) callDone(t *turn, call *call, out string) {
	if call.cmd != "" {
		c.commandExecution(t, call, out, "unified_exec_startup", t.started)
		c.a.blockMore(blockTool, call.cmd, out)
	} else {
		c.a.blockMore(blockTool, call.name, out)
	}
	c.functionOutput(t, call, fmt.Sprintf("Chunk ID: 3f64c2\nWall time: 0.0000 seconds\nProcess exited with code 0\nOriginal token count: %d\nOutput:\n%s", len(out)/4+1, out))
	c.tokenCount()
}

func (c *codex) callDeclined(t *turn, call *call) {
	c.functionOutput(t, call, fmt.Sprintf("Wall time: %.1f seconds\naborted by user", time.Since(t.started).Seconds()))
	c.tokenCount()
	c.turnAborted(t)
	c.a.block(blockCanceled, call.cmd)
	c.a.block(blockInterrupted, codexInterrupted)
}

// shell plays "!cmd": Codex runs it without asking and records it as a turn of its own.
func (c *codex) shell(cmd string) {
	c.log.next()
	c.remember("!" + cmd)
	out := c.a.runPretend(cmd)
	t := &turn{id: newID(), started: time.Now()}
	if c.ordinal == 0 {
		c.sessionMeta()
	}
	c.taskStarted(t, nil)
	c.commandExecution(t, &call{id: uuid.NewString(), cmd: cmd}, out, "user_shell", t.started)
	c.shellMessage(t, cmd, out)
	c.taskComplete(t, nil, nil)
	c.a.blockMore(blockShell, cmd, out)
	c.a.block(blockWorked, worked(time.Since(t.started)))
}

func (c *codex) slash(text string) (keep bool) {
	word, _, _ := strings.Cut(strings.TrimSpace(text), " ")
	switch word {
	case "/quit", "/exit":
		c.a.quit = true
	case "/new", "/clear":
		c.oldFiles = append(c.oldFiles, c.lock, c.rollout)
		c.rollout, c.ordinal, c.history, c.inputs, c.titled = nil, 0, 0, 0, false
		c.a.cfg.Resume = ""
		c.a.blocks = nil
		if err := c.open(); err != nil {
			c.a.block(blockError, err.Error())
		}
	case "/status":
		c.a.block(blockInfo, "  Model:               fake-model\n  Directory:           "+c.a.cfg.Cwd+"\n  Session:             "+c.thread)
	default:
		c.a.block(blockInfo, fmt.Sprintf("• Unrecognized command '%s'. Type \"/\" for a list of supported commands.", word))
		return true
	}
	return false
}

// stamp is the time as the rollout writes it.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

func seconds(t time.Time) json.Number {
	return json.Number(fmt.Sprintf("%.6f", float64(t.UnixNano())/1e9))
}

func worked(d time.Duration) string {
	if d < time.Second {
		return "Worked for <1s • " + time.Now().Format("15:04")
	}
	return fmt.Sprintf("Worked for %ds • %s", int(d.Seconds()), time.Now().Format("15:04"))
}
