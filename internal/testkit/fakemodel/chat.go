package fakemodel

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// chat is the OpenAI Chat Completions API as OpenCode uses it.
func (s *Server) chat(w http.ResponseWriter, r *http.Request) {
	body, err := readBody(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var tools []any
	for _, tool := range arr(body["tools"]) {
		tools = append(tools, dict(dict(tool)["function"]))
	}
	body["tools"] = tools
	t := chatTalk(arr(body["messages"]))
	p, kind := choose(t), "main"
	if len(tools) == 0 {
		p, kind = plan{text: "ok"}, "side"
	}
	a := &chatReply{reply: s.start(w, r, "chat", kind, body, t, p), model: body["model"]}
	if a.refused(func(status int) obj {
		return obj{"error": obj{"message": fmt.Sprintf("fake failure %d", status), "type": "fake_error", "code": nil}}
	}) {
		return
	}
	if streaming, _ := body["stream"].(bool); !streaming {
		w.Header().Set("Content-Type", "application/json")
		message, finish := a.message()
		json.NewEncoder(w).Encode(obj{"id": a.id("chatcmpl"), "object": "chat.completion", "created": 1700000000, "model": a.model,
			"choices": []any{obj{"index": 0, "message": message, "finish_reason": finish}}, "usage": chatUsage})
		a.final()
		return
	}
	a.open()
	a.run()
}

var chatUsage = obj{"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}

func chatTalk(list []any) talk {
	var t talk
	for _, it := range list {
		m := dict(it)
		switch str(m["role"]) {
		case "user":
			t.said(texts(m["content"]))
		case "tool":
			t.result(m["content"])
		}
	}
	return t
}

type chatReply struct {
	*reply
	model any
}

func (a *chatReply) message() (message obj, finish string) {
	message = obj{"role": "assistant", "content": strings.Join(a.p.Pieces(a.p.text), "")}
	if a.p.call == nil {
		return message, "stop"
	}
	name, args := resolve(a.p.call, a.req.Tools)
	message["content"] = a.p.Pre
	message["tool_calls"] = []any{obj{"index": 0, "id": a.id("call"), "type": "function", "function": obj{"name": name, "arguments": args}}}
	return message, "tool_calls"
}

func (a *chatReply) delta(delta obj, finish any) bool {
	return a.event("", obj{"id": a.id("chatcmpl"), "object": "chat.completion.chunk", "created": 1700000000, "model": a.model,
		"choices": []any{obj{"index": 0, "delta": delta, "finish_reason": finish}}})
}

func (a *chatReply) run() {
	a.delta(obj{"role": "assistant", "content": ""}, nil)
	if !a.pause() {
		return
	}
	finish := "stop"
	if a.p.call != nil {
		message, why := a.message()
		a.delta(message, nil)
		finish = why
	} else if !a.chunks(a.p.Pieces(a.p.text), a.p.Every, func(piece string) bool { return a.delta(obj{"content": piece}, nil) }) {
		return
	}
	if !a.linger() {
		return
	}
	a.delta(obj{}, finish)
	a.event("", obj{"id": a.id("chatcmpl"), "object": "chat.completion.chunk", "created": 1700000000, "model": a.model, "choices": []any{}, "usage": chatUsage})
	io.WriteString(a.w, "data: [DONE]\n\n")
	a.flush()
	a.final()
}
