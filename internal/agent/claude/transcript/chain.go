package transcript

import (
	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/agent/claude/known"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/turn"
)

// Source is the source of the observations of this package.
const Source = "transcript"

// The codes of observations; the last three are for an agent that is silent or gone.
const (
	CodeAPIError     = "api_error"
	CodeStopped      = "stop_" // + stop_reason of a final answer that is no normal end
	CodeInterrupted  = "interrupted"
	CodeSuperseded   = "superseded"
	CodeTwoMatches   = "multiple_exact_request_acceptances"
	CodeBroken       = "broken_record"
	CodeNoAnswer     = "end_without_answer"
	CodeTooLong      = "turn_too_long"
	CodeAbsorbed     = "absorbed_into_running_turn"
	CodeIdleNoRecord = "idle_without_record"
	CodeIdleNoEnd    = agent.CodeIdleNoEnd
	CodeDegradedEnd  = "end_by_idle_status"
	CodeEndAtExit    = "end_at_exit"
)

// errorUnknown is what the agent calls an error without a name.
const errorUnknown = "unknown"

// Wanted is how a record's text is recognised as the request.
type Wanted struct {
	Thread    string // "" when any session of the file's directory may be ours
	Exact     string // hash of the text as pasted
	Canonical string // hash of its canonical form
	Prompt    string // uuid of its record, when that is known; the hashes are empty then
}

func (w Wanted) matches(text string) bool {
	return w.Canonical != "" && ids.TextHash(Canonical(text)) == w.Canonical ||
		w.Exact != "" && ids.TextHash(text) == w.Exact
}

// is reports whether a person's prompt is the request.
func (w Wanted) is(r Record, text string) bool {
	return w.Prompt != "" && r.UUID == w.Prompt || w.matches(text)
}

// node is what is kept of a record of our turn.
type node struct {
	parent string
	rec    Record
}

// Chain follows one turn through one transcript. It is pure: records go in, in file order,
// and observations come out. Records of several turns of one batch are written in any
// order, children before their parents too, so that membership is a matter of parentUuid
// and never of position.
type Chain struct {
	want Wanted

	prompt   string // uuid of our prompt, "" before acceptance
	promptID string
	nodes    map[string]node   // records of our turn, by uuid
	orphans  map[string][]node // records that wait for their parent, by parent
	held     int               // number of nodes and orphans
	kids     map[string]int    // number of records of our turn below a record
	work     map[string]int    // the same without system notes
	lastText string            // uuid of the newest assistant record of our turn
	endSeen  string            // uuid of an end that came while a tool call was open
	tools    map[string]bool   // tool_use ids: true while unresolved

	superseded bool // another prompt was submitted before our turn ended
	dead       bool // the evidence cannot be trusted; nothing more is concluded
	final      bool // a final observation was emitted
}

// New returns the chain of the turn whose request is wanted.
func New(w Wanted) *Chain {
	return &Chain{
		want: w, nodes: map[string]node{}, orphans: map[string][]node{}, tools: map[string]bool{},
		kids: map[string]int{}, work: map[string]int{},
	}
}

// Accepted reports whether the request was found.
func (c *Chain) Accepted() bool { return c.prompt != "" }

// Prompt returns the uuid of the request's record, "" before acceptance.
func (c *Chain) Prompt() string { return c.prompt }

// Superseded reports whether another prompt came before the end of the turn was seen.
func (c *Chain) Superseded() bool { return c.superseded }

// Open reports whether the chain still waits for the end of its turn.
func (c *Chain) Open() bool { return !c.dead && !c.final }

// Feed takes one record and returns what it proves.
func (c *Chain) Feed(r Record, at turn.LogMark) []turn.Observation {
	if !c.Open() || c.want.Thread != "" && r.SessionID != "" && r.SessionID != c.want.Thread {
		return nil
	}
	if r.Type == known.RecQueue {
		return nil // parked behind a running turn, or taken from there: a prompt record says what became of it
	}
	var out []turn.Observation
	if text, ok := r.humanPrompt(); ok {
		out = append(out, c.onPrompt(r, text, at, "")...)
	} else if text, ok := r.absorbedPrompt(); ok && c.want.matches(text) {
		out = append(out, c.onPrompt(r, text, at, CodeAbsorbed)...)
	}
	if r.UUID == "" || r.IsSidechain || !c.Open() {
		return out
	}
	if c.held >= known.MaxChainRecords {
		return append(out, c.Poison(at, CodeTooLong, "the turn has more records than can be followed"))
	}
	c.held++
	n := node{parent: r.parent(), rec: slim(r)}
	if r.UUID == c.prompt || c.member(n.parent) {
		return append(out, c.join(n, at)...)
	}
	c.orphans[n.parent] = append(c.orphans[n.parent], n)
	return out
}

// slim drops what the graph does not need.
func slim(r Record) Record {
	r.Attachment = attachment{}
	if r.Type != known.RecAssistant && !r.interrupt() {
		for i := range r.Message.Content.blocks {
			r.Message.Content.blocks[i].Text = ""
		}
		r.Message.Content.text = ""
	}
	return r
}

func (c *Chain) member(uuid string) bool {
	_, ok := c.nodes[uuid]
	return ok
}

// onPrompt handles a prompt of a person: ours, the second one like ours, or another one.
func (c *Chain) onPrompt(r Record, text string, at turn.LogMark, code string) []turn.Observation {
	if !c.want.is(r, text) {
		if c.Accepted() && (r.PromptID == "" || r.PromptID != c.promptID) {
			c.superseded = true
		}
		return nil
	}
	if c.Accepted() {
		if r.UUID == c.prompt {
			return nil
		}
		return []turn.Observation{c.Poison(at, CodeTwoMatches, "the request stands in the transcript twice")}
	}
	if r.UUID == "" {
		return nil
	}
	c.prompt, c.promptID = r.UUID, r.PromptID
	o := c.Observe(turn.ObsAccepted, at)
	if o.ThreadID = r.SessionID; o.ThreadID == "" {
		o.ThreadID = c.want.Thread
	}
	o.Code = code
	return []turn.Observation{o}
}

// join adds a record to our turn, and the records that waited for it, parents first.
func (c *Chain) join(n node, at turn.LogMark) []turn.Observation {
	var out []turn.Observation
	for todo := []node{n}; len(todo) > 0 && c.Open(); {
		n, todo = todo[0], todo[1:]
		if c.member(n.rec.UUID) {
			continue // the same record twice; a loop cannot arise
		}
		c.nodes[n.rec.UUID] = n
		c.kids[n.parent]++
		if n.rec.Type != known.RecSystem {
			c.work[n.parent]++
		}
		out = append(out, c.conclude(n, at)...)
		todo = append(todo, c.orphans[n.rec.UUID]...)
		delete(c.orphans, n.rec.UUID)
	}
	if c.Open() && len(out) == 0 {
		out = append(out, c.retryEnd(at)...)
	}
	return out
}

// conclude says what one record of our turn proves.
func (c *Chain) conclude(n node, at turn.LogMark) []turn.Observation {
	r := n.rec
	switch r.Type {
	case known.RecAssistant:
		c.lastText = r.UUID
		for _, b := range r.Message.Content.blocks {
			if b.Type == known.StopToolUse && b.ID != "" {
				if _, seen := c.tools[b.ID]; !seen {
					c.tools[b.ID] = true
				}
			}
		}
	case known.RecUser:
		for _, b := range r.Message.Content.blocks {
			if b.ToolUseID != "" {
				c.tools[b.ToolUseID] = false
			}
		}
		if r.interrupt() {
			o := c.Observe(turn.ObsInterrupted, at)
			o.Code, o.Detail = CodeInterrupted, "a person interrupted the turn"
			c.final = true
			return []turn.Observation{o}
		}
	case known.RecSystem:
		if r.Subtype == known.SubTurnDuration {
			return c.end(n, at)
		}
	}
	return nil
}

// retryEnd looks again at an end that came before the result of a parallel tool call.
func (c *Chain) retryEnd(at turn.LogMark) []turn.Observation {
	if c.endSeen == "" || c.kids[c.endSeen] > 0 {
		return nil
	}
	return c.end(c.nodes[c.endSeen], at)
}

// end handles the turn_duration record of our turn. Pending background agents will wake
// the turn again, and an unresolved tool call proves that it is not over.
func (c *Chain) end(n node, at turn.LogMark) []turn.Observation {
	if n.rec.PendingAgents > 0 || n.rec.PendingWorkflows > 0 {
		return nil
	}
	if c.unresolved() {
		c.endSeen = n.rec.UUID
		return nil
	}
	last, ok := c.answerAbove(n.parent)
	if !ok {
		return []turn.Observation{c.Poison(at, CodeNoAnswer, "the turn ended and has no answer")}
	}
	return []turn.Observation{c.finish(last, at, "")}
}

func (c *Chain) unresolved() bool {
	for _, open := range c.tools {
		if open {
			return true
		}
	}
	return false
}

// answerAbove walks up from uuid to the nearest answer of the model and stops at our
// prompt.
func (c *Chain) answerAbove(uuid string) (Record, bool) {
	for range len(c.nodes) + 1 {
		n, ok := c.nodes[uuid]
		if !ok {
			return Record{}, false
		}
		if n.rec.Type == known.RecAssistant {
			return n.rec, true
		}
		if uuid == c.prompt {
			return Record{}, false
		}
		uuid = n.parent
	}
	return Record{}, false
}

// finish makes the final observation from the last answer.
func (c *Chain) finish(last Record, at turn.LogMark, code string) turn.Observation {
	c.final = true
	text := c.answerText(last)
	o := c.Observe(turn.ObsCompleted, at)
	o.Code = code
	switch reason := last.Message.StopReason; {
	case last.IsAPIError:
		o.Kind, o.Code, o.Detail = turn.ObsFailed, CodeAPIError, OneLine(text)
		if last.Error != "" && last.Error != errorUnknown {
			o.Code = string(last.Error)
		}
		if last.APIErrorStatus != "" {
			o.Detail = "status " + string(last.APIErrorStatus) + ": " + o.Detail
		}
		o.Detail = OneLine(o.Detail)
		return o
	case reason != "" && reason != known.StopEndTurn && reason != known.StopSequence && reason != known.StopToolUse:
		o.Kind, o.Code = turn.ObsFailed, CodeStopped+OneLine(reason)
		o.Detail = "the answer ended by " + OneLine(reason)
		return o
	}
	o.FullBytes = len(text)
	o.Text, o.Truncated = capText(text)
	return o
}

// answerText joins the text blocks of the message that last belongs to. The agent writes
// one record per block; those of one message share its id.
func (c *Chain) answerText(last Record) string {
	var parts []string
	for r, uuid := last, last.UUID; ; {
		if t := r.Message.Content.joined("\n\n"); t != "" {
			parts = append(parts, t)
		}
		n := c.nodes[uuid]
		up, ok := c.nodes[n.parent]
		if !ok || up.rec.Type != known.RecAssistant || up.rec.Message.ID == "" || up.rec.Message.ID != last.Message.ID ||
			len(parts) > len(c.nodes) {
			break
		}
		r, uuid = up.rec, n.parent
	}
	out := ""
	for i := len(parts) - 1; i >= 0; i-- {
		if out != "" {
			out += "\n\n"
		}
		out += parts[i]
	}
	return out
}

// EndByAnswer ends the turn by its newest answer when that is whole: the model ended it,
// nothing follows it and no tool call is open. It is for an agent that is gone, or whose
// version is not known to write the end; code says which.
func (c *Chain) EndByAnswer(code string) (turn.Observation, bool) {
	n, ok := c.nodes[c.lastText]
	if !c.Open() || !ok || c.unresolved() || c.work[c.lastText] > 0 {
		return turn.Observation{}, false
	}
	if n.rec.IsAPIError || n.rec.Message.StopReason == known.StopEndTurn && n.rec.Message.Model != known.ModelSynthetic {
		return c.finish(n.rec, turn.LogMark{}, code), true
	}
	return turn.Observation{}, false
}

// EndsInError reports that the newest words of the turn are the failure of its request. It
// is written when the agent has given up; 2.1.332 writes no further end then, 2.1.197 and
// 2.1.265 do.
func (c *Chain) EndsInError() bool {
	n, ok := c.nodes[c.lastText]
	return ok && n.rec.IsAPIError
}

// Settle is called when no record has come for a while after another prompt was seen: an
// end of our turn would have been in the same batch.
func (c *Chain) Settle() []turn.Observation {
	if !c.Open() || !c.Accepted() || !c.superseded {
		return nil
	}
	c.final = true
	o := c.Observe(turn.ObsInterrupted, turn.LogMark{})
	o.Code, o.Detail = CodeSuperseded, "another prompt was submitted before the turn ended"
	return []turn.Observation{o}
}

// Poison ends all conclusions from this file: what follows cannot be attributed.
func (c *Chain) Poison(at turn.LogMark, code, detail string) turn.Observation {
	c.dead = true
	o := c.Observe(turn.ObsTrouble, at)
	o.Code, o.Detail = code, detail
	return o
}

// Observe returns an observation of the turn that begins at the mark.
func (c *Chain) Observe(k turn.ObservationKind, at turn.LogMark) turn.Observation {
	o := turn.Observation{Kind: k, Source: Source, ThreadID: c.want.Thread, NativeTurnID: c.prompt}
	if at.Path != "" {
		o.Log = &at
	}
	return o
}
