package fakeacp

import (
	"crypto/rand"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// loginPage is what a login by page shows.
const loginPage = "https://login.example.test/oauth?state=fake"

// readyTick is how often a login by page looks for its file.
const readyTick = 10 * time.Millisecond

func noMethod(method string) *rpc { return &rpc{Code: -32601, Message: "Method not found: " + method} }

// call returns the result or the failure of a call; silent means that it is never answered.
func (a *agent) call(f frame) (result any, failure *rpc, silent bool) {
	switch f.Method {
	case "initialize":
		return a.initialize(f)
	case "authenticate":
		return a.authenticate(f)
	case "session/new":
		return a.newSession(f)
	case "session/load", "session/resume":
		return a.reopen(f)
	}
	if a.flags.NoOptional {
		return nil, noMethod(f.Method), false
	}
	s := a.session(f.Params)
	switch f.Method {
	case "session/set_mode", "session/set_model", "session/set_config_option", "session/close":
		if s == nil {
			return nil, &rpc{Code: -32602, Message: "unknown session"}, false
		}
	}
	var p struct{ ModeID, ModelID, ConfigID, Value string }
	_ = json.Unmarshal(f.Params, &p)
	switch f.Method {
	case "session/set_mode":
		return a.set(s, "mode", p.ModeID, object{})
	case "session/set_model":
		if !a.flags.Legacy {
			return nil, noMethod(f.Method), false
		}
		return a.set(s, "model", p.ModelID, object{})
	case "session/set_config_option":
		if a.flags.Legacy || a.flags.NoOptions {
			return nil, noMethod(f.Method), false
		}
		return a.set(s, p.ConfigID, p.Value, nil)
	case "session/close":
		a.mu.Lock()
		if s.cancel != nil {
			s.cancel()
		}
		delete(a.sessions, s.id)
		a.mu.Unlock()
		return object{}, nil, false
	case "_fake/echo":
		return f.Params, nil, false
	}
	return nil, noMethod(f.Method), false
}

func (a *agent) initialize(f frame) (any, *rpc, bool) {
	if a.flags.HangInit {
		return nil, nil, true
	}
	if a.flags.SlowInit > 0 && !pause(a.ctx, a.flags.SlowInit) {
		return nil, nil, true
	}
	var p struct{ ClientCapabilities raw }
	_ = json.Unmarshal(f.Params, &p)
	a.mu.Lock()
	a.caps = p.ClientCapabilities
	a.mu.Unlock()
	session := object{"close": object{}, "list": object{}}
	if !a.flags.NoResume {
		session["resume"] = object{}
	}
	if a.flags.NoOptional {
		session = object{}
	}
	return object{
		"protocolVersion": a.flags.Protocol,
		"agentCapabilities": object{
			"loadSession": !a.flags.NoLoad, "sessionCapabilities": session,
			"promptCapabilities": object{"embeddedContext": true},
		},
		"agentInfo":   object{"name": a.flags.Name, "title": "Fake agent", "version": "1.2.3"},
		"authMethods": a.authMethods(),
	}, nil, false
}

func (a *agent) authMethods() []object {
	methods := []object{}
	if a.flags.AuthRequired {
		methods = append(methods, object{"id": "fake-login", "name": "Log in", "description": "Log in with the fake account"})
	}
	if a.flags.AuthToken {
		methods = append(methods, object{"id": "fake-key", "name": "API key", "_meta": object{"api-key": object{"provider": "fake"}}})
	}
	if a.flags.AuthTerminal {
		args := []string{"--login", "--login-state", a.flags.LoginState}
		if a.flags.LoginStyle != "" {
			args = append(args, "--login-style", a.flags.LoginStyle)
		}
		methods = append(methods, object{"id": "fake-terminal", "name": "Terminal login", "type": "terminal", "args": args, "env": object{"FAKE_LOGIN": "yes"}})
	}
	return methods
}

func (a *agent) authenticate(f frame) (any, *rpc, bool) {
	var p struct {
		MethodID string
		Meta     map[string]struct{ APIKey string } `json:"_meta"`
	}
	_ = json.Unmarshal(f.Params, &p)
	switch {
	case a.flags.AuthHang:
		return nil, nil, true
	case a.flags.AuthNoop:
		return object{}, nil, false
	case p.MethodID == "fake-key":
		if p.Meta["api-key"].APIKey == "" {
			return nil, &rpc{Code: -32603, Message: "a key is needed", Data: object{"envVars": []string{"FAKE_API_KEY"}}}, false
		}
	case a.flags.AuthURLStdout:
		a.line("\x1b[?1049h\x1b[2J\x1b[HPlease visit the following page:\n\x1b[36m" + loginPage + "\x1b[0m")
		if !a.awaitReady() {
			return nil, nil, true
		}
	case a.flags.AuthURLNotify:
		a.notify("_fake/authUrl", object{"url": loginPage})
		if !a.awaitReady() {
			return nil, nil, true
		}
	}
	a.mu.Lock()
	a.loggedIn = true
	a.mu.Unlock()
	if a.flags.LoginState != "" {
		_ = os.WriteFile(a.flags.LoginState, nil, 0o600)
	}
	return object{}, nil, false
}

func (a *agent) awaitReady() bool {
	for a.flags.ReadyFile == "" || !exists(a.flags.ReadyFile) {
		if !pause(a.ctx, readyTick) {
			return false
		}
	}
	return true
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func (a *agent) mayWork() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.loggedIn || a.flags.LoginState != "" && exists(a.flags.LoginState)
}

func (a *agent) newSession(f frame) (any, *rpc, bool) {
	if a.flags.HangNew {
		return nil, nil, true
	}
	if a.flags.SlowNew > 0 && !pause(a.ctx, a.flags.SlowNew) {
		return nil, nil, true
	}
	if !a.mayWork() {
		return nil, &rpc{Code: -32000, Message: "Authentication required"}, false
	}
	var p struct {
		CWD        string
		MCPServers *[]raw
	}
	_ = json.Unmarshal(f.Params, &p)
	if !filepath.IsAbs(p.CWD) || p.MCPServers == nil {
		return nil, &rpc{Code: -32602, Message: "Invalid params"}, false
	}
	s := a.open("fake-"+strings.ToLower(rand.Text()[:12]), p.CWD)
	a.remember(s, "user", "")
	result := a.describe(s)
	result["sessionId"] = s.id
	return result, nil, false
}

func (a *agent) open(id, cwd string) *session {
	s := &session{id: id, cwd: cwd, options: map[string]string{"mode": "agent", "model": "fake-1", "reasoning_effort": "medium"}}
	a.mu.Lock()
	a.sessions[id] = s
	a.mu.Unlock()
	return s
}

func (a *agent) reopen(f frame) (any, *rpc, bool) {
	load := f.Method == "session/load"
	if load && a.flags.NoLoad || !load && a.flags.NoResume || a.flags.NoOptional {
		return nil, noMethod(f.Method), false
	}
	if !a.mayWork() {
		return nil, &rpc{Code: -32000, Message: "Authentication required"}, false
	}
	var p struct{ SessionID, CWD string }
	_ = json.Unmarshal(f.Params, &p)
	history, known := a.recall(p.SessionID)
	if !known {
		return nil, &rpc{Code: -32002, Message: "Resource not found"}, false
	}
	s := a.open(p.SessionID, p.CWD)
	if load {
		for i := range a.flags.Replay {
			who := []string{"user", "agent"}[i%2]
			a.chunk(s, who, "old", "replayed text ")
		}
		for _, h := range history {
			a.chunk(s, h.Who, "", h.Text)
		}
	}
	return a.describe(s), nil, false
}

// option is one setting and its values.
type option struct {
	id, name, category string
	values             []string
}

var options = []option{
	{"mode", "Mode", "mode", []string{"read-only", "workspace-write", "agent", "agent-full-access"}},
	{"model", "Model", "model", []string{"fake-1", "fake-2"}},
	{"reasoning_effort", "Effort", "thought_level", []string{"low", "medium", "high"}},
}

func (a *agent) describe(s *session) object {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.flags.NoOptions:
		return object{}
	case a.flags.Legacy:
		var modes, models []object
		for _, v := range options[0].values {
			modes = append(modes, object{"id": v, "name": v})
		}
		for _, v := range options[1].values {
			models = append(models, object{"modelId": v, "name": v})
		}
		return object{"modes": object{"currentModeId": s.options["mode"], "availableModes": modes},
			"models": object{"currentModelId": s.options["model"], "availableModels": models}}
	}
	return object{"configOptions": a.config(s)}
}

// config is called with mu held.
func (a *agent) config(s *session) []object {
	var all []object
	for _, o := range options {
		var values []object
		for _, v := range o.values {
			values = append(values, object{"value": v, "name": v})
		}
		all = append(all, object{"id": o.id, "name": o.name, "category": o.category, "type": "select",
			"currentValue": s.options[o.id], "options": values})
	}
	return all
}

func (a *agent) set(s *session, id, value string, result any) (any, *rpc, bool) {
	for _, o := range options {
		if o.id != id {
			continue
		}
		for _, v := range o.values {
			if v != value {
				continue
			}
			a.mu.Lock()
			defer a.mu.Unlock()
			if !a.flags.KeepOptions {
				s.options[id] = value
			}
			if result == nil {
				result = object{"configOptions": a.config(s)}
			}
			return result, nil, false
		}
		return nil, &rpc{Code: -32602, Message: "unknown value " + value}, false
	}
	return nil, &rpc{Code: -32602, Message: "unknown option " + id}, false
}

// said is one message of a remembered session.
type said struct{ Who, Text string }

// remember adds a message to the session's file.
func (a *agent) remember(s *session, who, text string) {
	if a.flags.State == "" {
		return
	}
	f, err := os.OpenFile(filepath.Join(a.flags.State, s.id+".jsonl"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	defer f.Close()
	_ = json.NewEncoder(f).Encode(said{who, text})
}

// recall returns what a session said. Without --state every session is known.
func (a *agent) recall(id string) (history []said, known bool) {
	if a.flags.State == "" {
		return nil, id != ""
	}
	f, err := os.Open(filepath.Join(a.flags.State, filepath.Base(id)+".jsonl"))
	if err != nil {
		return nil, false
	}
	defer f.Close()
	dec := json.NewDecoder(f)
	for {
		var h said
		if dec.Decode(&h) != nil {
			return history, true
		}
		if h.Text != "" {
			history = append(history, h)
		}
	}
}
