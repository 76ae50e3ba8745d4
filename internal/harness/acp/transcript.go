package acp

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/agent-knock-knock/akk/internal/fault"
)

// Limits of one transcript. Text and thoughts are whole or the turn has an error; what a
// tool prints is cut.
const (
	maxTurnText    = 64 << 20
	maxThought     = 1 << 20
	maxTools       = 10_000
	maxToolOutput  = 64 << 10
	maxToolInput   = 64 << 10
	maxUnsupported = 100
	maxRejected    = 1000
)

// Transcript collects what belongs to one turn. Feed it only the events of that turn, in
// order. It is plain memory: no clock, no lock. The zero value is empty.
type Transcript struct {
	groups      []*group
	byID        map[string]int
	broken      bool // the next chunk without an id begins a group
	textBytes   int
	thought     strings.Builder
	tools       []*ToolState
	toolByID    map[string]*ToolState
	plan        []PlanEntry
	usage       *ContextUsage
	rejected    []Rejection
	unsupported []string
	Truncated   bool // a thought, a tool's data or the number of tools was cut
}

type group struct {
	id   string
	text strings.Builder
}

// Message is what the agent said under one message id; ID is "" when it gave none.
type Message struct{ ID, Text string }

// ToolState is a tool call with everything that was said about it merged.
type ToolState struct {
	ID, Title, Kind, Status, Name string
	Locations                     []Location
	Content                       []ToolContent
	RawInput, RawOutput           json.RawMessage
	Output                        string // the end of its output, as far as the agent shows it
}

// Rejection is a question that was answered with something else than yes.
type Rejection struct {
	Ref    Ref
	Title  string
	Routed string
}

// Summary is a transcript at some moment. It shares nothing with it.
type Summary struct {
	Text         string    // the whole last message: the answer
	Messages     []Message // all of them, in the order of their first words
	Thought      string
	Tools        []ToolState
	ChangedFiles []string // of completed tool calls, each once
	Plan         []PlanEntry
	Context      *ContextUsage
	Rejected     []Rejection
	Unsupported  []string // kinds that have no meaning here, each once
	Truncated    bool
}

// Update adds one update. It fails with OutputLimit when the turn's text is larger than
// anything that is kept whole; the caller then ends the turn.
func (t *Transcript) Update(u *Update) error {
	switch {
	case u.Chunk != nil && u.Kind == AgentMessage:
		return t.message(u.Chunk)
	case u.Chunk != nil && u.Kind == AgentThought:
		if room := maxThought - t.thought.Len(); len(u.Chunk.Text) <= room {
			t.thought.WriteString(u.Chunk.Text)
		} else {
			t.Truncated = true
		}
	case u.Tool != nil:
		t.Tool(*u.Tool)
	case u.Kind == PlanUpdate:
		t.plan = slices.Clone(u.Plan)
	case u.Kind == UsageUpdate && u.Usage != nil:
		usage := *u.Usage
		if usage.Cost == nil && t.usage != nil {
			usage.Cost = t.usage.Cost
		}
		t.usage = &usage
	case u.Kind == UserMessage, u.Kind == CommandsUpdate, u.Kind == ModeUpdate, u.Kind == ConfigUpdate, u.Kind == SessionInfo:
	default:
		t.Note("update " + string(u.Kind))
	}
	return nil
}

// Note records that something had no meaning here.
func (t *Transcript) Note(kind string) {
	kind = clip(kind, 200)
	if len(t.unsupported) < maxUnsupported && !slices.Contains(t.unsupported, kind) {
		t.unsupported = append(t.unsupported, kind)
	}
}

// Reject records a question that was answered with no, or not at all.
func (t *Transcript) Reject(r Rejection) {
	if len(t.rejected) < maxRejected {
		t.rejected = append(t.rejected, r)
	} else {
		t.Truncated = true
	}
}

func (t *Transcript) message(c *Chunk) error {
	if c.ContentType != "text" {
		t.Note("content " + c.ContentType)
		return nil
	}
	if c.Text == "" { // some agents send these; they say nothing
		return nil
	}
	if t.textBytes+len(c.Text) > maxTurnText {
		t.Truncated = true
		return fault.New(OutputLimit, "acp.Transcript", "the agent's answer is longer than %d bytes", maxTurnText)
	}
	t.textBytes += len(c.Text)
	t.groupFor(c.MessageID).text.WriteString(c.Text)
	return nil
}

// groupFor finds the message of an id. Chunks without one belong together as long as no
// other message and no new tool call comes between.
func (t *Transcript) groupFor(id string) *group {
	if id == "" {
		if n := len(t.groups); n > 0 && t.groups[n-1].id == "" && !t.broken {
			return t.groups[n-1]
		}
	} else if i, ok := t.byID[id]; ok {
		return t.groups[i]
	}
	t.broken = false
	t.groups = append(t.groups, &group{id: id})
	if id != "" {
		if t.byID == nil {
			t.byID = make(map[string]int)
		}
		t.byID[id] = len(t.groups) - 1
	}
	return t.groups[len(t.groups)-1]
}

// Tool merges a tool call, or a change of one. An id that was never seen is a new call:
// some agents name a tool first in their permission request.
func (t *Transcript) Tool(u Tool) {
	if u.ID == "" {
		return
	}
	s := t.toolByID[u.ID]
	if s == nil {
		if len(t.tools) >= maxTools {
			t.Truncated = true
			return
		}
		s = &ToolState{ID: u.ID}
		t.tools = append(t.tools, s)
		if t.toolByID == nil {
			t.toolByID = make(map[string]*ToolState)
		}
		t.toolByID[u.ID] = s
		t.broken = true
	}
	set := func(field *string, value *string) {
		if value != nil {
			*field = *value
		}
	}
	set(&s.Title, u.Title)
	set(&s.Kind, u.Kind)
	set(&s.Status, u.Status)
	set(&s.Name, u.Name)
	if u.Locations != nil {
		s.Locations = slices.Clone(*u.Locations)
	}
	s.RawInput = t.bounded(u.RawInput, s.RawInput)
	s.RawOutput = t.bounded(u.RawOutput, s.RawOutput)
	if u.Content != nil {
		s.Content = t.content(*u.Content)
		if text := textOf(s.Content); text != "" {
			s.Output = text
		}
	}
	if u.Output != "" {
		s.Output += u.Output
	}
	if over := len(s.Output) - maxToolOutput; over > 0 {
		s.Output, t.Truncated = strings.ToValidUTF8(s.Output[over:], ""), true
	}
}

func (t *Transcript) bounded(value, old json.RawMessage) json.RawMessage {
	switch {
	case value == nil:
		return old
	case len(value) > maxToolInput:
		t.Truncated = true
		return json.RawMessage(`"[too large]"`)
	}
	return slices.Clone(value)
}

// content keeps what is shown; the raw form of each item is dropped when it is large.
func (t *Transcript) content(items []ToolContent) []ToolContent {
	kept := make([]ToolContent, 0, min(len(items), 1000))
	for _, item := range items[:min(len(items), 1000)] {
		for _, text := range []*string{&item.Text, &item.NewText} {
			if len(*text) > maxToolOutput {
				*text, t.Truncated = clip(*text, maxToolOutput), true
			}
		}
		if item.OldText != nil && len(*item.OldText) > maxToolOutput {
			old := clip(*item.OldText, maxToolOutput)
			item.OldText, t.Truncated = &old, true
		}
		if len(item.Raw) > maxToolInput {
			item.Raw, t.Truncated = nil, true
		}
		kept = append(kept, item)
	}
	return kept
}

func textOf(items []ToolContent) string {
	var b strings.Builder
	for _, item := range items {
		b.WriteString(item.Text)
	}
	return b.String()
}

// Text is the whole last message. Agents that name their messages may also say something
// beside them, such as warnings: then a named message is the answer.
func (t *Transcript) Text() string {
	last := -1
	for i := range t.groups {
		if strings.TrimSpace(t.groups[i].text.String()) == "" {
			continue
		}
		if last < 0 || t.groups[i].id != "" || t.groups[last].id == "" {
			last = i
		}
	}
	if last < 0 {
		return ""
	}
	return t.groups[last].text.String()
}

// Summary copies the transcript as it is now.
func (t *Transcript) Summary() Summary {
	s := Summary{
		Text: t.Text(), Thought: t.thought.String(), Plan: slices.Clone(t.plan), Rejected: slices.Clone(t.rejected),
		Unsupported: slices.Clone(t.unsupported), Truncated: t.Truncated,
	}
	for i := range t.groups {
		s.Messages = append(s.Messages, Message{t.groups[i].id, t.groups[i].text.String()})
	}
	for _, tool := range t.tools {
		s.Tools = append(s.Tools, *tool)
		for _, path := range tool.changed() {
			if !slices.Contains(s.ChangedFiles, path) {
				s.ChangedFiles = append(s.ChangedFiles, path)
			}
		}
	}
	if t.usage != nil {
		usage := *t.usage
		s.Context = &usage
	}
	return s
}

// changed are the files that a completed call has changed, as far as it tells.
func (s *ToolState) changed() []string {
	if s.Status != "completed" {
		return nil
	}
	var paths []string
	for _, c := range s.Content {
		if c.Type == "diff" && c.Path != "" {
			paths = append(paths, c.Path)
		}
	}
	if len(paths) == 0 && (s.Kind == "edit" || s.Kind == "delete" || s.Kind == "move") {
		for _, l := range s.Locations {
			if l.Path != "" {
				paths = append(paths, l.Path)
			}
		}
	}
	return paths
}
