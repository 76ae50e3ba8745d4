package fakeacp

import (
	"context"
	"encoding/json"
	"strings"
)

// turn is one running prompt.
type turn struct {
	*agent
	ctx    context.Context // ends with session/cancel
	s      *session
	id     raw
	text   string
	stop   string
	usage  any
	fail   *rpc
	silent bool
	late   bool
	twice  bool
	said   strings.Builder
	// asksLate: a permission is asked after the turn's end.
	asksLate bool
}

func (a *agent) prompt(f frame) {
	s := a.session(f.Params)
	if s == nil {
		a.send(object{"jsonrpc": "2.0", "id": f.ID, "error": rpc{Code: -32602, Message: "unknown session"}})
		return
	}
	if !a.mayWork() {
		a.send(object{"jsonrpc": "2.0", "id": f.ID, "error": rpc{Code: -32000, Message: "Authentication required"}})
		return
	}
	var p struct {
		Prompt []struct{ Type, Text string }
	}
	_ = json.Unmarshal(f.Params, &p)
	var text strings.Builder
	for _, block := range p.Prompt {
		text.WriteString(block.Text)
	}
	ctx, cancel := context.WithCancel(a.ctx)
	a.mu.Lock()
	s.cancel = cancel
	a.mu.Unlock()
	t := &turn{agent: a, ctx: ctx, s: s, id: f.ID, text: text.String(), stop: "end_turn"}
	a.remember(s, "user", t.text)
	a.turns.Go(func() {
		defer cancel()
		t.run()
	})
}

func (t *turn) run() {
	for _, step := range split(t.text) {
		step.run(t, step.args)
		if t.ctx.Err() != nil && t.fail == nil {
			t.stop = "cancelled"
			break
		}
		if t.fail != nil || t.silent {
			break
		}
	}
	if t.agent.ctx.Err() != nil || t.silent {
		return
	}
	t.remember(t.s, "agent", t.said.String())
	answers := 1
	if t.twice {
		answers = 2
	}
	for range answers {
		if t.fail != nil {
			t.send(object{"jsonrpc": "2.0", "id": t.id, "error": t.fail})
			continue
		}
		result := object{"stopReason": t.stop}
		if t.usage != nil {
			result["usage"] = t.usage
		}
		t.send(object{"jsonrpc": "2.0", "id": t.id, "result": result})
	}
	if t.late && pause(t.agent.ctx, lateAfter) {
		t.chunk(t.s, "agent", "late", "late text")
	}
	if t.asksLate && pause(t.agent.ctx, lateAfter) {
		_, reply := t.ask("session/request_permission", object{"sessionId": t.s.id, "options": usualOptions, "toolCall": object{"toolCallId": "late", "title": "late"}})
		t.await(reply)
	}
}

// step is one instruction of a prompt.
type step struct {
	run  func(t *turn, args string)
	args string
}

// split reads the prompt: steps that begin with a keyword, or plain text to echo.
func split(text string) []step {
	var steps []step
	for _, part := range strings.Split(text, ";") {
		word, args, _ := strings.Cut(strings.TrimSpace(part), " ")
		run := keywords[word]
		if run == nil {
			if len(steps) == 0 {
				return []step{{echo, text}}
			}
			run, args = say, part
		}
		steps = append(steps, step{run, strings.TrimSpace(args)})
	}
	return steps
}

// say adds text to the current message.
func say(t *turn, text string) { t.message("m1", text) }

func echo(t *turn, text string) { t.message("m1", "echo:"+text) }

func (t *turn) message(id, text string) {
	t.said.WriteString(text)
	t.chunk(t.s, "agent", id, text)
}

// chunk sends a piece of a message of user, agent or the agent's thought.
func (a *agent) chunk(s *session, who, id, text string) {
	kind := map[string]string{"user": "user_message_chunk", "agent": "agent_message_chunk", "thought": "agent_thought_chunk"}[who]
	update := object{"sessionUpdate": kind, "content": object{"type": "text", "text": text}}
	if id != "" {
		update["messageId"] = id
	}
	a.update(s, update)
}
