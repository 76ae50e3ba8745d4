package fakemodel

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// messages is the Anthropic Messages API as Claude Code uses it.
func (s *Server) messages(w http.ResponseWriter, r *http.Request) {
	body, err := readBody(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	t := messagesTalk(arr(body["messages"]))
	p, kind := messagesPlan(body, t)
	a := &messagesReply{reply: s.start(w, r, "messages", kind, body, t, p), model: body["model"]}
	if a.refused(a.failure) {
		return
	}
	if streaming, _ := body["stream"].(bool); !streaming {
		a.whole()
		return
	}
	a.open()
	a.run()
}

func messagesTalk(list []any) talk {
	var t talk
	for _, it := range list {
		m := dict(it)
		if str(m["role"]) != "user" {
			continue
		}
		for _, part := range arr(m["content"]) {
			if b := dict(part); str(b["type"]) == "tool_result" {
				t.result(b["content"])
			}
		}
		t.said(texts(m["content"]))
	}
	return t
}

// messagesPlan tells the conversation apart from the agent's own side requests.
func messagesPlan(body obj, t talk) (p plan, kind string) {
	format := dict(dict(body["output_config"])["format"])
	switch {
	case str(format["type"]) == "json_schema":
		return plan{text: encode(conform(dict(format["schema"])))}, "schema"
	case len(arr(body["tools"])) == 0:
		return plan{text: "ok"}, "side"
	case strings.HasPrefix(strings.TrimSpace(t.user), "[SUGGESTION MODE"):
		return plan{}, "side"
	}
	return choose(t), "main"
}

type messagesReply struct {
	*reply
	model any
	index int
}

var errorTypes = map[int]string{400: "invalid_request_error", 401: "authentication_error", 403: "permission_error",
	404: "not_found_error", 413: "request_too_large", 429: "rate_limit_error", 529: "overloaded_error"}

func (a *messagesReply) failure(status int) obj {
	kind := errorTypes[status]
	if kind == "" {
		kind = "api_error"
	}
	return obj{"type": "error", "error": obj{"type": kind, "message": fmt.Sprintf("fake failure %d", status)}, "request_id": a.id("req")}
}

func (a *messagesReply) message(content []any, stop any) obj {
	return obj{"id": a.id("msg"), "type": "message", "role": "assistant", "model": a.model, "content": content,
		"stop_reason": stop, "stop_sequence": nil, "usage": obj{"input_tokens": 100 + a.req.Seq, "cache_creation_input_tokens": 0,
			"cache_read_input_tokens": 0, "output_tokens": 1, "service_tier": "standard"}}
}

// whole answers without a stream.
func (a *messagesReply) whole() {
	content, stop := []any{obj{"type": "text", "text": strings.Join(a.p.Pieces(a.p.text), "")}}, "end_turn"
	if a.p.call != nil {
		name, args := resolve(a.p.call, a.req.Tools)
		content, stop = []any{obj{"type": "tool_use", "id": a.id("toolu"), "name": name, "input": json.RawMessage(args)}}, "tool_use"
	}
	a.w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(a.w).Encode(a.message(content, stop))
	a.final()
}

func (a *messagesReply) ev(kind string, o obj) bool {
	o["type"] = kind
	return a.event(kind, o)
}

func (a *messagesReply) run() {
	a.ev("message_start", obj{"message": a.message([]any{}, nil)})
	a.ev("ping", obj{})
	if !a.pause() {
		return
	}
	if a.p.FailEv != "" {
		a.ev("error", obj{"error": obj{"type": "overloaded_error", "message": a.p.FailEv}})
		a.final()
		return
	}
	if a.p.Think != "" {
		a.block(obj{"type": "thinking", "thinking": "", "signature": ""},
			obj{"type": "thinking_delta", "thinking": a.p.Think}, obj{"type": "signature_delta", "signature": "ZmFrZQ=="})
	}
	stop := "end_turn"
	if a.p.call != nil {
		if a.p.Pre != "" && !a.text([]string{a.p.Pre}, 0) {
			return
		}
		name, args := resolve(a.p.call, a.req.Tools)
		a.block(obj{"type": "tool_use", "id": a.id("toolu"), "name": name, "input": obj{}},
			obj{"type": "input_json_delta", "partial_json": args})
		stop = "tool_use"
	} else if !a.text(a.p.Pieces(a.p.text), a.p.Every) {
		return
	}
	if !a.linger() {
		return
	}
	a.ev("message_delta", obj{"delta": obj{"stop_reason": stop, "stop_sequence": nil}, "usage": obj{"output_tokens": 10}})
	a.ev("message_stop", obj{})
	a.final()
}

// block sends a content block with its deltas.
func (a *messagesReply) block(start obj, deltas ...obj) {
	a.ev("content_block_start", obj{"index": a.index, "content_block": start})
	for _, d := range deltas {
		a.ev("content_block_delta", obj{"index": a.index, "delta": d})
	}
	a.ev("content_block_stop", obj{"index": a.index})
	a.index++
}

func (a *messagesReply) text(pieces []string, every time.Duration) bool {
	a.ev("content_block_start", obj{"index": a.index, "content_block": obj{"type": "text", "text": ""}})
	if !a.chunks(pieces, every, func(piece string) bool {
		return a.ev("content_block_delta", obj{"index": a.index, "delta": obj{"type": "text_delta", "text": piece}})
	}) {
		return false
	}
	ok := a.ev("content_block_stop", obj{"index": a.index})
	a.index++
	return ok
}
