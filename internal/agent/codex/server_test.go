package codex

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/agent-knock-knock/akk/internal/agent/codex/appserver"
)

// scripted is an app server whose answers a test sets. Like the real one it broadcasts
// status changes to every connection, sends a thread's events to those who resumed it,
// and replays open requests to them.
type scripted struct {
	t      *testing.T
	socket string

	mu       sync.Mutex
	conns    map[*websocket.Conn]bool // true: resumed
	dials    int
	calls    []string
	answers  []string // results that clients gave to requests
	threads  []appserver.Thread
	virgin   bool // resume fails: no rollout found
	pending  []appserver.Message
	onStart  func(params json.RawMessage) (result any, rpc *appserver.Error, drop bool)
	listener net.Listener

	onInterrupt func(params json.RawMessage) (result any, rpc *appserver.Error, drop bool)
}

func newScripted(t *testing.T, threads ...appserver.Thread) *scripted {
	t.Helper()
	dir, err := os.MkdirTemp("", "akk") // short: a socket path has 108 bytes
	if err != nil {
		t.Fatal(err)
	}
	s := &scripted{t: t, socket: filepath.Join(dir, "s"), threads: threads, conns: map[*websocket.Conn]bool{}}
	if s.listener, err = net.Listen("unix", s.socket); err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: http.HandlerFunc(s.serve), ReadHeaderTimeout: time.Minute}
	done := make(chan struct{})
	go func() { defer close(done); _ = srv.Serve(s.listener) }()
	t.Cleanup(func() {
		_ = srv.Close()
		s.hangUp()
		<-done
		os.RemoveAll(dir)
	})
	return s
}

func (s *scripted) serve(w http.ResponseWriter, r *http.Request) {
	ws, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer ws.CloseNow()
	s.mu.Lock()
	s.conns[ws] = false
	s.dials++
	s.mu.Unlock()
	defer func() { s.mu.Lock(); delete(s.conns, ws); s.mu.Unlock() }()
	for {
		_, b, err := ws.Read(r.Context())
		if err != nil {
			return
		}
		var m appserver.Message
		if json.Unmarshal(b, &m) != nil {
			return
		}
		if !s.handle(r.Context(), ws, m) {
			return
		}
	}
}

func (s *scripted) handle(ctx context.Context, ws *websocket.Conn, m appserver.Message) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.Method == "" {
		s.answers = append(s.answers, string(m.Result))
		s.pending = nil
		s.push(ctx, ws, appserver.Message{Method: "serverRequest/resolved", Params: raw(map[string]any{"threadId": testThread, "requestId": m.ID})})
		return true
	}
	s.calls = append(s.calls, m.Method)
	var p struct {
		ThreadID string `json:"threadId"`
	}
	_ = json.Unmarshal(m.Params, &p)
	var result any = map[string]any{}
	var rpc *appserver.Error
	switch m.Method {
	case "initialized":
		return true
	case "thread/loaded/list":
		ids := []string{}
		for _, t := range s.threads {
			ids = append(ids, t.ID)
		}
		result = map[string]any{"data": ids}
	case "thread/read", "thread/resume":
		rpc = &appserver.Error{Code: -32600, Message: "thread not loaded"}
		for _, t := range s.threads {
			if t.ID == p.ThreadID {
				result, rpc = map[string]any{"thread": t}, nil
			}
		}
		if m.Method == "thread/resume" {
			if s.virgin {
				rpc = &appserver.Error{Code: -32600, Message: "no rollout found"}
			}
			s.conns[ws] = rpc == nil
		}
	case "turn/interrupt":
		if s.onInterrupt != nil {
			var drop bool
			if result, rpc, drop = s.onInterrupt(m.Params); drop {
				return false
			}
		}
	case "turn/start":
		if s.onStart != nil {
			var drop bool
			if result, rpc, drop = s.onStart(m.Params); drop {
				return false
			}
		}
	}
	reply := appserver.Message{ID: m.ID, Err: rpc}
	if rpc == nil {
		reply.Result = raw(result)
	}
	s.push(ctx, ws, reply)
	if m.Method == "thread/resume" && rpc == nil {
		for _, q := range s.pending {
			s.push(ctx, ws, q)
		}
	}
	return true
}

func raw(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

func (s *scripted) push(ctx context.Context, ws *websocket.Conn, m appserver.Message) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_ = ws.Write(ctx, websocket.MessageText, raw(m)) // a client may be gone
}

// tell sends a notification to every client that resumed a thread, or to all.
func (s *scripted) tell(all bool, method string, params any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for ws, resumed := range s.conns {
		if all || resumed {
			s.push(context.Background(), ws, appserver.Message{Method: method, Params: raw(params)})
		}
	}
}

// ask sends a request to every subscriber and replays it to later ones.
func (s *scripted) ask(id, method string, params any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := appserver.Message{ID: json.RawMessage(id), Method: method, Params: raw(params)}
	s.pending = append(s.pending, m)
	for ws, resumed := range s.conns {
		if resumed {
			s.push(context.Background(), ws, m)
		}
	}
}

func (s *scripted) setStatus(kind string) {
	s.mu.Lock()
	for i := range s.threads {
		s.threads[i].Status.Type = kind
	}
	s.mu.Unlock()
	s.tell(true, "thread/status/changed", map[string]any{"threadId": testThread, "status": map[string]any{"type": kind}})
}

func (s *scripted) hangUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for ws := range s.conns {
		_ = ws.CloseNow()
	}
}

func (s *scripted) subscribers() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, resumed := range s.conns {
		if resumed {
			n++
		}
	}
	return n
}

func (s *scripted) seen(method string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.calls {
		if c == method {
			n++
		}
	}
	return n
}

// eventually polls until ok, at most ten seconds.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.NewTimer(10 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline.C:
			t.Fatalf("never: %s", what)
		case <-tick.C:
		}
	}
}
