package harnesstools

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/harness"
	"github.com/agent-knock-knock/akk/internal/harness/client"
	"github.com/agent-knock-knock/akk/internal/redact"
	"github.com/agent-knock-knock/akk/internal/toolkit"
)

const (
	maxLabel   = 80
	maxKind    = 24   // of a label: what remains is the name's, which says more
	maxShown   = 4000 // of what the agent wants to do
	maxMessage = 16 << 10
	maxChoices = 64
)

// question is what is read of an open question.
type question struct {
	ID          string          `json:"request_id"`
	Kind        string          `json:"kind"`
	Permission  bool            `json:"permission"`
	Title       string          `json:"title"`
	Message     string          `json:"message"`
	Options     []option        `json:"options"`
	Schema      json.RawMessage `json:"schema"`
	URL         string          `json:"url"`
	Elicitation string          `json:"elicitation_id"`
	RawInput    json.RawMessage `json:"raw_input"`
}

type option struct {
	ID   string `json:"option_id"`
	Name string `json:"name"`
	Kind string `json:"kind"`
}

// How the answer to a dialog becomes an answer to its question.
type dialogKind int

const (
	choose  dialogKind = iota // one of the options
	fill                      // a form with the agent's own schema
	wrapped                   // one text field that holds a JSON object
	visit                     // a page was opened
)

// dialog is a question as it is put to a person.
type dialog struct {
	question question
	kind     dialogKind
	field    string // of choose
	tokens   []string
	ask      toolkit.Elicitation
}

// newDialog makes the dialog of a question; ok is false when this Host cannot show it.
func newDialog(q question, host toolkit.Host) (d dialog, ok bool) {
	d = dialog{question: q}
	d.ask.Message = q.text()
	switch {
	case len(q.Options) > 0:
		d.kind = choose
		d.field = "decision"
		if q.Kind == string(harness.AskAuthMethod) {
			d.field = "method_id"
		}
		if len(q.Options) > maxChoices {
			return d, false
		}
		d.ask.Schema = d.choices(host.Titled())
		return d, host.Forms()
	case q.URL != "" && host.URLs():
		d.kind = visit
		d.ask.URL, d.ask.ID = q.URL, q.Elicitation
		if d.ask.ID == "" {
			d.ask.ID = q.ID
		}
		return d, true
	case q.URL != "":
		d.kind = visit
		d.ask.Message += "\n\nOpen this page, then confirm:\n" + q.URL
		d.ask.Schema = harness.OpenedSchema
		return d, host.Forms()
	case q.Permission: // a permission without options: there is nothing to choose
		return d, false
	}
	d.kind = fill
	schema, plain := flatForm(q.Schema, host.Titled())
	if !plain {
		d.kind = wrapped
		d.ask.Message += "\n\nThe answer is a JSON object for this schema:\n" + shorten(string(q.Schema), maxShown)
		schema = json.RawMessage(`{"type":"object","properties":{"response":{"type":"string","title":"JSON object"}},"required":["response"]}`)
	}
	d.ask.Schema = schema
	return d, host.Forms()
}

// text is the question in words: title, message, and what the agent wants to do.
func (q question) text() string {
	var parts []string
	for _, s := range []string{q.Title, q.Message} {
		if s = strings.TrimSpace(s); s != "" && (len(parts) == 0 || parts[0] != s) {
			parts = append(parts, shorten(s, maxMessage))
		}
	}
	if raw := bytes.TrimSpace(q.RawInput); len(raw) > 0 && !bytes.Equal(raw, []byte("null")) && !bytes.Equal(raw, []byte("{}")) {
		var pretty bytes.Buffer
		if json.Indent(&pretty, raw, "", "  ") == nil {
			parts = append(parts, shorten(string(redact.Bytes(pretty.Bytes())), maxShown))
		}
	}
	if len(parts) == 0 {
		return "The agent asks."
	}
	return strings.Join(parts, "\n\n")
}

const ellipsis = "..."

// shorten cuts s to at most so many bytes, between runes, and marks the cut. Where not even
// the mark has room nothing is left: a limit may come from what an agent wrote.
func shorten(s string, most int) string {
	switch {
	case most > 0 && len(s) <= most:
		return s
	case most < len(ellipsis)+1:
		return ""
	}
	return strings.ToValidUTF8(s[:most-len(ellipsis)], "") + ellipsis
}

// label is the n-th option in one line, different from every other by its number. A line
// break of the agent's could look like another choice.
func (o option) label(n int) string {
	number, kind := fmt.Sprintf("%d. ", n), ""
	if k := oneLine(o.Kind); k != "" {
		kind = " [" + shorten(k, maxKind) + "]"
	}
	return number + shorten(o.title(), maxLabel-len(number)-len(kind)) + kind
}

// title is what an option is called; its id when the agent gave it no name.
func (o option) title() string {
	if name := oneLine(o.Name); name != "" {
		return name
	}
	return oneLine(o.ID)
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// choices is the form of the options. What comes back is a token of ours, never the agent's
// own id, which may be anything.
func (d *dialog) choices(titled bool) json.RawMessage {
	type titledChoice struct {
		Const string `json:"const"`
		Title string `json:"title"`
	}
	property := map[string]any{"type": "string", "title": "Decision"}
	if d.field == "method_id" {
		property["title"] = "Login method"
	}
	var list []titledChoice
	for i, o := range d.question.Options {
		token := fmt.Sprintf("o%d", i+1)
		label := shorten(o.title(), maxLabel)
		if !titled {
			label = o.label(i + 1)
			token = label
		}
		d.tokens = append(d.tokens, token)
		list = append(list, titledChoice{token, label})
	}
	if titled {
		property["oneOf"] = list
	} else {
		property["enum"] = d.tokens
	}
	b, err := json.Marshal(map[string]any{"type": "object", "properties": map[string]any{d.field: property}, "required": []string{d.field}})
	if err != nil { // maps of strings always marshal
		return json.RawMessage(`{"type":"object"}`)
	}
	return b
}

// reply is the answer for the server, one of the three kinds.
type reply map[string]any

// errAgain marks an answer that does not fit: the person may be asked once more.
type errAgain struct{ error }

func (e errAgain) Unwrap() error { return e.error }

// answer maps what the person did. Only an acceptance of something that was offered
// accepts.
func (d dialog) answer(a toolkit.Answer) (reply, error) {
	switch a.Action {
	case "decline":
		return reply{"answer": harness.AnswerReject}, nil
	case "cancel":
		return reply{"answer": harness.AnswerCancel}, nil
	}
	var content map[string]json.RawMessage
	if len(a.Content) > 0 && json.Unmarshal(a.Content, &content) != nil {
		content = nil
	}
	switch d.kind {
	case choose:
		var token string
		_ = json.Unmarshal(content[d.field], &token) // what is no string was not offered
		for i, t := range d.tokens {
			if t == token {
				return reply{"option_id": d.question.Options[i].ID}, nil
			}
		}
		return nil, harness.Refuse(client.UnofferedOption, "the choice that came back was not one of those offered; nothing was sent and the question is still open").
			With(harness.Detail{"request_id": d.question.ID})
	case visit:
		if d.ask.URL != "" {
			return reply{"content": json.RawMessage(`{"opened":true}`)}, nil
		}
		var opened bool
		if json.Unmarshal(content["opened"], &opened) != nil {
			return nil, errAgain{harness.Refuse(harness.InvalidResponse, "say whether the page was opened")}
		}
		return reply{"content": map[string]bool{"opened": opened}}, nil
	case wrapped:
		var text string
		_ = json.Unmarshal(content["response"], &text) // what is no string is no object either
		if content = nil; json.Unmarshal([]byte(text), &content) != nil || content == nil {
			return nil, errAgain{harness.Refuse(harness.InvalidResponse, "the response is not a JSON object")}
		}
	}
	return d.filled(content)
}

// filled drops what was left empty and holds the rest against the agent's own schema.
func (d dialog) filled(content map[string]json.RawMessage) (reply, error) {
	var form struct {
		Required []string `json:"required"`
	}
	_ = json.Unmarshal(d.question.Schema, &form) // a schema without it requires nothing
	needed := map[string]bool{}
	for _, name := range form.Required {
		needed[name] = true
	}
	values := map[string]any{}
	for name, raw := range content {
		var v any
		if json.Unmarshal(raw, &v) != nil || v == nil || v == "" && !needed[name] {
			continue
		}
		values[name] = v
	}
	if err := harness.CheckContent(d.question.Schema, values); err != nil {
		return nil, errAgain{err}
	}
	return reply{"content": values}, nil
}

// again is the dialog with the reason why its answer did not fit.
func (d dialog) again(err error) dialog {
	_, msg, _ := fault.Public(err)
	d.ask.Message = "The last answer did not fit: " + msg + "\n\n" + d.ask.Message
	return d
}
