package standin

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf16"

	"github.com/google/uuid"
)

// ClaudeVersion is the version that the stand-in plays.
const ClaudeVersion = "2.1.197"

// transcriptBatch is how long Claude Code gathers records before it writes them; the file
// is not kept open.
const transcriptBatch = 100 * time.Millisecond

// claude plays the Claude Code TUI: a status file of its process from the start, and a
// transcript that grows in batches.
type claude struct {
	a       *app
	session string
	started time.Time
	log     recordLog
	batch   []byte
	parent  any    // uuid of the last record of the chain, nil at its start
	before  any    // parent when the turn began
	last    string // the last prompt
	typed   bool   // the transcript has begun
	titled  bool
	steps   int    // what came back in this turn: tool results, first texts
	user    string // uuid of the turn's prompt
	prompt  string // promptId of the turn
	count   int
}

func newClaude(a *app) *claude {
	c := &claude{a: a, started: time.Now()}
	c.log = recordLog{a: a, write: c.gather}
	return c
}

func (c *claude) open() error {
	c.session = uuid.NewString()
	if id := c.a.cfg.Resume; id != "" {
		if _, err := os.Stat(c.path(id)); err != nil {
			return fmt.Errorf("standin: no conversation found with session ID: %s", id)
		}
		c.session, c.typed, c.titled = id, true, true
	}
	return os.MkdirAll(filepath.Join(c.a.cfg.Home, "sessions"), 0o700)
}

func (c *claude) path(session string) string {
	return filepath.Join(c.a.cfg.Home, "projects", slug(c.a.cfg.Cwd), session+".jsonl")
}

// slug is the folder name for a working folder: every UTF-16 unit that is no ASCII letter
// or digit becomes "-". The real program cuts and hashes very long ones.
func slug(cwd string) string {
	out := make([]byte, 0, len(cwd))
	for _, u := range utf16.Encode([]rune(cwd)) {
		if u < 0x80 && (u >= '0' && u <= '9' || u >= 'A' && u <= 'Z' || u >= 'a' && u <= 'z') {
			out = append(out, byte(u))
		} else {
			out = append(out, '-')
		}
	}
	return string(out)
}

func (c *claude) close() {
	if c.typed {
		c.plain("last-prompt", "lastPrompt", c.last, "leafUuid", c.parent)
	}
	c.flush()
	os.Remove(c.statusPath()) // it may never have been written
}

func (c *claude) sync() { c.flush() }

func (c *claude) statusPath() string {
	return filepath.Join(c.a.cfg.Home, "sessions", fmt.Sprintf("%d.json", os.Getpid()))
}

// status rewrites the status file in place, as the real program does.
func (c *claude) status(s state) {
	now := time.Now().UnixMilli()
	kv := []any{"pid", os.Getpid(), "sessionId", c.session, "cwd", c.a.cfg.Cwd, "startedAt", c.started.UnixMilli(),
		"procStart", processStart(), "version", ClaudeVersion, "peerProtocol", 1, "kind", "interactive", "entrypoint", "cli",
		"name", filepath.Base(c.a.cfg.Cwd) + "-" + c.session[:2], "nameSource", "derived",
		"status", map[state]string{idle: "idle", working: "busy", waiting: "waiting"}[s], "updatedAt", now, "statusUpdatedAt", now}
	if s == waiting {
		kv = append(kv, "waitingFor", "permission prompt")
	}
	if err := os.WriteFile(c.statusPath(), obj(kv...), 0o600); err != nil {
		c.a.j.event("error", err.Error())
	}
}

func (c *claude) gather(b []byte) error {
	if len(c.batch) == 0 {
		c.a.later(transcriptBatch, c.flush)
	}
	c.batch = append(c.batch, b...)
	return nil
}

func (c *claude) flush() {
	if len(c.batch) == 0 {
		return
	}
	err := appendBytes(c.path(c.session), c.batch)
	if c.batch = nil; err != nil {
		c.a.j.event("error", err.Error())
	}
}

func (c *claude) begin(t *turn, queued bool) {
	c.log.next()
	c.last = t.prompt
	source := "typed"
	if queued {
		source = "queued"
		c.operation("dequeue")
	}
	c.startFile()
	c.before, c.steps, c.prompt = c.parent, 0, uuid.NewString()
	c.user = uuid.NewString()
	c.snapshot(c.user)
	c.userPrompt(t.prompt, source)
	if c.count == 1 {
		c.attachment()
	}
	c.history(t.prompt)
	c.a.block(blockUser, t.prompt)
}

func (c *claude) steer(*turn, string) {} // Claude Code queues instead

func (c *claude) enqueue(text string) { c.operation("enqueue", "content", text) }

func (c *claude) preamble(t *turn, text string) {
	c.steps++
	c.assistant(obj("text", text, "type", "text"), nil)
	c.a.block(blockAgent, text)
}

func (c *claude) callStarted(t *turn, call *call) {
	c.assistant(obj("id", call.id, "input", raw(call.args), "name", call.name, "type", "tool_use"), "tool_use")
}

func (c *claude) callDone(t *turn, call *call, out string) {
	c.steps++
	content := strings.TrimRight(out, "\n")
	shown := content
	if content == "" {
		content, shown = "(Bash completed with no output)", "Done"
	}
	c.toolResult(call, content, false, obj("stdout", strings.TrimRight(out, "\n"), "stderr", "", "interrupted", false,
		"isImage", false, "noOutputExpected", out == ""))
	c.a.blockMore(blockTool, callTitle(call), shown)
}

const claudeRefused = "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the new_string was NOT written to the file). STOP what you are doing and wait for the user to tell you how to proceed."

func (c *claude) callDeclined(t *turn, call *call) {
	c.toolResult(call, claudeRefused, true, "User rejected tool use")
	c.interruption("[Request interrupted by user for tool use]")
	c.a.blockMore(blockTool, callTitle(call), claudeInterrupted)
}

const claudeInterrupted = "Interrupted · What should Claude do instead?"

func (c *claude) answered(t *turn, text string) {
	c.log.final()
	c.assistant(obj("text", text, "type", "text"), "end_turn")
	c.a.block(blockAgent, text)
}

func (c *claude) ended(t *turn) {
	c.duration(t)
	if c.a.cfg.Mode.Sidechain {
		c.sidechain("SIDECHAIN")
	}
	if !c.titled {
		c.titled = true
		c.plain("ai-title", "aiTitle", "fake title")
	}
	c.a.block(blockWorked, fmt.Sprintf("Crunched for %ds", int(time.Since(t.started).Seconds())))
}

func (c *claude) failed(t *turn, f failure) {
	text, kind := "API Error: "+f.text, "unknown"
	switch {
	case f.status == 401, f.status == 403:
		text, kind = fmt.Sprintf("Please run /login · API Error: %d fake failure %d", f.status, f.status), "authentication_failed"
	case f.status != 0:
		text = fmt.Sprintf("API Error: %d fake failure %d", f.status, f.status)
	}
	c.apiError(text, kind, f.status)
	c.duration(t)
	c.a.block(blockAgent, text)
	c.a.block(blockWorked, fmt.Sprintf("Brewed for %ds", int(time.Since(t.started).Seconds())))
}

// interrupted: before anything came back the prompt returns to the composer, and the next
// prompt takes its place in the chain of records.
func (c *claude) interrupted(t *turn, partial string) (back bool) {
	if partial == "" && c.steps == 0 {
		c.parent = c.before
		c.a.blocks = c.a.blocks[:len(c.a.blocks)-1]
		return true
	}
	if partial != "" {
		c.synthetic(partial, nil)
		c.a.block(blockAgent, partial+"\n  ⎿  "+claudeInterrupted)
	}
	c.interruption("[Request interrupted by user]", "interruptedMessageId", "msg_fake_"+t.id[24:])
	return false
}

// shell plays "!cmd": it is recorded as the person's input, and the model is told.
func (c *claude) shell(cmd string) {
	c.log.next()
	c.startFile()
	c.history("!" + cmd)
	t := &turn{started: time.Now()}
	out := strings.TrimRight(c.a.runPretend(cmd), "\n")
	c.user, c.prompt = uuid.NewString(), uuid.NewString()
	c.snapshot(c.user)
	c.userText(c.user, "<bash-input>"+cmd+"</bash-input>")
	c.userText(uuid.NewString(), "<bash-stdout>"+out+"</bash-stdout><bash-stderr></bash-stderr>")
	c.assistant(obj("text", "OK", "type", "text"), "end_turn")
	c.duration(t)
	c.a.blockMore(blockShell, cmd, out)
	c.a.block(blockAgent, "OK")
}

func (c *claude) slash(text string) (keep bool) {
	word, _, _ := strings.Cut(strings.TrimSpace(text), " ")
	c.history(text)
	switch word {
	case "/exit", "/quit":
		c.a.quit = true
	case "/clear":
		c.flush()
		c.a.cfg.Resume, c.a.blocks = "", nil
		c.parent, c.typed, c.titled, c.count = nil, false, false, 0
		c.session = uuid.NewString()
		c.status(idle)
	default:
		c.startFile()
		c.chain("type", "system", "subtype", "informational", "content", "Unknown command: "+word, "isMeta", false,
			"timestamp", stamp(time.Now()), "uuid", uuid.NewString(), "level", "warning")
		c.a.block(blockAgent, "Unknown command: "+word)
	}
	return false
}

func (c *claude) history(text string) {
	line := obj("display", text, "pastedContents", obj(), "timestamp", time.Now().UnixMilli(),
		"project", c.a.cfg.Cwd, "sessionId", c.session)
	if err := appendBytes(filepath.Join(c.a.cfg.Home, "history.jsonl"), append(line, '\n')); err != nil {
		c.a.j.event("error", err.Error())
	}
}

func callTitle(call *call) string {
	if call.cmd != "" {
		return call.name + "(" + call.cmd + ")"
	}
	return call.name
}
