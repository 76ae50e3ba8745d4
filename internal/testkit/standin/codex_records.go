package standin

import (
	"fmt"
	"time"

	"github.com/google/uuid"
)

// This file holds the rollout records of Codex 0.171, field by field.

func (c *codex) record(kind string, payload raw, more ...any) {
	now := time.Now()
	line := obj(append([]any{"timestamp", stamp(now), "ordinal", c.ordinal, "type", kind, "payload", payload}, more...)...)
	c.ordinal++
	c.log.line(line)
}

func (c *codex) event(kind string, kv ...any) {
	c.record("event_msg", obj(append([]any{"type", kind}, kv...)...))
}

// response is a response_item: what the model saw or said.
func (c *codex) response(t *turn, kinds []string, authored bool, order int, kv ...any) {
	c.history++
	pass := []any{"turn_id", t.id, "create_time", seconds(time.Now())}
	if kinds != nil {
		pass = append(pass, "content_item_kinds", kinds)
	}
	meta := []any{"history_sequence", c.history, "sampled_through_sequence", max(0, c.history-1), "client_authored", authored}
	if order >= 0 {
		meta = append(meta, "user_input_order", order)
	}
	meta = append(meta, "model_search_state", "unused")
	payload := obj(append(kv, "internal_chat_message_metadata_passthrough", obj(pass...))...)
	c.record("response_item", payload, "metadata", obj(meta...))
}

func (c *codex) sessionMeta() {
	c.record("session_meta", obj(
		"account_scoped", true, "session_id", c.thread, "id", c.thread, "timestamp", stamp(c.created),
		"cwd", c.a.cfg.Cwd, "runtime_workspace_roots", list(c.a.cfg.Cwd), "originator", "codex-tui",
		"cli_version", CodexVersion, "source", "cli", "thread_source", "user", "model_provider", "fake",
		"base_instructions", obj("text", "You are a coding agent.", "provenance", obj("type", "model", "model", "fake-model")),
		"history_mode", "paginated", "context_window", obj("window_id", newID()),
		"git", obj("commit_hash", "d0664386f46cd8862beaff5c914c0bd8cbe362b7", "branch", "main")))
}

func (c *codex) taskStarted(t *turn, trigger any) {
	c.event("task_started",
		"turn_attribution", obj("turn_id", t.id, "turn_trigger", trigger, "parent_turn_id", nil,
			"initiating_agent_path", nil, "root_turn_id", t.id),
		"turn_id", t.id, "root_turn_id", t.id, "started_at", t.started.Unix(),
		"model_context_window", 258400, "collaboration_mode_kind", "default")
}

func (c *codex) contextMessages(t *turn) {
	c.response(t, []string{"permissions.instructions"}, false, -1, "type", "message", "id", "msg_"+newID(),
		"role", "developer", "content", list(obj("type", "input_text", "text", "<permissions instructions>\n`sandbox_mode` is `read-only`.\n</permissions instructions>")))
	c.response(t, []string{"environments.environment_context"}, false, -1, "type", "message", "id", "msg_"+newID(),
		"role", "user", "content", list(obj("type", "input_text", "text",
			"<environment_context>\n  <cwd>"+c.a.cfg.Cwd+"</cwd>\n  <shell>bash</shell>\n</environment_context>")))
	c.record("world_state", obj("full", true, "state", obj("agents_md", obj(), "apps_instructions", false)))
}

func (c *codex) permissions() raw {
	return obj("type", "managed", "file_system", obj("type", "restricted", "entries",
		list(obj("path", obj("type", "special", "value", obj("kind", "root")), "access", "read"))), "network", "restricted")
}

func (c *codex) collaboration() raw {
	return obj("mode", "default", "settings", obj("model", "fake-model", "reasoning_effort", nil, "developer_instructions", ""))
}

func (c *codex) turnContext(t *turn) {
	c.record("turn_context", obj("turn_id", t.id, "root_turn_id", t.id, "disabled_plugin_ids", list(), "cwd", c.a.cfg.Cwd,
		"approval_policy", "on-request", "approvals_reviewer", "user", "permission_profile", c.permissions(),
		"model", "fake-model", "collaboration_mode", c.collaboration(), "multi_agent_version", "v1",
		"realtime_active", false, "summary", "none", "sandbox_policy", obj("type", "read-only")))
}

func (c *codex) settingsApplied() {
	c.event("thread_settings_applied", "thread_id", c.thread, "thread_settings", obj("model", "fake-model",
		"model_provider_id", "fake", "approval_policy", "on-request", "approvals_reviewer", "user",
		"requested_approvals_reviewer", "user", "permission_profile", c.permissions(), "cwd", c.a.cfg.Cwd,
		"runtime_workspace_roots", list(c.a.cfg.Cwd), "collaboration_mode", c.collaboration(), "disabled_plugin_ids", list()))
}

func (c *codex) userMessage(t *turn, text string) {
	c.response(t, []string{"user.text"}, false, c.inputs, "type", "message", "id", "msg_"+newID(),
		"role", "user", "content", list(obj("type", "input_text", "text", text)))
	c.inputs++
	c.item(t, time.Now(), "UserMessage", newID(), "client_id", uuid.NewString(),
		"content", list(obj("type", "text", "text", text, "text_elements", list())))
}

func (c *codex) item(t *turn, started time.Time, kind, id string, kv ...any) {
	item := obj(append([]any{"type", kind, "id", id}, kv...)...)
	c.event("item_completed", "thread_id", c.thread, "turn_id", t.id, "item", item,
		"started_at_ms", started.UnixMilli(), "completed_at_ms", time.Now().UnixMilli())
}

func (c *codex) agentMessage(t *turn, text, phase string) {
	id := "msg_fake_" + newID()[24:]
	c.item(t, time.Now(), "AgentMessage", id, "content", list(obj("type", "Text", "text", text)), "phase", phase)
	c.response(t, []string{"unknown"}, false, c.inputs, "type", "message", "status", "completed", "id", id,
		"role", "assistant", "content", list(obj("type", "output_text", "text", text, "annotations", list())), "phase", phase)
	c.inputs++
}

func (c *codex) functionCall(t *turn, call *call) {
	c.response(t, nil, false, c.inputs, "type", "function_call", "status", "completed", "id", "fc_"+call.id[5:],
		"name", call.name, "arguments", call.args, "call_id", call.id)
}

func (c *codex) functionOutput(t *turn, call *call, out string) {
	c.response(t, nil, false, -1, "type", "function_call_output", "id", "fco_"+newID(), "call_id", call.id, "output", out)
}

func (c *codex) commandExecution(t *turn, call *call, out, source string, started time.Time) {
	c.item(t, started, "CommandExecution", call.id, "command", list("/bin/bash", "-lc", call.cmd),
		"cwd", "file://"+c.a.cfg.Cwd, "parsed_cmd", list(obj("type", "unknown", "cmd", call.cmd)), "source", source,
		"status", "completed", "aggregated_output", out, "exit_code", 0, "duration", obj("secs", 0, "nanos", 69103))
}

func (c *codex) shellMessage(t *turn, cmd, out string) {
	text := fmt.Sprintf("<user_shell_command>\n<command>\n%s\n</command>\n<result>\nExit code: 0\nDuration: 0.0001 seconds\nOutput:\n%s\n</result>\n</user_shell_command>", cmd, out)
	c.response(t, []string{"shell.user_command"}, false, -1, "type", "message", "id", "msg_"+newID(),
		"role", "user", "content", list(obj("type", "input_text", "text", text)))
}

func (c *codex) tokens(in, out int) raw {
	return obj("input_tokens", in, "cached_input_tokens", 0, "cache_write_input_tokens", 0,
		"output_tokens", out, "reasoning_output_tokens", 0, "total_tokens", in+out)
}

func (c *codex) usage(t *turn) {
	c.totalIn += 1000
	c.record("token_usage_record", obj("thread_id", c.thread, "turn_id", t.id, "session_id", c.thread, "root_turn_id", t.id,
		"response_id", "resp_fake_"+newID()[24:], "usage", c.tokens(1000, 10), "turn_token_usage", c.tokens(1000, 10),
		"thread_token_usage", c.tokens(c.totalIn, c.totalIn/100)))
}

func (c *codex) tokenCount() {
	c.event("token_count", "info", obj("total_token_usage", c.tokens(c.totalIn, c.totalIn/100),
		"last_token_usage", c.tokens(1000, 10), "last_usage_includes_reasoning", false, "model_context_window", 258400),
		"rate_limits", obj("limit_id", "codex", "limit_name", nil, "primary", nil, "secondary", nil, "credits", nil,
			"individual_limit", nil, "spend_control_reached", nil, "plan_type", nil, "rate_limit_reached_type", nil))
}

func (c *codex) times(t *turn) []any {
	return []any{"started_at", t.started.Unix(), "completed_at", time.Now().Unix(), "duration_ms", time.Since(t.started).Milliseconds()}
}

func (c *codex) taskComplete(t *turn, message any, failure raw) {
	kv := []any{"root_turn_id", t.id, "turn_id", t.id, "last_agent_message", message}
	if failure != nil {
		kv = append(kv, "error", failure)
	}
	kv = append(kv, c.times(t)...)
	if !t.first.IsZero() {
		kv = append(kv, "time_to_first_token_ms", t.first.Sub(t.started).Milliseconds())
	}
	c.event("task_complete", kv...)
}

func (c *codex) turnAborted(t *turn) {
	c.response(t, []string{"generic.turn_aborted"}, false, -1, "type", "message", "id", "msg_"+newID(), "role", "user",
		"content", list(obj("type", "input_text", "text", "<turn_aborted>\nThe user interrupted the previous turn on purpose. Any running unified exec processes may still be running in the background. If any tools/commands were aborted, they may have partially executed.\n</turn_aborted>")))
	c.event("turn_aborted", append([]any{"root_turn_id", t.id, "turn_id", t.id, "reason", "interrupted"}, c.times(t)...)...)
}
