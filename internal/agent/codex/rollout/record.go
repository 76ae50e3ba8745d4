// Package rollout reads the session files of Codex: single records, a file as it grows, and
// where a thread's file is.
//
// It knows the form of the files and their dangers (replaced, cut, broken, huge); which
// record belongs to which request it must never know.
package rollout

import (
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/agent-knock-knock/akk/internal/agent/codex/known"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/redact"
	"github.com/agent-knock-knock/akk/internal/turn"
)

// MaxDetail is the limit of an error text or detail line, in bytes.
const MaxDetail = 1000

// Codes of evidence that cannot be trusted.
const (
	CodeBadRecord  fault.Code = "invalid_rollout_record" // a complete line that cannot be read
	CodeTooLong    fault.Code = "rollout_record_too_long"
	CodeReplaced   fault.Code = "rollout_replaced"
	CodeInsecure   fault.Code = "rollout_insecure"
	CodeUnreadable fault.Code = "rollout_unreadable"
)

type Kind int

const (
	Other    Kind = iota // anything that does not matter here, known or not
	Session              // the thread's first line
	Started              // a native turn began
	User                 // a prompt was accepted
	UserWeak             // a user message to the model that carries its turn id
	Answer               // text of the agent
	Plan                 // a proposed plan
	Call                 // the model called a tool; nothing else is read of it
	Complete             // a native turn ended, well or with an error
	Aborted              // a native turn was interrupted
)

// Record is one line of a rollout, reduced to what matters.
type Record struct {
	Kind     Kind
	At       time.Time
	Thread   string // "" when the record names none
	TurnID   string
	ClientID string
	Text     string
	Final    bool // of an answer: the agent called it final
	HasText  bool // of a completion: last_agent_message is not null
	Failed   bool
	Code     string // of a failure or an abort
	Detail   string
	Items    bool // the record is of the form that came with the error field
	Meta     Meta
}

// Meta is what the first line says of the thread.
type Meta struct {
	ID      string
	Cwd     string
	Version string
	Sub     bool // a sub-agent's or another helper thread
}

type rawLine struct {
	Timestamp string          `json:"timestamp"`
	Type      string          `json:"type"`
	Payload   json.RawMessage `json:"payload"`
}

type rawPayload struct {
	Type       string          `json:"type"`
	TurnID     string          `json:"turn_id"`
	ThreadID   string          `json:"thread_id"`
	Role       string          `json:"role"`
	Phase      string          `json:"phase"`
	Reason     string          `json:"reason"`
	LastAnswer *string         `json:"last_agent_message"`
	Error      *rawError       `json:"error"`
	Message    json.RawMessage `json:"message"`
	Content    json.RawMessage `json:"content"`
	Item       json.RawMessage `json:"item"`
	Passed     struct {
		TurnID string `json:"turn_id"`
	} `json:"internal_chat_message_metadata_passthrough"`
}

type rawError struct {
	Message string          `json:"message"`
	Info    json.RawMessage `json:"codex_error_info"`
}

type rawItem struct {
	Type     string          `json:"type"`
	ClientID string          `json:"client_id"`
	Phase    string          `json:"phase"`
	Text     string          `json:"text"`
	Content  json.RawMessage `json:"content"`
}

// Parse reads one complete line. Types and fields it does not know are Other
// (versions drift); a line that is no JSON object, or a record it needs whose fields have
// other types, is an error: nothing is guessed from it.
func Parse(line []byte) (Record, error) {
	const op = "codex.parse_record"
	var raw rawLine
	if err := json.Unmarshal(line, &raw); err != nil {
		return Record{}, fault.Wrap(err, CodeBadRecord, op, "a complete rollout line is not a JSON record")
	}
	r := Record{}
	r.At, _ = time.Parse(time.RFC3339Nano, raw.Timestamp)
	if len(raw.Payload) == 0 || raw.Payload[0] != '{' {
		return r, nil
	}
	var kind struct {
		Type json.RawMessage `json:"type"`
	}
	if json.Unmarshal(raw.Payload, &kind) != nil {
		return r, nil
	}
	name := strings.Trim(string(kind.Type), `"`)
	if raw.Type == known.RecResponse && known.CallItems[name] {
		r.Kind = Call
		return r, nil
	}
	if !matters(raw.Type, name) {
		return r, nil
	}
	if raw.Type == known.RecMeta {
		return parseMeta(r, raw.Payload)
	}
	var p rawPayload
	if err := json.Unmarshal(raw.Payload, &p); err != nil {
		return Record{}, fault.Wrap(err, CodeBadRecord, op, "a %s record has fields of an unknown type", name)
	}
	r.TurnID, r.Thread = p.TurnID, p.ThreadID
	if raw.Type == known.RecResponse {
		return parseResponse(r, p), nil
	}
	switch p.Type {
	case known.EvStarted:
		r.Kind = Started
	case known.EvAborted:
		r.Kind, r.Code = Aborted, p.Reason
	case known.EvUser:
		r.Kind, r.Text = User, StringOf(p.Message)
	case known.EvAgent:
		r.Kind, r.Text, r.Final = Answer, StringOf(p.Message), p.Phase == known.PhaseFinal
	case known.EvComplete:
		r.Kind = Complete
		if p.LastAnswer != nil {
			r.Text, r.HasText = *p.LastAnswer, true
		}
		if p.Error != nil {
			r.Failed, r.Code, r.Detail = true, ErrorCode(p.Error.Info), OneLine(p.Error.Message)
		}
	case known.EvItem:
		return parseItem(r, p.Item)
	}
	return r, nil
}

func matters(lineType, name string) bool {
	switch lineType {
	case known.RecMeta:
		return true
	case known.RecResponse:
		return name == known.TypeMessage
	case known.RecEvent:
		switch name {
		case known.EvStarted, known.EvAborted, known.EvUser, known.EvAgent, known.EvComplete, known.EvItem:
			return true
		}
	}
	return false
}

func parseItem(r Record, raw json.RawMessage) (Record, error) {
	var kind struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(raw, &kind) != nil {
		return r, nil
	}
	switch kind.Type {
	case known.ItemUser, known.ItemAgent, known.ItemPlan:
	default:
		return r, nil
	}
	var it rawItem
	if err := json.Unmarshal(raw, &it); err != nil {
		return Record{}, fault.Wrap(err, CodeBadRecord, "codex.parse_record", "a %s item has fields of an unknown type", kind.Type)
	}
	r.Items = true
	switch it.Type {
	case known.ItemUser:
		r.Kind, r.ClientID, r.Text = User, it.ClientID, ContentText(it.Content)
	case known.ItemAgent:
		r.Kind, r.Text, r.Final = Answer, ContentText(it.Content), it.Phase == known.PhaseFinal
	case known.ItemPlan:
		r.Kind, r.Text = Plan, it.Text
	}
	return r, nil
}

// parseResponse reads what was sent to or came from the model. Old versions mark the
// final answer only here, and a user message carries its turn id only here.
func parseResponse(r Record, p rawPayload) Record {
	if r.TurnID == "" {
		r.TurnID = p.Passed.TurnID
	}
	switch {
	case p.Role == "user" && r.TurnID != "":
		r.Kind, r.Text = UserWeak, ContentText(p.Content)
	case p.Role == "assistant" && p.Phase == known.PhaseFinal:
		r.Kind, r.Text, r.Final = Answer, ContentText(p.Content), true
	}
	return r
}

func parseMeta(r Record, payload json.RawMessage) (Record, error) {
	var m struct {
		ID           string          `json:"id"`
		Cwd          string          `json:"cwd"`
		Version      string          `json:"cli_version"`
		Source       json.RawMessage `json:"source"`
		ThreadSource json.RawMessage `json:"thread_source"`
	}
	if err := json.Unmarshal(payload, &m); err != nil {
		return Record{}, fault.Wrap(err, CodeBadRecord, "codex.parse_record", "the session record has fields of an unknown type")
	}
	r.Kind, r.Meta = Session, Meta{ID: m.ID, Cwd: m.Cwd, Version: m.Version}
	r.Meta.Sub = Helper(m.Source, m.ThreadSource)
	return r, nil
}

// Helper reports, by the two members of the first line, a thread that is not a person's. A
// thread of a person says source "cli" or "vscode" (through the daemon); a helper's source
// is an object, or its thread_source is another word than "user".
func Helper(source, threadSource json.RawMessage) bool {
	word := StringOf(threadSource)
	return len(source) > 0 && source[0] == '{' || word != "" && word != "user"
}

// ContentText joins the text parts of a message, or takes a bare string.
func ContentText(raw json.RawMessage) string {
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(raw, &parts) != nil {
		return StringOf(raw)
	}
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.Text)
	}
	return b.String()
}

// StringOf returns a JSON string's value, "" for anything else.
func StringOf(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// ErrorCode returns the word of codex_error_info: a string, or the key of an object.
func ErrorCode(raw json.RawMessage) string {
	if s := StringOf(raw); s != "" {
		return s
	}
	var m map[string]json.RawMessage
	if json.Unmarshal(raw, &m) == nil {
		for k := range m {
			return k
		}
	}
	return "agent_error"
}

// OneLine makes s one redacted line of at most [MaxDetail] bytes.
func OneLine(s string) string { return redact.Line(s, MaxDetail) }

// Clip cuts s at a rune boundary at or below limit bytes.
func Clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}

// SetText puts an answer into an observation, cut at [turn.MaxText].
func SetText(o *turn.Observation, text string) {
	o.FullBytes = len(text)
	o.Text = Clip(text, turn.MaxText)
	o.Truncated = len(o.Text) < len(text)
}
