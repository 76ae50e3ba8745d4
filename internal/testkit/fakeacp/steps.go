package fakeacp

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// lateAfter is when LATE speaks after its answer.
const lateAfter = 50 * time.Millisecond

// bigChunks is in how many pieces BIG sends its text.
const bigChunks = 64

var keywords map[string]func(t *turn, args string)

func init() { // the steps refer to the table
	keywords = map[string]func(t *turn, args string){
		"SAY": say, "ECHO": echo,
		"HOLD": hold, "HANG": hang,
		"IGNORE-CANCEL":    func(t *turn, _ string) { t.silent = true },
		"LATE":             func(t *turn, _ string) { t.late = true },
		"TWICE":            func(t *turn, _ string) { t.twice = true },
		"GARBAGE":          garbage,
		"OBJECT":           func(t *turn, _ string) { t.line("42") },
		"NOTIFY":           func(t *turn, _ string) { t.notify("agent/heartbeat", object{"n": 1}) },
		"VENDOR":           func(t *turn, _ string) { t.notify("_x/y", object{"n": 1}) },
		"UNKNOWN-RESPONSE": func(t *turn, _ string) { t.send(object{"jsonrpc": "2.0", "id": 424242, "result": object{}}) },
		"NULL-ID-ERROR": func(t *turn, _ string) {
			t.send(object{"jsonrpc": "2.0", "id": nil, "error": rpc{Code: -32700, Message: "Parse error"}})
		},
		"UNKNOWN-UPDATE": func(t *turn, _ string) { t.update(t.s, object{"sessionUpdate": "notice", "title": "a notice"}) },
		"UNKNOWN-CANCEL": func(t *turn, _ string) { t.notify("$/cancel_request", object{"requestId": 987654}) },
		"BIG":            big, "LINE": longLine, "STREAM": stream, "TOOLSTREAM": toolStream,
		"PERM":            func(t *turn, _ string) { t.permissions(1, usualOptions) },
		"PERM3":           func(t *turn, _ string) { t.permissions(3, usualOptions) },
		"PERMS":           func(t *turn, args string) { t.permissions(number(args, 1), usualOptions) },
		"PERM-NOREJECT":   func(t *turn, _ string) { t.permissions(1, usualOptions[:1]) },
		"PERM-ALWAYS":     func(t *turn, _ string) { t.permissions(1, everyOption) },
		"PERM-LEFT":       func(t *turn, _ string) { t.permissionNamed(false) },
		"PERM-AGAIN":      func(t *turn, _ string) { t.permissionNamed(true) },
		"PERM-LATE":       func(t *turn, _ string) { t.asksLate = true },
		"INFO":            information,
		"ELICIT-FORM":     elicitForm,
		"ELICIT-URL":      elicitURL,
		"ELICIT-BAD-MODE": func(t *turn, _ string) { t.elicit(object{"mode": "telepathy", "message": "?"}) },
		"WITHDRAW":        withdraw,
		"FSWRITE": func(t *turn, _ string) {
			t.query("fs", "fs/write_text_file", object{"path": filepath.Join(t.s.cwd, "f.txt"), "content": "x"})
		},
		"FSREAD": func(t *turn, args string) { t.query("fs", "fs/read_text_file", object{"path": args}) },
		"TERMINAL": func(t *turn, args string) {
			t.query("terminal", "terminal/create", object{"command": args})
		},
		"UNKNOWN-REQUEST": func(t *turn, _ string) { t.query("unknown", "_fake/question", object{}) },
		"TOOLS":           tools, "DIFF": diff, "PLAN": plan, "GROUPS": groups, "USAGE": usage, "COST": cost,
		"THOUGHT": func(t *turn, args string) { t.chunk(t.s, "thought", "t1", args) },
		"OPTIONS": configOptions,
		"MODE": func(t *turn, args string) {
			t.update(t.s, object{"sessionUpdate": "current_mode_update", "currentModeId": args})
		},
		"TITLE": func(t *turn, args string) {
			t.update(t.s, object{"sessionUpdate": "session_info_update", "title": args})
		},
		"COMMANDS": commands,
		"STOP":     func(t *turn, args string) { t.stop = args },
		"ERR":      fail,
		"EXIT":     func(t *turn, args string) { t.exit(number(args, 1)) },
		"CRASH":    func(*turn, string) { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL); select {} },
		"SPAWN":    spawn, "FORK": spawn,
		"STDERR": func(t *turn, args string) { fmt.Fprintln(t.err, args) },
		"CWD":    func(t *turn, _ string) { say(t, t.s.cwd) },
		"ARGS":   func(t *turn, _ string) { say(t, strings.Join(t.flags.args, "|")) },
		"ENV":    env,
	}
}

// number reads the first word as a number.
func number(args string, def int) int {
	word, _, _ := strings.Cut(args, " ")
	if n, err := strconv.Atoi(word); err == nil {
		return n
	}
	return def
}

func hold(t *turn, args string) {
	seconds, err := strconv.ParseFloat(args, 64)
	if err != nil {
		<-t.ctx.Done()
		return
	}
	if pause(t.ctx, time.Duration(seconds*float64(time.Second))) {
		say(t, "held")
	}
}

func hang(t *turn, _ string) { <-t.ctx.Done() }

func garbage(t *turn, args string) {
	if args == "" {
		args = "Loaded cached credentials."
	}
	t.line(args)
}

// BigText is what "BIG n" says: n MiB, every position different from its neighbours.
func BigText(mib int) string {
	var b strings.Builder
	size := mib << 20
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, "%09d ", i)
	}
	return b.String()[:size]
}

func big(t *turn, args string) {
	text := BigText(number(args, 1))
	size := len(text) / bigChunks
	for len(text) > 0 {
		n := min(size, len(text))
		t.chunk(t.s, "agent", "big", text[:n])
		text = text[n:]
	}
}

// longLine writes one valid line of exactly n bytes.
func longLine(t *turn, args string) {
	frame := func(text string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":%q,"update":{"sessionUpdate":"agent_message_chunk","messageId":"line","content":{"type":"text","text":"%s"}}}}`, t.s.id, text)
	}
	if fill := number(args, 0) - len(frame("")); fill >= 0 {
		t.line(frame(strings.Repeat("x", fill)))
	}
}

func (t *turn) paced(args string, send func(i int)) {
	var n, rate int
	_, _ = fmt.Sscan(args, &n, &rate)
	start := time.Now()
	for i := range n {
		if rate > 0 && !pause(t.ctx, time.Until(start.Add(time.Duration(i)*time.Second/time.Duration(rate)))) {
			return
		}
		send(i)
	}
}

func stream(t *turn, args string) {
	t.paced(args, func(i int) { t.chunk(t.s, "agent", "stream", fmt.Sprintf("%d ", i)) })
}

func toolStream(t *turn, args string) {
	t.paced(args, func(i int) {
		t.update(t.s, object{"sessionUpdate": "tool_call_update", "toolCallId": fmt.Sprintf("call-%d", i%10), "status": "in_progress", "title": fmt.Sprint("step ", i)})
	})
}

func tools(t *turn, _ string) {
	t.update(t.s, object{"sessionUpdate": "tool_call", "toolCallId": "call-1", "title": "ls", "kind": "execute", "status": "pending", "rawInput": object{"command": "ls"}})
	t.update(t.s, object{"sessionUpdate": "tool_call_update", "toolCallId": "call-1", "status": "in_progress"})
	t.update(t.s, object{"sessionUpdate": "tool_call_update", "toolCallId": "call-unseen", "title": "seen late", "locations": []object{{"path": filepath.Join(t.s.cwd, "a.go"), "line": 3}}})
	t.update(t.s, object{"sessionUpdate": "tool_call_update", "toolCallId": "call-1", "status": "completed",
		"content": []object{{"type": "content", "content": object{"type": "text", "text": "a.go\n"}}}, "rawOutput": object{"exit": 0}})
	t.update(t.s, object{"sessionUpdate": "tool_call_update", "toolCallId": "call-unseen", "status": "failed"})
	say(t, "tools done")
}

func diff(t *turn, args string) {
	path := filepath.Join(t.s.cwd, args)
	if os.WriteFile(path, []byte("new\n"), 0o600) != nil {
		t.fail = &rpc{Code: -32603, Message: "cannot write"}
		return
	}
	t.update(t.s, object{"sessionUpdate": "tool_call", "toolCallId": "edit-1", "title": "edit", "kind": "edit", "status": "completed",
		"content":   []object{{"type": "diff", "path": path, "oldText": nil, "newText": "new\n"}},
		"locations": []object{{"path": path}}})
}

func plan(t *turn, _ string) {
	t.update(t.s, object{"sessionUpdate": "plan", "entries": []object{{"content": "first", "priority": "high", "status": "in_progress"}, {"content": "second", "priority": "low", "status": "pending"}}})
}

// groups sends a chunk without an id, then two messages, as real agents do.
func groups(t *turn, _ string) {
	t.message("", "Warning: something. ")
	t.message("g1", "I will look. ")
	t.message("g2", "")
	t.message("g2", "The ")
	t.message("g2", "answer.")
}

func usage(t *turn, _ string) {
	t.usage = object{"inputTokens": 100, "outputTokens": 20, "totalTokens": 120, "cachedReadTokens": 7, "thoughtTokens": 3}
	t.update(t.s, object{"sessionUpdate": "usage_update", "used": 120, "size": 1000})
}

func cost(t *turn, _ string) {
	t.update(t.s, object{"sessionUpdate": "usage_update", "used": 120, "size": 1000, "cost": object{"amount": 0.25, "currency": "USD"}})
}

func configOptions(t *turn, _ string) {
	t.mu.Lock()
	t.s.options["model"] = "fake-2"
	all := t.config(t.s)
	t.mu.Unlock()
	t.update(t.s, object{"sessionUpdate": "config_option_update", "configOptions": all})
}

func commands(t *turn, _ string) {
	t.update(t.s, object{"sessionUpdate": "available_commands_update", "availableCommands": []object{{"name": "review", "description": "review the change"}}})
}

func fail(t *turn, args string) {
	code, message, _ := strings.Cut(args, " ")
	if message == "" {
		message = "scripted failure"
	}
	n, err := strconv.Atoi(code)
	if err != nil {
		n = -32603
	}
	t.fail = &rpc{Code: n, Message: message, Data: object{"scripted": true}}
	if n == -32000 {
		t.mu.Lock()
		t.loggedIn = false
		t.mu.Unlock()
	}
}

// spawn starts processes that ignore SIGTERM in sessions of their own and says their pids.
func spawn(t *turn, args string) {
	for range number(args, 1) {
		cmd := exec.Command("/bin/sh", "-c", `trap '' TERM HUP INT; echo up; while :; do sleep 1; done`)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.fail = &rpc{Code: -32603, Message: err.Error()}
			return
		}
		_, _ = out.Read(make([]byte, 3)) // now it ignores
		say(t, fmt.Sprintf("[spawned:%d]", cmd.Process.Pid))
	}
}

func env(t *turn, args string) {
	for _, entry := range t.flags.env {
		if value, ok := strings.CutPrefix(entry, args+"="); ok {
			say(t, value)
			return
		}
	}
	say(t, "[unset]")
}
