package fakemodel

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/agent-knock-knock/akk/internal/testkit/fakemodel/script"
)

// responses is the OpenAI Responses API, streaming, as Codex uses it.
func (s *Server) responses(w http.ResponseWriter, r *http.Request) {
	body, err := readBody(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	t := responsesTalk(body["input"])
	p, kind := choose(t), "main"
	if f := dict(dict(body["text"])["format"]); str(f["type"]) == "json_schema" {
		p, kind = plan{text: encode(conform(dict(f["schema"])))}, "schema"
	}
	a := &responsesReply{reply: s.start(w, r, "responses", kind, body, t, p), model: body["model"]}
	refused := a.refused(func(status int) obj {
		return obj{"error": obj{"message": fmt.Sprintf("fake failure %d", status), "type": "server_error", "code": nil, "param": nil}}
	})
	if !refused {
		a.open()
		a.run()
	}
}

func responsesTalk(input any) talk {
	t := talk{user: str(input)}
	for _, it := range arr(input) {
		m := dict(it)
		switch str(m["type"]) {
		case "message", "":
			if str(m["role"]) == "user" {
				t.said(texts(m["content"]))
			}
		case "function_call_output", "custom_tool_call_output", "local_shell_call_output":
			t.result(m["output"])
		}
	}
	return t
}

type responsesReply struct {
	*reply
	model any
	seq   int // sequence_number
	index int // output_index
}

func (a *responsesReply) ev(kind string, o obj) bool {
	o["type"], o["sequence_number"] = kind, a.seq
	a.seq++
	return a.event(kind, o)
}

func (a *responsesReply) response(status string) obj {
	return obj{"id": a.id("resp"), "object": "response", "created_at": time.Now().Unix(), "status": status, "model": a.model, "output": []any{}}
}

func (a *responsesReply) run() {
	a.ev("response.created", obj{"response": a.response("in_progress")})
	a.ev("response.in_progress", obj{"response": a.response("in_progress")})
	if !a.pause() {
		return
	}
	if a.p.FailEv != "" {
		f := a.response("failed")
		f["error"] = obj{"code": "server_error", "message": a.p.FailEv}
		a.ev("response.failed", obj{"response": f})
		a.final()
		return
	}
	if a.p.Think != "" {
		a.think()
	}
	if a.p.call != nil {
		if a.p.Pre != "" && !a.message([]string{a.p.Pre}, 0, "commentary") {
			return
		}
		a.call()
	} else if !a.message(a.p.Pieces(a.p.text), a.p.Every, "final_answer") {
		return
	}
	if !a.linger() {
		return
	}
	done := a.response("completed")
	in := 1000 + a.req.Seq
	done["usage"] = obj{"input_tokens": in, "input_tokens_details": obj{"cached_tokens": 0}, "output_tokens": 10,
		"output_tokens_details": obj{"reasoning_tokens": 0}, "total_tokens": in + 10}
	a.ev("response.completed", obj{"response": done})
	a.final()
}

func (a *responsesReply) think() {
	text := a.p.Think
	item := obj{"type": "reasoning", "id": a.id("rs"), "summary": []any{}, "encrypted_content": nil}
	a.ev("response.output_item.added", obj{"output_index": a.index, "item": item})
	at := func(o obj) obj {
		o["item_id"], o["output_index"], o["summary_index"] = item["id"], a.index, 0
		return o
	}
	a.ev("response.reasoning_summary_part.added", at(obj{"part": obj{"type": "summary_text", "text": ""}}))
	a.ev("response.reasoning_summary_text.delta", at(obj{"delta": text}))
	a.ev("response.reasoning_summary_text.done", at(obj{"text": text}))
	item["summary"] = []any{obj{"type": "summary_text", "text": text}}
	a.ev("response.output_item.done", obj{"output_index": a.index, "item": item})
	a.index++
}

func (a *responsesReply) message(pieces []string, every time.Duration, phase string) bool {
	id := fmt.Sprintf("%s_%d", a.id("msg"), a.index)
	item := obj{"type": "message", "id": id, "role": "assistant", "status": "in_progress", "content": []any{}, "phase": phase}
	at := func(o obj) obj {
		o["item_id"], o["output_index"], o["content_index"] = id, a.index, 0
		return o
	}
	a.ev("response.output_item.added", obj{"output_index": a.index, "item": item})
	a.ev("response.content_part.added", at(obj{"part": obj{"type": "output_text", "text": "", "annotations": []any{}}}))
	full := ""
	if !a.chunks(pieces, every, func(piece string) bool {
		full += piece
		return a.ev("response.output_text.delta", at(obj{"delta": piece}))
	}) {
		return false
	}
	part := obj{"type": "output_text", "text": full, "annotations": []any{}}
	a.ev("response.output_text.done", at(obj{"text": full}))
	a.ev("response.content_part.done", at(obj{"part": part}))
	item["status"], item["content"] = "completed", []any{part}
	ok := a.ev("response.output_item.done", obj{"output_index": a.index, "item": item})
	a.index++
	return ok
}

func (a *responsesReply) call() {
	name, args := resolve(a.p.call, a.req.Tools)
	at := func(item obj, key string) obj { return obj{"item_id": item["id"], "output_index": a.index, key: args} }
	if a.p.call.Kind == script.Custom {
		item := obj{"type": "custom_tool_call", "id": a.id("ctc"), "call_id": a.id("call"), "name": name, "input": args, "status": "completed"}
		a.ev("response.output_item.added", obj{"output_index": a.index, "item": item})
		a.ev("response.custom_tool_call_input.delta", at(item, "delta"))
		a.ev("response.custom_tool_call_input.done", at(item, "input"))
		a.ev("response.output_item.done", obj{"output_index": a.index, "item": item})
		return
	}
	item := obj{"type": "function_call", "id": a.id("fc"), "call_id": a.id("call"), "name": name, "arguments": "", "status": "in_progress"}
	if namespace, tool, ok := strings.Cut(name, "/"); ok {
		item["namespace"], item["name"] = namespace, tool
	}
	a.ev("response.output_item.added", obj{"output_index": a.index, "item": item})
	a.ev("response.function_call_arguments.delta", at(item, "delta"))
	a.ev("response.function_call_arguments.done", at(item, "arguments"))
	item["arguments"], item["status"] = args, "completed"
	a.ev("response.output_item.done", obj{"output_index": a.index, "item": item})
}
