package standin

import (
	"time"

	"github.com/google/uuid"
)

// This file holds the transcript records of Claude Code 2.1.197, field by field.

// tail are the fields at the end of every record of the chain.
func (c *claude) tail() []any {
	return []any{"userType", "external", "entrypoint", "cli", "cwd", c.a.cfg.Cwd, "sessionId", c.session,
		"version", ClaudeVersion, "gitBranch", "main"}
}

// plain is a record outside the chain.
func (c *claude) plain(kind string, kv ...any) {
	c.log.line(obj(append(append([]any{"type", kind}, kv...), "sessionId", c.session)...))
}

// chain writes a record that follows the last one; kv must hold its uuid.
func (c *claude) chain(kv ...any) {
	line := append([]any{"parentUuid", c.parent, "isSidechain", false}, kv...)
	for i := 0; i+1 < len(kv); i += 2 {
		if kv[i] == "uuid" {
			c.parent = kv[i+1]
		}
	}
	c.log.line(obj(append(line, c.tail()...)...))
}

func (c *claude) startFile() {
	c.count++
	if c.typed {
		return
	}
	c.typed = true
	c.plain("mode", "mode", "normal")
	c.plain("permission-mode", "permissionMode", "default")
}

func (c *claude) snapshot(id string) {
	c.log.line(obj("type", "file-history-snapshot", "messageId", id, "snapshot",
		obj("messageId", id, "trackedFileBackups", obj(), "timestamp", stamp(time.Now())), "isSnapshotUpdate", false))
}

func (c *claude) operation(name string, kv ...any) {
	c.plain("queue-operation", append([]any{"operation", name, "timestamp", stamp(time.Now())}, kv...)...)
}

func (c *claude) userPrompt(text, source string) {
	c.chain("promptId", c.prompt, "type", "user", "message", obj("role", "user", "content", text), "uuid", c.user,
		"timestamp", stamp(time.Now()), "permissionMode", "default", "origin", obj("kind", "human"), "promptSource", source)
}

func (c *claude) userText(id, text string) {
	c.chain("promptId", c.prompt, "type", "user", "message", obj("role", "user", "content", text), "uuid", id,
		"timestamp", stamp(time.Now()))
}

func (c *claude) attachment() {
	c.chain("attachment", obj("type", "skill_listing", "content", "", "skillCount", 0, "isInitial", true, "names", list()),
		"type", "attachment", "uuid", uuid.NewString(), "timestamp", stamp(time.Now()))
}

func (c *claude) usage(in, out int, tier, geo any) raw {
	return obj("input_tokens", in, "cache_creation_input_tokens", 0, "cache_read_input_tokens", 0, "output_tokens", out,
		"server_tool_use", obj("web_search_requests", 0, "web_fetch_requests", 0), "service_tier", tier,
		"cache_creation", obj("ephemeral_1h_input_tokens", 0, "ephemeral_5m_input_tokens", 0), "inference_geo", geo,
		"iterations", list(), "speed", tier)
}

func (c *claude) message(content raw, stop any) raw {
	return obj("content", list(content), "id", "msg_fake_"+newID()[24:], "model", "claude-opus-4-8", "role", "assistant",
		"stop_reason", stop, "stop_sequence", nil, "type", "message", "usage", c.usage(100, 10, "standard", ""), "stop_details", nil)
}

func (c *claude) assistant(content raw, stop any) {
	c.chain("message", c.message(content, stop), "requestId", "req_fake_"+newID()[24:], "type", "assistant",
		"uuid", uuid.NewString(), "timestamp", stamp(time.Now()))
}

// synthetic is an assistant record that the program wrote itself.
func (c *claude) synthetic(text string, more []any) {
	message := obj("id", uuid.NewString(), "container", nil, "model", "<synthetic>", "role", "assistant", "stop_details", nil,
		"stop_reason", "stop_sequence", "stop_sequence", "", "type", "message", "usage", c.usage(0, 0, nil, nil),
		"content", list(obj("type", "text", "text", text)), "context_management", nil)
	if more == nil {
		more = []any{"isApiErrorMessage", false}
	}
	c.chain(append([]any{"type", "assistant", "uuid", uuid.NewString(), "timestamp", stamp(time.Now()), "message", message}, more...)...)
}

func (c *claude) apiError(text, kind string, status int) {
	more := []any{"requestId", "req_fake_" + newID()[24:], "error", kind, "isApiErrorMessage", true}
	if status != 0 {
		more = append(more, "apiErrorStatus", status)
	}
	c.synthetic(text, more)
}

func (c *claude) toolResult(call *call, content string, failed bool, result any) {
	part := obj("tool_use_id", call.id, "type", "tool_result", "content", content, "is_error", failed)
	source := c.parent
	c.chain("promptId", c.prompt, "type", "user", "message", obj("role", "user", "content", list(part)), "uuid", uuid.NewString(),
		"timestamp", stamp(time.Now()), "toolUseResult", result, "sourceToolAssistantUUID", source)
}

func (c *claude) interruption(text string, more ...any) {
	c.chain(append([]any{"promptId", c.prompt, "type", "user", "message", obj("role", "user", "content",
		list(obj("type", "text", "text", text))), "uuid", uuid.NewString(), "timestamp", stamp(time.Now())}, more...)...)
}

func (c *claude) duration(t *turn) {
	c.chain("type", "system", "subtype", "turn_duration", "durationMs", time.Since(t.started).Milliseconds(), "messageCount", c.count,
		"timestamp", stamp(time.Now()), "uuid", uuid.NewString(), "isMeta", false)
}

// sidechain is the answer of a sub-agent: it is no part of the conversation.
func (c *claude) sidechain(text string) {
	line := []any{"parentUuid", c.parent, "isSidechain", true, "message", c.message(obj("text", text, "type", "text"), "end_turn"),
		"requestId", "req_fake_" + newID()[24:], "type", "assistant", "uuid", uuid.NewString(), "timestamp", stamp(time.Now())}
	c.log.line(obj(append(line, c.tail()...)...))
}
