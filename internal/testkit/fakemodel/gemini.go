package fakemodel

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// gemini is the generateContent API as Gemini CLI uses it, streaming or not.
func (s *Server) gemini(w http.ResponseWriter, r *http.Request) {
	model, method, _ := strings.Cut(r.PathValue("call"), ":")
	body, err := readBody(r)
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	case method == "countTokens":
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(obj{"totalTokens": 100})
		return
	case method != "generateContent" && method != "streamGenerateContent":
		http.NotFound(w, r)
		return
	}
	body["model"] = model
	var tools []any
	for _, group := range arr(body["tools"]) {
		tools = append(tools, arr(dict(group)["functionDeclarations"])...)
	}
	body["tools"] = tools
	t := geminiTalk(arr(body["contents"]))
	p, kind := geminiPlan(dict(body["generationConfig"]), tools, t)
	a := &geminiReply{reply: s.start(w, r, "gemini", kind, body, t, p)}
	if a.refused(func(status int) obj {
		return obj{"error": obj{"code": status, "message": fmt.Sprintf("fake failure %d", status), "status": "INTERNAL"}}
	}) {
		return
	}
	if method == "generateContent" {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(a.candidate(obj{"text": strings.Join(a.p.Pieces(a.p.text), "")}, "STOP"))
		a.final()
		return
	}
	a.open()
	a.run()
}

func geminiTalk(list []any) talk {
	var t talk
	for _, it := range list {
		m := dict(it)
		if str(m["role"]) == "model" {
			continue
		}
		for _, part := range arr(m["parts"]) {
			if response := dict(dict(part)["functionResponse"]); response != nil {
				t.result(encode(response["response"]))
			}
		}
		t.said(texts(m["parts"]))
	}
	return t
}

func geminiPlan(config obj, tools []any, t talk) (p plan, kind string) {
	switch {
	case str(config["responseMimeType"]) == "application/json":
		schema := dict(config["responseJsonSchema"])
		if schema == nil {
			schema = dict(config["responseSchema"])
		}
		return plan{text: encode(conform(schema))}, "schema"
	case len(tools) == 0:
		return plan{text: "ok"}, "side"
	}
	return choose(t), "main"
}

type geminiReply struct{ *reply }

func (a *geminiReply) candidate(part obj, finish any) obj {
	c := obj{"content": obj{"role": "model", "parts": []any{part}}, "index": 0}
	if finish != nil {
		c["finishReason"] = finish
	}
	return obj{"candidates": []any{c}, "modelVersion": "fake", "responseId": a.id("resp"),
		"usageMetadata": obj{"promptTokenCount": 100, "candidatesTokenCount": 10, "totalTokenCount": 110}}
}

func (a *geminiReply) run() {
	if !a.pause() {
		return
	}
	if a.p.call != nil {
		if a.p.Pre != "" {
			a.event("", a.candidate(obj{"text": a.p.Pre}, nil))
		}
		name, args := resolve(a.p.call, a.req.Tools)
		a.event("", a.candidate(obj{"functionCall": obj{"id": a.id("call"), "name": name, "args": json.RawMessage(args)}}, "STOP"))
		a.final()
		return
	}
	if !a.chunks(a.p.Pieces(a.p.text), a.p.Every, func(piece string) bool { return a.event("", a.candidate(obj{"text": piece}, nil)) }) || !a.linger() {
		return
	}
	a.event("", a.candidate(obj{"text": ""}, "STOP"))
	a.final()
}
