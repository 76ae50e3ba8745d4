package fakemodel

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// reply is the answer to one request under way.
type reply struct {
	s   *Server
	w   http.ResponseWriter
	r   *http.Request
	req *Request
	p   plan
}

func (s *Server) start(w http.ResponseWriter, r *http.Request, api, kind string, body obj, t talk, p plan) *reply {
	names := toolNames(arr(body["tools"]))
	req := &Request{API: api, Kind: kind, Model: str(body["model"]), Tools: names, User: t.user, Earlier: t.earlier[max(0, len(t.earlier)-maxEarlier):],
		Results: len(t.results), Last: clip(t.last(), 2000), Reply: "text " + clip(p.text, 200)}
	if p.call != nil {
		name, args := resolve(p.call, names)
		req.Reply = "call " + name + " " + clip(args, 200)
	}
	s.begin(req)
	return &reply{s: s, w: w, r: r, req: req, p: p}
}

func (a *reply) id(prefix string) string { return fmt.Sprintf("%s_fake_%d", prefix, a.req.Seq) }

// refused performs HOLD and FAIL; true means that the request is answered.
func (a *reply) refused(body func(status int) obj) bool {
	if !sleep(a.r.Context(), a.p.Hold) {
		a.gone()
		return true
	}
	if a.p.Fail == 0 {
		return false
	}
	a.w.Header().Set("Content-Type", "application/json")
	a.w.Header().Set("X-Request-Id", a.id("req"))
	a.w.WriteHeader(a.p.Fail)
	json.NewEncoder(a.w).Encode(body(a.p.Fail))
	a.s.end(a.req, "failed")
	return true
}

// open begins the event stream.
func (a *reply) open() {
	a.w.Header().Set("Content-Type", "text/event-stream")
	a.w.Header().Set("Cache-Control", "no-cache")
	a.w.Header().Set("X-Request-Id", a.id("req"))
	a.w.Header().Set("Request-Id", a.id("req"))
	a.w.WriteHeader(http.StatusOK)
	a.flush()
}

func (a *reply) flush() {
	if f, ok := a.w.(http.Flusher); ok {
		f.Flush()
	}
}

// event writes one server-sent event and reports whether the client still listens.
func (a *reply) event(name string, data obj) bool {
	b, err := json.Marshal(data)
	if err != nil {
		return false
	}
	head := ""
	if name != "" {
		head = "event: " + name + "\n"
	}
	if _, err := io.WriteString(a.w, head+"data: "+string(b)+"\n\n"); err != nil {
		return false
	}
	a.flush()
	return a.r.Context().Err() == nil
}

// pause performs SLEEP and GATE, with the stream already open.
func (a *reply) pause() bool {
	if sleep(a.r.Context(), a.p.Sleep) && a.s.pass(a.r.Context(), a.p.Gate) == nil {
		return true
	}
	a.gone()
	return false
}

// chunks sends the pieces of the final text as STREAM and DROP want it.
func (a *reply) chunks(pieces []string, every time.Duration, send func(string) bool) bool {
	for i, piece := range pieces {
		if i > 0 && !sleep(a.r.Context(), every) || !send(piece) {
			a.gone()
			return false
		}
		if a.p.Drop > 0 && i+1 >= a.p.Drop {
			a.s.end(a.req, "dropped")
			panic(http.ErrAbortHandler) // net/http cuts the connection
		}
	}
	return true
}

func (a *reply) linger() bool {
	if sleep(a.r.Context(), a.p.Linger) {
		return true
	}
	a.gone()
	return false
}

func (a *reply) final() { a.s.end(a.req, "final") }
func (a *reply) gone()  { a.s.end(a.req, "client_gone") }

func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
