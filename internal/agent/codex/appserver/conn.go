// Package appserver talks to the app server of Codex: JSON-RPC without the "jsonrpc" member,
// one message per text frame, over a WebSocket on a unix socket.
//
// It knows the connection and the threads that a server describes, with a bound on every
// wait and size. What a message means for a request of ours it must never know.
package appserver

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/agent-knock-knock/akk/internal/agent/codex/known"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/version"
)

const (
	// frameLimit bounds one message of the server. A turn's items may be large; a longer
	// one ends the connection and the rollout remains the witness.
	frameLimit = 32 << 20
	// ConnectTimeout bounds dial, handshake and initialize of a lasting connection.
	ConnectTimeout = 3 * time.Second
	// CallTimeout bounds one request.
	CallTimeout = 5 * time.Second
	// probeTimeout bounds all that Identify asks a server. 0.150 takes 200–400 ms to accept a
	// client on a quiet machine, 0.171 a few.
	probeTimeout = 1200 * time.Millisecond
	// probeLife is how long an answer serves other panes of the same server, as in one
	// pass over all panes.
	probeLife = 500 * time.Millisecond
	// probeRest is how long a server that gave no answer is left alone.
	probeRest = 3 * time.Second
	// probeThreads bounds the loaded threads that are looked at.
	probeThreads = 64
)

// Message is one JSON-RPC message of the app server; it has no "jsonrpc" member.
type Message struct {
	ID     json.RawMessage `json:"id,omitempty"`
	Method string          `json:"method,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	Err    *Error          `json:"error,omitempty"`
}

type Error struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func (e *Error) Error() string { return fmt.Sprintf("app server error %d: %s", e.Code, e.Message) }

// Refused reports an answer that proves that the request was not carried out: it was no
// valid request, no known method, or its parameters were refused.
func (e *Error) Refused() bool { return e.Code == -32600 || e.Code == -32601 || e.Code == -32602 }

// Conn is one connection. It is used by one goroutine at a time.
type Conn struct {
	ws   *websocket.Conn
	next int
	// Other receives what arrives while a call waits for its answer.
	Other func(Message)
}

// Dial connects to the socket and introduces us. Everything is bounded by ctx.
func Dial(ctx context.Context, path string) (*Conn, error) {
	const op = "codex.dial"
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real // a socket path has a short limit; Codex links to a short one
	}
	hc := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", path)
		},
	}}
	ws, _, err := websocket.Dial(ctx, "ws://localhost/", &websocket.DialOptions{HTTPClient: hc, CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, op, "the agent's server does not answer on %s", path)
	}
	ws.SetReadLimit(frameLimit)
	s := &Conn{ws: ws}
	init := map[string]any{
		"clientInfo": map[string]any{"name": "agent-knock-knock", "version": version.Version},
		"capabilities": map[string]any{
			"experimentalApi": true, "requestAttestation": false, "optOutNotificationMethods": known.MutedNotifications,
		},
	}
	if err := s.Call(ctx, known.MInitialize, init, nil); err != nil {
		s.Close()
		return nil, fault.Wrap(err, fault.Unavailable, op, "the agent's server refuses a client")
	}
	if err := s.Send(ctx, Message{Method: known.MInitialized}); err != nil {
		s.Close()
		return nil, fault.Wrap(err, fault.Unavailable, op, "the agent's server went away")
	}
	return s, nil
}

func (s *Conn) Close() { _ = s.ws.CloseNow() }

func (s *Conn) Send(ctx context.Context, m Message) error {
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return s.ws.Write(ctx, websocket.MessageText, b)
}

func (s *Conn) Recv(ctx context.Context) (Message, error) {
	for {
		_, b, err := s.ws.Read(ctx)
		if err != nil {
			return Message{}, err
		}
		var m Message
		if json.Unmarshal(b, &m) == nil {
			return m, nil
		}
	}
}

// Call sends one request and waits for its answer, at most callTimeout. The error is a
// *[rpcError] when the server answered with one.
func (s *Conn) Call(ctx context.Context, method string, params, result any) error {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	raw, err := json.Marshal(params)
	if err != nil {
		return err
	}
	s.next++
	id := fmt.Sprint(s.next)
	if err := s.Send(ctx, Message{ID: json.RawMessage(id), Method: method, Params: raw}); err != nil {
		return err
	}
	for {
		m, err := s.Recv(ctx)
		if err != nil {
			return err
		}
		if m.Method != "" || string(m.ID) != id {
			if s.Other != nil {
				s.Other(m)
			}
			continue
		}
		if m.Err != nil {
			return m.Err
		}
		if result == nil {
			return nil
		}
		return json.Unmarshal(m.Result, result)
	}
}

// Status is what the server says of a thread.
type Status struct {
	Type  string   `json:"type"`
	Flags []string `json:"activeFlags"`
}

// Thread is a thread as the server describes it.
type Thread struct {
	ID        string `json:"id"`
	Cwd       string `json:"cwd"`
	Path      string `json:"path"` // of the rollout, also before it exists
	Version   string `json:"cliVersion"`
	Ephemeral bool   `json:"ephemeral"`
	Source    string `json:"threadSource"` // user, thread_title, …
	Parent    string `json:"parentThreadId"`
	Status    Status `json:"status"`
}

// Person reports a thread that a pane can show.
func (t Thread) Person() bool {
	return !t.Ephemeral && t.Parent == "" && (t.Source == "" || t.Source == "user")
}

type ThreadAnswer struct {
	Thread Thread `json:"thread"`
}

func (s *Conn) ReadThread(ctx context.Context, id string) (Thread, error) {
	var a ThreadAnswer
	err := s.Call(ctx, known.MThreadRead, map[string]any{"threadId": id}, &a)
	return a.Thread, err
}

// View is what one look at a server gave.
type View struct {
	Threads []Thread // loaded ones that a pane can show
	Partial bool     // there are more, or one could not be read
	Err     error    // the server gave no answer
}

// Cache keeps views for probeLife, so that a pass over many panes asks each server
// once, also one that hangs.
type Cache struct {
	mu    sync.Mutex
	views map[string]cachedView
}

type cachedView struct {
	at   time.Time
	view View
}

// Look returns what the server on path says of its threads, at most probeLife old.
func (c *Cache) Look(ctx context.Context, now func() time.Time, path string) View {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.views[path]; ok {
		life := probeLife
		if e.view.Err != nil {
			life = probeRest
		}
		if now().Sub(e.at) < life {
			return e.view
		}
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	v := lookAtServer(ctx, path)
	if c.views == nil {
		c.views = map[string]cachedView{}
	}
	c.views[path] = cachedView{now(), v}
	return v
}

func lookAtServer(ctx context.Context, path string) View {
	s, err := Dial(ctx, path)
	if err != nil {
		return View{Err: err}
	}
	defer s.Close()
	var list struct {
		Data []string `json:"data"`
		Next *string  `json:"nextCursor"`
	}
	if err := s.Call(ctx, known.MLoadedList, map[string]any{"limit": probeThreads}, &list); err != nil {
		return View{Err: fault.Wrap(err, fault.Unavailable, "codex.probe", "the agent's server does not list its threads")}
	}
	v := View{Partial: list.Next != nil}
	for i, id := range list.Data {
		if i == probeThreads {
			v.Partial = true
			break
		}
		t, err := s.ReadThread(ctx, id)
		switch {
		case err != nil:
			v.Partial = true
		case t.Person():
			v.Threads = append(v.Threads, t)
		}
	}
	return v
}
