package transcript

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"github.com/agent-knock-knock/akk/internal/agent/claude/known"
	"github.com/agent-knock-knock/akk/internal/fault"
)

// Record is one line of a transcript, with the fields that mean something here. Unknown
// fields and unknown types are the agent's business.
type Record struct {
	Type              string     `json:"type"`
	Subtype           string     `json:"subtype"`
	UUID              string     `json:"uuid"`
	ParentUUID        string     `json:"parentUuid"`
	LogicalParentUUID string     `json:"logicalParentUuid"`
	SessionID         string     `json:"sessionId"`
	PromptID          string     `json:"promptId"`
	IsMeta            bool       `json:"isMeta"`
	IsSidechain       bool       `json:"isSidechain"`
	IsCompactSummary  bool       `json:"isCompactSummary"`
	IsTranscriptOnly  bool       `json:"isVisibleInTranscriptOnly"`
	IsAPIError        bool       `json:"isApiErrorMessage"`
	Error             jsonText   `json:"error"`
	APIErrorStatus    jsonText   `json:"apiErrorStatus"`
	Origin            origin     `json:"origin"`
	Message           message    `json:"message"`
	Attachment        attachment `json:"attachment"`
	PendingAgents     int        `json:"pendingBackgroundAgentCount"`
	PendingWorkflows  int        `json:"pendingWorkflowCount"`
}

type origin struct {
	Kind string `json:"kind"`
}

type message struct {
	ID         string      `json:"id"`
	Model      string      `json:"model"`
	StopReason string      `json:"stop_reason"`
	Content    jsonContent `json:"content"`
}

type attachment struct {
	Type        string      `json:"type"`
	Prompt      jsonContent `json:"prompt"`
	CommandMode string      `json:"commandMode"`
	IsMeta      bool        `json:"isMeta"`
	Origin      origin      `json:"origin"`
}

// block is one content block of a message.
type block struct {
	Type      string `json:"type"`
	Text      string `json:"text"`
	ID        string `json:"id"`
	ToolUseID string `json:"tool_use_id"`
}

// jsonContent is content that is a string or a list of blocks; other shapes are empty.
type jsonContent struct {
	text   string
	blocks []block
	isText bool
}

// UnmarshalJSON accepts every JSON value: an unknown shape carries no text.
func (c *jsonContent) UnmarshalJSON(b []byte) error {
	*c = jsonContent{}
	switch b[0] {
	case '"':
		c.isText = true
		return json.Unmarshal(b, &c.text)
	case '[':
		var raw []json.RawMessage
		if err := json.Unmarshal(b, &raw); err != nil {
			return err
		}
		for _, r := range raw {
			var bl block
			if json.Unmarshal(r, &bl) != nil {
				bl = block{}
			}
			c.blocks = append(c.blocks, bl)
		}
	}
	return nil
}

// joined returns the text blocks joined by sep, or the string.
func (c jsonContent) joined(sep string) string {
	if c.isText {
		return c.text
	}
	var out []string
	for _, b := range c.blocks {
		if b.Type == "text" {
			out = append(out, b.Text)
		}
	}
	return strings.Join(out, sep)
}

// prompt returns the text of a prompt, and whether the content can be one: a string, or
// text and image blocks.
func (c jsonContent) prompt() (string, bool) {
	if c.isText {
		return c.text, true
	}
	for _, b := range c.blocks {
		switch b.Type {
		case "text", "image", "document":
		default:
			return "", false
		}
	}
	return c.joined("\n"), len(c.blocks) > 0
}

// jsonText is a string or number; other shapes are empty.
type jsonText string

// UnmarshalJSON accepts every JSON value.
func (t *jsonText) UnmarshalJSON(b []byte) error {
	var s string
	switch {
	case b[0] == '"':
		if err := json.Unmarshal(b, &s); err != nil {
			return err
		}
	case b[0] == '-' || b[0] >= '0' && b[0] <= '9':
		s = string(b)
	}
	*t = jsonText(s)
	return nil
}

// meaningful are the types of records that can prove something.
var meaningful = map[string]bool{
	known.RecUser: true, known.RecAssistant: true, known.RecSystem: true, known.RecAttachment: true, known.RecQueue: true,
}

// ParseRecord reads one complete line without its newline. A line that is not one JSON
// object, or a meaningful record whose fields have another shape, is broken: nothing is
// guessed from it.
func ParseRecord(line []byte) (Record, error) {
	const op = "claude.record"
	// JSON's own white space and no more: a form feed before a record is no record.
	line = bytes.Trim(line, " \t\r\n")
	if len(line) == 0 || line[0] != '{' {
		return Record{}, fault.New(fault.Invalid, op, "a transcript line is not a JSON object")
	}
	var r Record
	err := json.Unmarshal(line, &r)
	var shape *json.UnmarshalTypeError
	if errors.As(err, &shape) && !meaningful[r.Type] {
		err = nil // a known.Kind of record that is not read here may look as it likes
	}
	if err != nil {
		return Record{}, fault.Wrap(err, fault.Invalid, op, "a transcript line is not a whole record")
	}
	return r, nil
}

// parent returns the record that r continues. A compaction begins a new tree and names
// the old one apart.
func (r Record) parent() string {
	if r.ParentUUID != "" {
		return r.ParentUUID
	}
	return r.LogicalParentUUID
}

// humanPrompt returns the text of a prompt that a person or a paste submitted, and whether
// r is one. What the program writes for itself is none: tool results, interrupts, command
// output, summaries, notifications of background work, and every record of a sidechain.
func (r Record) humanPrompt() (string, bool) {
	if r.Type != known.RecUser || r.IsMeta || r.IsSidechain || r.IsCompactSummary || r.IsTranscriptOnly || !r.Origin.human() {
		return "", false
	}
	text, ok := r.Message.Content.prompt()
	if !ok || r.interrupt() {
		return "", false
	}
	for _, p := range known.LocalPrefixes {
		if r.Origin.Kind == "" && strings.HasPrefix(text, p) { // a person may begin a prompt with a tag
			return "", false
		}
	}
	return text, true
}

// HumanPrompt returns the text of a prompt that a person or a paste submitted, and whether
// r is one. What the program writes for itself is none.
func (r Record) HumanPrompt() (string, bool) { return r.humanPrompt() }

func (o origin) human() bool { return o.Kind == "" || o.Kind == known.OriginHuman }

// absorbedPrompt returns the text of a prompt that was typed during a tool call and was
// handed to the running turn; such a prompt gets no user record.
func (r Record) absorbedPrompt() (string, bool) {
	a := r.Attachment
	if r.Type != known.RecAttachment || r.IsSidechain || a.Type != known.AttachQueued || a.IsMeta || !a.Origin.human() {
		return "", false
	}
	if a.CommandMode != "" && a.CommandMode != known.ModePrompt {
		return "", false
	}
	return a.Prompt.prompt()
}

// interrupt reports whether r says that a person stopped the turn.
func (r Record) interrupt() bool {
	if r.Type != known.RecUser || r.IsSidechain || r.Origin.Kind != "" { // a person may type the same words
		return false
	}
	c := r.Message.Content
	if c.isText {
		return strings.HasPrefix(c.text, known.InterruptPrefix)
	}
	for _, b := range c.blocks {
		if b.Type != "text" || !strings.HasPrefix(b.Text, known.InterruptPrefix) {
			return false
		}
	}
	return len(c.blocks) > 0
}
