package harnesstools

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/harness"
	"github.com/agent-knock-knock/akk/internal/harness/autostart"
	"github.com/agent-knock-knock/akk/internal/harness/client"
	"github.com/agent-knock-knock/akk/internal/harness/config"
	"github.com/agent-knock-knock/akk/internal/testkit/tooltest"
	"github.com/agent-knock-knock/akk/internal/toolkit"
)

// clerk passes operations on to a server over HTTP and notes what was asked.
type clerk struct {
	*client.Client
	asked []params
	extra []time.Duration
}

func (c *clerk) Ensure(ctx context.Context) (autostart.Found, error) {
	pong, err := c.Ping(ctx)
	return autostart.Found{Pong: pong}, err
}

func (c *clerk) Call(ctx context.Context, op string, in any, extra time.Duration) (json.RawMessage, error) {
	if p, ok := in.(params); ok && op == "create_session" {
		c.asked, c.extra = append(c.asked, p), append(c.extra, extra)
	}
	return c.Client.Call(ctx, op, in, extra)
}

// Servers as a proxy may meet them: ours names what it has beyond the common operations.
const (
	ours    = `"features":["wait_ms","events"],`
	peers   = ``
	created = `{"ok":true,"data":{"session_id":"of-the-server"}}`
)

// reception is a Host before a server that answers create_session as told. An empty reply
// breaks the connection after the request was read.
func reception(t *testing.T, features, reply string) (*clerk, func(args map[string]any) (map[string]any, failure)) {
	t.Helper()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		switch {
		case r.URL.Path == "/api/ping":
			_, _ = fmt.Fprintf(w, `{"ok":true,"data":{%s"protocol_version":4,"pid":1}}`, features)
		case reply == "":
			panic(http.ErrAbortHandler)
		default:
			_, _ = io.WriteString(w, reply)
		}
	}))
	t.Cleanup(web.Close)
	base, err := url.Parse(web.URL)
	if err != nil {
		t.Fatal(err)
	}
	c := &clerk{Client: client.New(client.Settings{BaseURL: base, Timeout: 20 * time.Second})}
	t.Cleanup(c.Close)
	r := toolkit.New()
	Register(r, Options{Caller: c, Finder: c, Log: slog.New(slog.DiscardHandler)})
	h := tooltest.Start(t, r)
	h.Initialize()
	return c, func(args map[string]any) (map[string]any, failure) {
		t.Helper()
		args["model_id"], args["cwd"] = "m", "/w"
		out, err := h.Call("create_session", args)
		var got map[string]any
		var f failure
		if err != nil || json.Unmarshal(out.Structured, &got) != nil || json.Unmarshal(out.Structured, &f) != nil || out.IsError == (f.Error.Code == "") {
			t.Fatalf("%v %s", err, out.Structured)
		}
		return got, f
	}
}

// The server answers create_session when the agent has started or its time is over. Whoever
// gives up before never learns the id of a session that lives.
func TestACreateIsWaitedForLongerThanTheServerMayTake(t *testing.T) {
	c, create := reception(t, ours, created)
	create(map[string]any{})
	limits := config.Default("").Transport
	server := limits.StartupTimeoutSeconds.Duration() + 2*limits.SessionTimeoutSeconds.Duration() + limits.OptionTimeoutSeconds.Duration()
	if len(c.extra) != 1 || c.extra[0] < server+15*time.Second || c.extra[0] != 225*time.Second { // the figures of the specification
		t.Errorf("%v, the server may take %v", c.extra, server)
	}
}

// Only an id that the proxy chose is known when the reply is lost. What the caller says
// counts first, and a server that may not know the parameter is not given it.
func TestTheProxyNamesASessionThatTheCallerDoesNotName(t *testing.T) {
	c, create := reception(t, ours, created)
	for range 2 {
		create(map[string]any{"session_id": " "})
	}
	first, second := c.asked[0].text("session_id"), c.asked[1].text("session_id")
	if first == second || harness.CheckSessionID(first) != nil || harness.CheckSessionID(second) != nil {
		t.Errorf("%q %q", first, second)
	}
	create(map[string]any{"session_id": "mine"})
	create(map[string]any{"idempotency_key": "k"})
	if c.asked[2].text("session_id") != "mine" || c.asked[3]["session_id"] != nil {
		t.Errorf("%s", c.asked[2:])
	}
	c, create = reception(t, peers, created)
	if got, _ := create(map[string]any{}); got["session_id"] != "of-the-server" || c.asked[0]["session_id"] != nil {
		t.Errorf("%v %s", got, c.asked)
	}
}

func TestALostCreateSaysWhatToDo(t *testing.T) {
	for _, reply := range []string{"", "no envelope"} {
		for _, c := range []struct {
			server       string
			args         map[string]any
			named        bool // the session's id is in the detail
			next, advice string
		}{
			{ours, map[string]any{}, true, "message_status", "close_session"},
			{ours, map[string]any{"session_id": "mine"}, true, "message_status", "close_session"},
			{peers, map[string]any{"session_id": "mine"}, true, "message_status", "close_session"},
			{ours, map[string]any{"idempotency_key": "k"}, false, "create_session", "same idempotency_key"},
			{peers, map[string]any{}, false, "", "session_id"},
		} {
			asked, create := reception(t, c.server, reply)
			_, f := create(c.args)
			id, _ := f.Error.Detail["session_id"].(string)
			next, _ := f.Error.Detail["next_action"].(string)
			if f.Error.Code != client.SubmissionUnknown || next != c.next || !strings.Contains(f.Error.Message, c.advice) {
				t.Errorf("%v: %+v", c.args, f.Error)
			}
			if c.named != (id != "") || c.named && id != asked.asked[0].text("session_id") || len(asked.asked) != 1 {
				t.Errorf("%v: %q, asked %s", c.args, id, asked.asked)
			}
		}
	}
}

// A refusal of the server is no lost create: it passes unchanged.
func TestARefusedCreateIsTheServersOwnWord(t *testing.T) {
	_, create := reception(t, ours, `{"ok":false,"error":{"code":"authentication_required","message":"log in","detail":{"session_id":"s","next_action":"authenticate"}}}`)
	if _, f := create(map[string]any{}); f.Error.Code != harness.AuthRequired || f.Error.Message != "log in" || f.Error.Detail["session_id"] != "s" || f.Error.Detail["next_action"] != "authenticate" {
		t.Errorf("%+v", f.Error)
	}
}
