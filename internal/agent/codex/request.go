package codex

import (
	"encoding/json"
	"fmt"

	"github.com/agent-knock-knock/akk/internal/agent/codex/appserver"
	"github.com/agent-knock-knock/akk/internal/agent/codex/known"
	"github.com/agent-knock-knock/akk/internal/agent/codex/rollout"
	"github.com/agent-knock-knock/akk/internal/agent/codex/screen"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/redact"
	"github.com/agent-knock-knock/akk/internal/turn"
)

// request is what is read of a request of the server to its clients.
type request struct {
	ItemID      string            `json:"itemId"`
	TurnID      string            `json:"turnId"`
	Reason      string            `json:"reason"`
	Command     string            `json:"command"`
	Cwd         string            `json:"cwd"`
	GrantRoot   string            `json:"grantRoot"`
	Message     string            `json:"message"`
	Server      string            `json:"serverName"`
	Decisions   []json.RawMessage `json:"availableDecisions"`
	Permissions json.RawMessage   `json:"permissions"`
	Meta        struct {
		Approval string          `json:"codex_approval_kind"`
		Tool     string          `json:"tool_name"`
		Params   json.RawMessage `json:"tool_params"`
	} `json:"_meta"`
	Questions []struct {
		Question string `json:"question"`
		Secret   bool   `json:"isSecret"`
		Options  []struct {
			Label string `json:"label"`
		} `json:"options"`
	} `json:"questions"`
}

// requestPrompt describes a request of the server. Only answers that grant this one
// request, with a known form, make it approvable.
func requestPrompt(at turn.Endpoint, m appserver.Message, req known.Request) *turn.Prompt {
	var p request
	_ = json.Unmarshal(m.Params, &p) // what is missing is not shown
	out := &turn.Prompt{Kind: turn.PromptApproval, Title: req.Title, RequestID: string(m.ID),
		Fingerprint: ids.TextHash(ids.Derive(Kind, at.Key(), m.Method, string(m.ID), string(m.Params))),
		Excerpt:     rollout.Clip(redact.String(firstOf(p.Command, p.Message, p.GrantRoot, string(p.Permissions))), screen.MaxExcerpt),
	}
	var whole bool
	out.Detail, whole = redact.Whole(joinNonEmpty(p.Server, p.Meta.Tool, string(p.Meta.Params), p.Reason, p.Message, p.Command,
		string(p.Permissions), p.Cwd), screen.MaxExcerpt)
	switch {
	case req.Question:
		p.ask(out)
		return out
	case req.Form && p.Meta.Approval != known.MCPApproval:
		out.Kind = turn.PromptQuestion
		out.Reason, out.Manual = "an MCP server asks", "a form of an MCP server is filled in by a person"
		return out
	case req.Form:
		out.Title = rollout.OneLine(p.Message)
	}
	for _, w := range p.words(req) {
		o := turn.PromptOption{Label: w, OneTime: w == req.Approve, Reject: w == req.Reject || w == known.Decline}
		if !known.PersistentDecisions[w] {
			o.Key = w
		}
		out.Options = append(out.Options, o)
		out.Approvable = out.Approvable || o.OneTime && req.Approve != ""
	}
	switch {
	case !out.Approvable:
		out.Reason = "no answer is known that grants this request alone"
	case p.GrantRoot != "":
		out.Approvable, out.Reason = false, "it asks for a folder for the rest of the session"
	case !whole:
		out.Approvable, out.Reason = false, screen.TooLong
	}
	return out
}

// words are the decisions that the request takes.
func (p request) words(req known.Request) []string {
	var words []string
	for _, d := range p.Decisions {
		words = append(words, firstOf(rollout.StringOf(d), rollout.ErrorCode(d)))
	}
	if len(words) == 0 && req.Approve != "" {
		words = []string{req.Approve, req.Reject}
	}
	return words
}

// ask describes a questionnaire as a whole. Its steps are answered in the terminal.
func (p request) ask(out *turn.Prompt) {
	out.Kind, out.Reason = turn.PromptQuestion, "a question is answered in the terminal"
	for i, q := range p.Questions {
		if q.Secret {
			out.Manual = "it asks for a secret"
		}
		if i > 0 {
			continue
		}
		out.Title = rollout.OneLine(q.Question)
		out.Detail = fmt.Sprintf("Question 1/%d", len(p.Questions))
		for _, o := range q.Options {
			out.Options = append(out.Options, turn.PromptOption{Label: rollout.OneLine(o.Label)})
		}
	}
}

// answerTo is the result that gives decision to a request. The forms were seen on 0.171.
func answerTo(m appserver.Message, req known.Request, decision string) (json.RawMessage, error) {
	var p request
	if err := json.Unmarshal(m.Params, &p); err != nil {
		return nil, err
	}
	switch {
	case req.Form:
		content := json.RawMessage("null")
		if decision == req.Approve {
			content = json.RawMessage("{}")
		}
		return json.Marshal(map[string]any{"action": decision, "content": content, "_meta": nil})
	case req.Permissions:
		granted := json.RawMessage("{}")
		if decision == req.Approve {
			granted = p.Permissions
		}
		return json.Marshal(map[string]any{"permissions": granted, "scope": known.ScopeTurn})
	}
	return json.Marshal(map[string]string{"decision": decision})
}

func firstOf(s ...string) string {
	for _, v := range s {
		if v != "" {
			return v
		}
	}
	return ""
}

func joinNonEmpty(s ...string) string {
	out := ""
	for _, v := range s {
		if v == "" {
			continue
		}
		if out != "" {
			out += " · "
		}
		out += v
	}
	return out
}
