package mcpserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

const (
	// maxFrameDepth bounds nested arrays and objects of a frame.
	maxFrameDepth = 128
	// maxIDBytes bounds an id as it is written.
	maxIDBytes = 1024
)

// codeStopping is the JSON-RPC error of a request that this process will not finish.
const codeStopping = -32000

// kind tells JSON-RPC messages apart.
type kind int

const (
	request kind = iota
	notification
	response
)

// envelope is a frame that is a JSON-RPC 2.0 message. The slices share the frame.
type envelope struct {
	kind   kind
	id     json.RawMessage // as written; nil in a notification
	method string
	params json.RawMessage // an object, or nil when absent or null

	result json.RawMessage // of a response that is not an error
	failed bool            // the response is an error
}

// refusal is a frame's answer when the frame is not served.
type refusal struct {
	id     json.RawMessage // nil means null
	code   int64
	reason string
}

// parse reads one frame. It refuses what is not a JSON-RPC message.
func parse(frame []byte) (envelope, *refusal) {
	if !utf8.Valid(frame) {
		return envelope{}, &refusal{code: jsonrpc.CodeParseError, reason: "parse error: the line is not valid UTF-8"}
	}
	if depth(frame) > maxFrameDepth {
		return envelope{}, &refusal{id: recoverID(frame), code: jsonrpc.CodeInvalidRequest,
			reason: fmt.Sprintf("the message is nested deeper than %d levels", maxFrameDepth)}
	}
	if !json.Valid(frame) {
		return envelope{}, &refusal{code: jsonrpc.CodeParseError, reason: "parse error: the line is not exactly one JSON value"}
	}
	switch frame[0] {
	case '{':
	case '[':
		return envelope{}, &refusal{code: jsonrpc.CodeInvalidRequest,
			reason: "batches are not supported: send every message on its own line"}
	default:
		return envelope{}, &refusal{code: jsonrpc.CodeInvalidRequest, reason: "the message is not a JSON object"}
	}
	m, twice := members(frame)
	if twice == "id" {
		return envelope{}, &refusal{code: jsonrpc.CodeInvalidRequest, reason: `the message has "id" twice`}
	}
	return m.envelope(twice)
}

// envelope checks the members of a message; twice names one that came more than once.
func (m object) envelope(twice string) (envelope, *refusal) {
	id, idFault := m.id()
	refuse := func(code int64, format string, args ...any) (envelope, *refusal) {
		return envelope{}, &refusal{id: id, code: code, reason: fmt.Sprintf(format, args...)}
	}
	_, hasMethod := m["method"]
	_, hasResult := m["result"]
	_, hasError := m["error"]
	var version string
	switch {
	case twice != "":
		return refuse(jsonrpc.CodeInvalidRequest, "the message has %q twice", clip(twice))
	case json.Unmarshal(m["jsonrpc"], &version) != nil || version != "2.0":
		return refuse(jsonrpc.CodeInvalidRequest, `"jsonrpc" must be "2.0"`)
	case !hasMethod && (hasResult || hasError):
		return envelope{kind: response, id: id, result: m["result"], failed: hasError}, nil
	case idFault != "":
		return refuse(jsonrpc.CodeInvalidRequest, "%s", idFault)
	case hasMethod && (hasResult || hasError):
		return refuse(jsonrpc.CodeInvalidRequest, "the message is a request and a response at once")
	}
	e := envelope{kind: request, id: id}
	if id == nil {
		e.kind = notification
	}
	if json.Unmarshal(m["method"], &e.method) != nil || e.method == "" {
		return refuse(jsonrpc.CodeInvalidRequest, `"method" must be a non-empty string`)
	}
	switch params := m["params"]; {
	case len(params) == 0 || params[0] == 'n': // absent or null
	case params[0] != '{':
		return refuse(jsonrpc.CodeInvalidParams, `"params" must be an object`)
	default:
		e.params = params
	}
	return e, nil
}

// id returns the id as written, or why it cannot be used. Both are empty without an id.
func (m object) id() (id json.RawMessage, fault string) {
	raw, given := m["id"]
	switch {
	case !given:
		return nil, ""
	case !isID(raw):
		return nil, `"id" must be a string or a number`
	case len(raw) > maxIDBytes:
		return nil, fmt.Sprintf(`"id" is longer than %d bytes`, maxIDBytes)
	}
	return raw, ""
}

func isID(raw json.RawMessage) bool {
	return len(raw) > 0 && (raw[0] == '"' || raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9')
}

// idKey is the identity of an id: two spellings of one string are one id. Numbers are
// compared as they are written, so that no digit is lost.
func idKey(raw json.RawMessage) string {
	var s string
	if raw[0] == '"' && json.Unmarshal(raw, &s) == nil {
		return "s" + s
	}
	return "n" + string(raw)
}

// object is the members of a JSON object, each value as written.
type object map[string]json.RawMessage

// members splits a valid JSON object. It reports one key that appears twice, if any; the
// first value of it is kept.
func members(raw json.RawMessage) (m object, twice string) {
	m = make(object)
	walk(raw, func(key string, value json.RawMessage) bool {
		if _, again := m[key]; again {
			twice = key
		} else {
			m[key] = value
		}
		return true
	})
	return m, twice
}

// walk visits the members of a JSON object until the object ends, the JSON breaks or f
// returns false.
func walk(raw []byte, f func(key string, value json.RawMessage) bool) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return
		}
		name, ok := key.(string)
		var value json.RawMessage
		if !ok || dec.Decode(&value) != nil || !f(name, value) {
			return
		}
	}
}

// recoverID looks for a usable id in a frame that is broken, too deep or cut off.
func recoverID(frame []byte) (id json.RawMessage) {
	walk(frame, func(key string, value json.RawMessage) bool {
		if key == "id" && isID(value) && len(value) <= maxIDBytes {
			id = value
		}
		return key != "id"
	})
	return id
}

// depth counts nested brackets outside strings. It needs no valid JSON.
func depth(frame []byte) int {
	deepest, level := 0, 0
	inString := false
	for i := 0; i < len(frame); i++ {
		switch c := frame[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			level++
			deepest = max(deepest, level)
		case c == '}' || c == ']':
			level--
		}
	}
	return deepest
}

// clip bounds a name that an error message repeats.
func clip(s string) string {
	const most = 64
	if len(s) <= most {
		return s
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "..."
}
