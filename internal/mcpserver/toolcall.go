package mcpserver

import (
	"encoding/json"
)

// toolCall is what the transport reads of tools/call params. The SDK reads them again for
// the protocol's own fields.
type toolCall struct {
	name     string
	args     json.RawMessage // nil when absent
	progress json.RawMessage // the progress token as written; nil when absent
}

// maxToolName bounds the name in a call; longer ones cannot be in any table.
const maxToolName = 128

// parseToolCall checks params that must not differ between two readers. It returns why
// they are refused.
func parseToolCall(params json.RawMessage) (call toolCall, fault string) {
	if params == nil {
		return call, "tools/call needs params with a tool name"
	}
	m, twice := members(params)
	if twice != "" {
		return call, "params have " + clip(twice) + " twice"
	}
	if json.Unmarshal(m["name"], &call.name) != nil || call.name == "" || len(call.name) > maxToolName {
		return call, `"name" must be the name of a tool`
	}
	if _, augmented := m["task"]; augmented {
		return call, "task-augmented calls are not supported: call the tool without \"task\""
	}
	if args := m["arguments"]; len(args) > 0 && args[0] != 'n' {
		call.args = args
	}
	meta, given := m["_meta"]
	if !given || meta[0] == 'n' {
		return call, ""
	}
	if meta[0] != '{' {
		return call, `"_meta" must be an object`
	}
	inner, twice := members(meta)
	if twice != "" {
		return call, "_meta has " + clip(twice) + " twice"
	}
	if token, asked := inner["progressToken"]; asked {
		if !isID(token) {
			return call, `"progressToken" must be a string or a number`
		}
		call.progress = token
	}
	return call, ""
}
