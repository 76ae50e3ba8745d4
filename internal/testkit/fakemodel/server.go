// Package fakemodel is a scripted model server for driving real coding agents without a
// network: the OpenAI Responses API (Codex), the Anthropic Messages API (Claude Code), the
// OpenAI Chat Completions API (OpenCode) and the Gemini API, all streaming. The reply is
// chosen by the directives of package script in the last
// thing a person wrote; the agents' own prompts are ignored.
//
// A tool call may use what earlier calls of the turn gave back: ${1:terminals.0.id} in its
// arguments, or in the text, is a value out of the JSON of the first result.
//
// It listens on the loopback interface only, checks no key and knows nothing of the
// product. Requests for structured output (thread titles) get the simplest object that
// the schema allows.
//
// Besides the model's endpoints: POST /_gate/NAME releases everything that waits in
// GATE:NAME, GET /_state shows what waits.
package fakemodel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// Request is one request for an answer, as the server understood it.
type Request struct {
	Seq     int       `json:"seq"`
	At      time.Time `json:"at"`
	API     string    `json:"api"`  // responses, messages, chat, gemini
	Kind    string    `json:"kind"` // main; schema: structured output; side: without tools
	Model   string    `json:"model"`
	Tools   []string  `json:"tools"`   // as offered; "server/tool" for a namespace
	User    string    `json:"user"`    // the last text of a person
	Earlier []string  `json:"earlier"` // what persons said before, the last 100
	Results int       `json:"results"` // tool results after it
	Last    string    `json:"last"`    // the last tool result
	Reply   string    `json:"reply"`   // "text ..." or "call name arguments"
	Final   time.Time `json:"final"`   // when the last byte was written; zero before
	Outcome string    `json:"outcome"` // final, failed, dropped, client_gone; "" while it runs
}

// Limits of the server.
const (
	maxBody     = 64 << 20 // of a request
	maxRequests = 10_000   // kept for Requests; older ones are forgotten
	maxEarlier  = 100      // of a request
	closeLimit  = 2 * time.Second
)

// Server is a running model server.
type Server struct {
	http *http.Server
	url  string
	log  io.Writer // JSON lines, may be nil
	done chan struct{}

	mu       sync.Mutex
	seq      int
	requests []*Request
	gates    map[string]chan struct{}
	open     map[string]bool // released for good
	waiting  map[string]int
	changed  chan struct{} // closed and replaced whenever a request begins, waits or ends
}

// TB is what Start needs of a testing.TB.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
	Cleanup(func())
}

// Start runs a server on a free port of 127.0.0.1 until the test ends.
func Start(tb TB) *Server {
	tb.Helper()
	s, err := Listen("127.0.0.1:0", nil)
	if err != nil {
		tb.Fatalf("%v", err)
	}
	tb.Cleanup(s.Close)
	return s
}

// Listen runs a server on addr, which must be a loopback address. log gets one JSON line
// for every request and may be nil.
func Listen(addr string, log io.Writer) (*Server, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("fakemodel: %w", err)
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return nil, fmt.Errorf("fakemodel: %s is no loopback address", addr)
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("fakemodel: %w", err)
	}
	s := &Server{
		url: "http://" + l.Addr().String(), log: log, done: make(chan struct{}), gates: map[string]chan struct{}{},
		open: map[string]bool{}, waiting: map[string]int{}, changed: make(chan struct{}),
	}
	s.http = &http.Server{Handler: s.mux()}
	go func() {
		defer close(s.done)
		s.http.Serve(l) // ends with Close
	}()
	return s, nil
}

// URL is the root of the server, without a path: http://127.0.0.1:PORT.
func (s *Server) URL() string { return s.url }

// Close ends the server and every request that still waits.
func (s *Server) Close() {
	s.http.Close()
	select {
	case <-s.done:
	case <-time.After(closeLimit):
	}
}

// Release lets everything pass GATE:name, now and later.
func (s *Server) Release(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[name] = true
	s.releaseLocked(name)
}

// releaseLocked wakes who waits now and returns their number.
func (s *Server) releaseLocked(name string) int {
	n := s.waiting[name]
	if c := s.gates[name]; c != nil {
		close(c)
		delete(s.gates, name)
	}
	return n
}

// Requests are copies of all requests so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Request, len(s.requests))
	for i, r := range s.requests {
		out[i] = *r
	}
	return out
}

// WaitFor waits until ok holds of the requests and reports whether it did before ctx
// ended.
func (s *Server) WaitFor(ctx context.Context, ok func([]Request) bool) bool {
	for {
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()
		if ok(s.Requests()) {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

func (s *Server) mux() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/responses", s.responses)
	mux.HandleFunc("POST /v1/messages", s.messages)
	mux.HandleFunc("POST /v1/messages/count_tokens", countTokens)
	mux.HandleFunc("POST /v1/chat/completions", s.chat)
	mux.HandleFunc("POST /v1beta/models/{call}", s.gemini)
	mux.HandleFunc("GET /v1/models", models)
	mux.HandleFunc("POST /_gate/{name}", func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		n := s.releaseLocked(r.PathValue("name"))
		s.mu.Unlock()
		fmt.Fprintln(w, n)
	})
	mux.HandleFunc("GET /_state", func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		json.NewEncoder(w).Encode(obj{"seq": s.seq, "waiting": s.waiting})
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			return // a health probe
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, `{"type":"error","error":{"type":"not_found_error","message":"fake: no such endpoint"}}`)
	})
	return mux
}

func countTokens(w http.ResponseWriter, r *http.Request) {
	n, _ := io.Copy(io.Discard, io.LimitReader(r.Body, maxBody))
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(obj{"input_tokens": n / 4})
}

func models(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	m := obj{"id": "fake-model", "object": "model", "created": 1700000000, "owned_by": "fake", "type": "model",
		"display_name": "fake-model", "created_at": "2025-01-01T00:00:00Z"}
	json.NewEncoder(w).Encode(obj{"object": "list", "data": []any{m}, "has_more": false, "first_id": "fake-model", "last_id": "fake-model"})
}

func (s *Server) begin(r *Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seq++
	r.Seq, r.At = s.seq, time.Now()
	s.requests = append(s.requests, r)
	if len(s.requests) > maxRequests {
		s.requests = s.requests[1:]
	}
	s.changedLocked(r)
}

// end notes how a request ended; only the first call counts.
func (s *Server) end(r *Request, outcome string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Outcome == "" {
		r.Outcome, r.Final = outcome, time.Now()
		s.changedLocked(r)
	}
}

func (s *Server) changedLocked(r *Request) {
	close(s.changed)
	s.changed = make(chan struct{})
	if s.log == nil {
		return
	}
	if b, err := json.Marshal(r); err == nil {
		s.log.Write(append(b, '\n'))
	}
}

var errGone = errors.New("the client is gone")

// pass waits at GATE:name.
func (s *Server) pass(ctx context.Context, name string) error {
	if name == "" {
		return nil
	}
	s.mu.Lock()
	if s.open[name] {
		s.mu.Unlock()
		return nil
	}
	c := s.gates[name]
	if c == nil {
		c = make(chan struct{})
		s.gates[name] = c
	}
	s.waiting[name]++
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.waiting[name]--
		s.mu.Unlock()
	}()
	select {
	case <-c:
		return nil
	case <-ctx.Done():
		return errGone
	}
}
