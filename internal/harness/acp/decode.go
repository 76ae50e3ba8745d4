package acp

import (
	"encoding/json"

	"github.com/agent-knock-knock/akk/internal/fault"
)

func capsOf(c ClientCaps) map[string]any {
	caps := map[string]any{
		"fs":       map[string]bool{"readTextFile": c.ReadFile, "writeTextFile": c.WriteFile},
		"terminal": c.Terminal,
	}
	empty := struct{}{}
	if c.BooleanOptions {
		caps["session"] = map[string]any{"configOptions": map[string]any{"boolean": empty}}
	}
	if c.TerminalAuth {
		caps["auth"] = map[string]bool{"terminal": true}
	}
	elicit := map[string]any{}
	if c.ElicitForm {
		elicit["form"] = empty
	}
	if c.ElicitURL {
		elicit["url"] = empty
	}
	if len(elicit) > 0 {
		caps["elicitation"] = elicit
	}
	return caps
}

func sessionParams(id string, p SessionParams) map[string]any {
	servers := p.MCPServers
	if servers == nil {
		servers = []json.RawMessage{} // its absence is an error in every agent
	}
	params := map[string]any{"cwd": p.CWD, "mcpServers": servers}
	if id != "" {
		params["sessionId"] = id
	}
	if len(p.AdditionalDirectories) > 0 {
		params["additionalDirectories"] = p.AdditionalDirectories
	}
	if len(p.Meta) > 0 {
		params["_meta"] = p.Meta
	}
	return params
}

func decodeInitialized(raw json.RawMessage) (Initialized, error) {
	o := asObject(raw)
	if v := o.integer("protocolVersion"); v == nil || *v != ProtocolVersion {
		got := "none"
		if v := o["protocolVersion"]; v != nil {
			got = clip(string(v), 40)
		}
		return Initialized{}, fault.New(WrongVersion, "acp.Initialize", "the agent speaks protocol version %s; this client speaks %d", got, ProtocolVersion).
			WithHint("use a version of the agent that speaks ACP 1")
	}
	caps, info := o.sub("agentCapabilities"), o.sub("agentInfo")
	session, prompt, mcp := caps.sub("sessionCapabilities"), caps.sub("promptCapabilities"), caps.sub("mcpCapabilities")
	in := Initialized{
		Agent: Info{Name: info.str("name"), Title: info.str("title"), Version: info.str("version")},
		Caps: AgentCaps{
			Load: caps.boolean("loadSession"), Resume: session.has("resume"), List: session.has("list"),
			CloseSession: session.has("close"), Fork: session.has("fork"), Delete: session.has("delete"),
			PromptImage: prompt.has("image"), PromptAudio: prompt.has("audio"), PromptContext: prompt.has("embeddedContext"),
			MCPHTTP: mcp.has("http"), MCPSSE: mcp.has("sse"),
			Logout: caps.sub("auth").has("logout"),
		},
		Raw: raw,
	}
	for _, m := range o.list("authMethods") {
		in.AuthMethods = append(in.AuthMethods, decodeAuthMethod(asObject(m)))
	}
	return in, nil
}

func decodeAuthMethod(o object) AuthMethod {
	m := AuthMethod{ID: o.str("id"), Name: o.str("name"), Description: o.str("description"), Type: o.str("type"), Meta: o["_meta"]}
	_ = json.Unmarshal(o["args"], &m.Args) // another shape is no list of words
	_ = json.Unmarshal(o["env"], &m.Env)
	return m
}

func decodeSession(raw json.RawMessage) Session {
	o := asObject(raw)
	return Session{
		ID:     o.str("sessionId"),
		Config: decodeConfig(o["configOptions"]),
		Modes:  decodeModes(o.sub("modes")),
		Models: decodeModels(o.sub("models")),
		Raw:    raw,
	}
}

func decodeModes(o object) *Modes {
	if o == nil {
		return nil
	}
	return &Modes{Current: o.str("currentModeId"), Available: choices(o.list("availableModes"), "id")}
}

func decodeModels(o object) *Models {
	if o == nil {
		return nil
	}
	return &Models{Current: o.str("currentModelId"), Available: choices(o.list("availableModels"), "modelId")}
}

func choices(items []json.RawMessage, idKey string) []Choice {
	var all []Choice
	for _, item := range items {
		o := asObject(item)
		if group, ok := asList(o["options"]); ok { // a named group of values
			all = append(all, choices(group, idKey)...)
			continue
		}
		if id := o.strPtr(idKey); id != nil {
			all = append(all, Choice{Value: *id, Name: o.str("name"), Description: o.str("description")})
		}
	}
	return all
}

// decodeConfig returns nil when raw is no list, and an empty list for an empty one.
func decodeConfig(raw json.RawMessage) []ConfigOption {
	items, ok := asList(raw)
	if !ok {
		return nil
	}
	all := make([]ConfigOption, 0, len(items))
	for _, item := range items {
		o := asObject(item)
		opt := ConfigOption{
			ID: o.str("id"), Name: o.str("name"), Category: o.str("category"), Type: o.str("type"),
			Choices: choices(o.list("options"), "value"), Raw: item,
		}
		switch v := o["currentValue"]; {
		case o.strPtr("currentValue") != nil:
			opt.Current = o.str("currentValue")
		case !isNull(v):
			opt.Current = string(v)
		}
		if opt.ID != "" {
			all = append(all, opt)
		}
	}
	return all
}

func decodePrompt(raw json.RawMessage) PromptResult {
	o := asObject(raw)
	return PromptResult{StopReason: StopReason(o.str("stopReason")), Usage: decodeUsage(o), Raw: raw}
}

// decodeUsage reads the protocol's field, or Gemini's quota beside it.
func decodeUsage(o object) *Usage {
	if raw := o["usage"]; !isNull(raw) {
		u := asObject(raw)
		return &Usage{
			Input: u.integer("inputTokens"), Output: u.integer("outputTokens"), Total: u.integer("totalTokens"),
			CacheRead: u.integer("cachedReadTokens"), CacheWrite: u.integer("cachedWriteTokens"),
			Thought: u.integer("thoughtTokens"), Raw: raw,
		}
	}
	quota := o.sub("_meta").sub("quota")
	count := quota.sub("token_count")
	if count == nil {
		return nil
	}
	u := &Usage{Input: count.integer("input_tokens"), Output: count.integer("output_tokens"), Total: count.integer("total_tokens"), Raw: o.sub("_meta")["quota"]}
	if u.Input == nil {
		u.Input, u.Output, u.Total = count.integer("inputTokens"), count.integer("outputTokens"), count.integer("totalTokens")
		u.CacheRead, u.Thought = count.integer("cachedInputTokens"), count.integer("reasoningOutputTokens")
	}
	return u
}

// decodeUpdate fills the typed view of u from its raw update.
func decodeUpdate(u *Update) {
	o := asObject(u.Raw)
	u.Kind = UpdateKind(o.str("sessionUpdate"))
	switch u.Kind {
	case UserMessage, AgentMessage, AgentThought:
		u.Chunk = decodeChunk(o)
	case ToolCall, ToolCallUpdate:
		if t := decodeTool(o); t.ID != "" {
			u.Tool = &t
		}
	case PlanUpdate:
		for _, item := range o.list("entries") {
			e := asObject(item)
			u.Plan = append(u.Plan, PlanEntry{Content: e.str("content"), Priority: e.str("priority"), Status: e.str("status")})
		}
	case CommandsUpdate:
		for _, item := range o.list("availableCommands") {
			c := asObject(item)
			u.Commands = append(u.Commands, Command{Name: c.str("name"), Description: c.str("description")})
		}
	case ModeUpdate:
		u.ModeID = o.str("currentModeId")
	case ConfigUpdate:
		u.Config = decodeConfig(o["configOptions"])
	case SessionInfo:
		u.Title = o.str("title")
	case UsageUpdate:
		usage := ContextUsage{Cost: o["cost"]}
		if n := o.integer("used"); n != nil {
			usage.Used = *n
		}
		if n := o.integer("size"); n != nil {
			usage.Size = *n
		}
		u.Usage = &usage
	}
}

func decodeChunk(o object) *Chunk {
	content := o.sub("content")
	if content == nil {
		return nil
	}
	c := &Chunk{MessageID: o.str("messageId"), ContentType: content.str("type"), Content: o["content"]}
	if c.ContentType == "text" {
		c.Text = content.str("text")
	}
	return c
}

func decodeTool(o object) Tool {
	t := Tool{
		ID: o.str("toolCallId"), Title: o.strPtr("title"), Kind: o.strPtr("kind"), Status: o.strPtr("status"), Name: o.strPtr("name"),
		RawInput: notNull(o["rawInput"]), RawOutput: notNull(o["rawOutput"]), Meta: notNull(o["_meta"]),
	}
	if items, ok := asList(o["content"]); ok {
		content := make([]ToolContent, 0, len(items))
		for _, item := range items {
			content = append(content, decodeToolContent(item))
		}
		t.Content = &content
	}
	if items, ok := asList(o["locations"]); ok {
		places := make([]Location, 0, len(items))
		for _, item := range items {
			l := asObject(item)
			place := Location{Path: l.str("path")}
			if n := l.integer("line"); n != nil {
				place.Line = int(*n)
			}
			places = append(places, place)
		}
		t.Locations = &places
	}
	meta := asObject(t.Meta)
	for _, key := range []string{"terminal_output_delta", "terminal_output"} {
		t.Output += meta.sub(key).str("data")
	}
	return t
}

func decodeToolContent(raw json.RawMessage) ToolContent {
	o := asObject(raw)
	c := ToolContent{Type: o.str("type"), Raw: raw}
	switch c.Type {
	case "content":
		c.Text = o.sub("content").str("text")
	case "diff":
		c.Path, c.OldText, c.NewText = o.str("path"), o.strPtr("oldText"), o.str("newText")
	case "terminal":
		c.TerminalID = o.str("terminalId")
	}
	return c
}

func notNull(raw json.RawMessage) json.RawMessage {
	if isNull(raw) {
		return nil
	}
	return raw
}
