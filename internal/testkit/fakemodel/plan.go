package fakemodel

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/agent-knock-knock/akk/internal/testkit/fakemodel/script"
)

type obj = map[string]any

func str(v any) string { s, _ := v.(string); return s }
func arr(v any) []any  { a, _ := v.([]any); return a }
func dict(v any) obj   { m, _ := v.(obj); return m }

// plan is what one request is answered with.
type plan struct {
	script.Script
	call *script.Call // nil: the final text
	text string
}

// choose makes the plan of a request: one tool call for each result that is still
// missing, then the text.
func choose(t talk) plan {
	p := plan{Script: script.Parse(t.user)}
	if n := len(t.results); n < len(p.Calls) {
		p.call = &p.Calls[n]
		p.call.Arg = fill(p.call.Arg, t.results)
	} else {
		p.text = fill(p.Text(t.user, t.last()), t.results)
	}
	if len(t.results) > 0 { // only the first request of a turn fails, waits and thinks
		p.Fail, p.Hold, p.Sleep, p.Gate, p.FailEv = 0, 0, 0, "", ""
		p.Pre, p.Think = "", ""
	}
	return p
}

// talk is what a request says about the conversation.
type talk struct {
	user    string   // the last text of a person
	results []string // of tools, since then
	earlier []string // what persons said before
}

func (t talk) last() string {
	if n := len(t.results); n > 0 {
		return t.results[n-1]
	}
	return ""
}

func (t *talk) said(texts []string) {
	for _, text := range texts {
		earlier := t.earlier
		if t.user != "" {
			earlier = append(earlier, t.user)
		}
		*t = talk{user: text, earlier: earlier}
	}
}

func (t *talk) result(v any) {
	if s := str(v); s != "" {
		t.results = append(t.results, s)
		return
	}
	for _, part := range arr(v) {
		if s := str(dict(part)["text"]); s != "" {
			t.results = append(t.results, s)
			return
		}
	}
	t.results = append(t.results, encode(v))
}

var reference = regexp.MustCompile(`\$\{(\d+):([^}]*)\}`)

// fill replaces ${N:path} by a value out of the N-th tool result of the turn: path walks
// the JSON document in it ("terminals.0.id"). What cannot be found stays as it is, so
// that the mistake shows in the next request.
func fill(s string, results []string) string {
	return reference.ReplaceAllStringFunc(s, func(ref string) string {
		m := reference.FindStringSubmatch(ref)
		n, err := strconv.Atoi(m[1])
		if err != nil || n < 1 || n > len(results) {
			return ref
		}
		v, ok := lookup(document(results[n-1]), m[2])
		if !ok {
			return ref
		}
		if text := str(v); text != "" {
			quoted := encode(text)
			return quoted[1 : len(quoted)-1]
		}
		return encode(v)
	})
}

// document is the JSON value in a tool result, which agents put behind a few lines of
// their own.
func document(result string) any {
	for i, c := range result {
		if c != '{' && c != '[' {
			continue
		}
		var v any
		if json.NewDecoder(strings.NewReader(result[i:])).Decode(&v) == nil {
			return v
		}
	}
	return nil
}

func lookup(v any, path string) (any, bool) {
	for _, step := range strings.Split(path, ".") {
		switch c := v.(type) {
		case obj:
			next, ok := c[step]
			if !ok {
				return nil, false
			}
			v = next
		case []any:
			n, err := strconv.Atoi(step)
			if err != nil || n < 0 || n >= len(c) {
				return nil, false
			}
			v = c[n]
		default:
			return nil, false
		}
	}
	return v, true
}

// texts are the texts of a message's content that a person wrote.
func texts(content any) []string {
	var out []string
	if s := str(content); s != "" && !injected(s) {
		out = append(out, s)
	}
	for _, part := range arr(content) {
		if s := str(dict(part)["text"]); s != "" && !injected(s) {
			out = append(out, s)
		}
	}
	return out
}

// marks begin user-role texts that the agent wrote, not the person.
var marks = []string{
	"<environment_context", "<user_instructions", "<permissions", "<turn_aborted", "<system-reminder", "<INSTRUCTIONS",
	"# AGENTS.md", "<skill", "<collaboration_mode", "<subagent", "<user_shell_command", "<local-command", "<command-name",
	"<recommended_plugins", "<hook_prompt", "<session_context", "<model_switch", "[Request interrupted by user", "Caveat:",
	"<task-notification", "<bash-",
}

func injected(s string) bool {
	s = strings.TrimSpace(s)
	for _, m := range marks {
		if strings.HasPrefix(s, m) {
			return true
		}
	}
	return false
}

// toolNames are the names of the offered tools; a tool inside a namespace is
// "namespace/tool".
func toolNames(tools []any) []string {
	var out []string
	for _, t := range tools {
		m := dict(t)
		name := str(m["name"])
		if name == "" {
			name = "(" + str(m["type"]) + ")"
		}
		inner := arr(m["tools"])
		if inner == nil {
			out = append(out, name)
			continue
		}
		for _, n := range toolNames(inner) {
			out = append(out, name+"/"+n)
		}
	}
	return out
}

// resolve finds the offered tool that a scripted call means, and its arguments. TOOL:name
// takes the name as offered, or the last part of exactly one offered name.
func resolve(c *script.Call, names []string) (name, args string) {
	if c.Kind == script.Run {
		return shellCall(c.Arg, names)
	}
	found := ""
	for _, n := range names {
		if n == c.Name {
			return c.Name, c.Arg
		}
		if strings.HasSuffix(n, "/"+c.Name) || strings.HasSuffix(n, "__"+c.Name) {
			if found != "" {
				return c.Name, c.Arg
			}
			found = n
		}
	}
	if found != "" {
		return found, c.Arg
	}
	return c.Name, c.Arg
}

func shellCall(cmd string, names []string) (name, args string) {
	for _, n := range names {
		switch n {
		case "exec_command":
			// Without this Codex runs the command in its sandbox and asks nobody.
			return n, encode(obj{"cmd": cmd, "sandbox_permissions": "require_escalated", "justification": "Run " + clip(cmd, 40) + "?"})
		case "shell_command":
			return n, encode(obj{"command": cmd})
		case "shell":
			return n, encode(obj{"command": []string{"bash", "-lc", cmd}})
		case "Bash", "bash", "run_shell_command":
			return n, encode(obj{"command": cmd, "description": "Run " + clip(cmd, 40)})
		}
	}
	return "shell", encode(obj{"command": cmd})
}

func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("fakemodel: %v", err)) // only values made here come here
	}
	return string(b)
}

func clip(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n]) + "…"
	}
	return s
}

// conform makes the simplest value that satisfies a JSON schema of the plain kind that
// agents send.
func conform(schema obj) any {
	if e := arr(schema["enum"]); len(e) > 0 {
		return e[0]
	}
	kind := str(schema["type"])
	if list := arr(schema["type"]); len(list) > 0 {
		kind = str(list[0])
	}
	switch kind {
	case "object", "":
		out := obj{}
		for name, sub := range dict(schema["properties"]) {
			out[name] = conform(dict(sub))
		}
		return out
	case "array":
		return []any{}
	case "boolean":
		return false
	case "number", "integer":
		return 0
	case "null":
		return nil
	}
	return "fake title"
}

// readBody reads and decodes a request.
func readBody(r *http.Request) (obj, error) {
	var in io.Reader = r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		g, err := gzip.NewReader(r.Body)
		if err != nil {
			return nil, err
		}
		in = g
	}
	b, err := io.ReadAll(io.LimitReader(in, maxBody))
	if err != nil {
		return nil, err
	}
	var o obj
	err = json.Unmarshal(b, &o)
	return o, err
}
