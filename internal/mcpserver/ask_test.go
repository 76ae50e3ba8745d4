package mcpserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/agent-knock-knock/akk/internal/testkit/tooltest"
	"github.com/agent-knock-knock/akk/internal/toolkit"
)

// asking is a table with one tool that puts a question to the Host and returns the answer.
func asking(withdraw <-chan struct{}) *toolkit.Registry {
	r := toolkit.New()
	q := toolkit.Elicitation{Message: "May I?", Schema: json.RawMessage(`{"type":"object","properties":{"yes":{"type":"boolean"}}}`)}
	toolkit.Register(r, toolkit.Spec{Name: "ask", Description: "Asks.", Effect: toolkit.Mutating, Input: json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`)},
		func(ctx context.Context, call toolkit.Call, _ struct{}) (any, error) {
			out := map[string]any{"forms": call.Host.Forms(), "urls": call.Host.URLs(), "titled": call.Host.Titled(), "inline": call.Host.Inline()}
			if call.Host.Inline() {
				if call.Resumed == nil {
					return toolkit.InputNeeded{Questions: map[string]toolkit.Elicitation{"q1": q}, State: "sealed"}, nil
				}
				out["state"], out["action"], out["content"] = call.Resumed.State, call.Resumed.Answers["q1"].Action, string(call.Resumed.Answers["q1"].Content)
				return out, nil
			}
			ctx, stop := context.WithCancel(ctx)
			defer stop()
			go func() {
				select {
				case <-withdraw:
					stop()
				case <-ctx.Done():
				}
			}()
			a, err := call.Host.Elicit(ctx, q)
			out["silent"], out["action"], out["content"] = errors.Is(err, toolkit.ErrHostSilent), a.Action, string(a.Content)
			return out, nil
		})
	return r
}

func hello(version, elicitation string) string {
	return `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"` + version + `","capabilities":{` + elicitation + `},"clientInfo":{"name":"h","version":"1"}}}`
}

type sentRequest struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// next is the next request or notification of the server.
func next(t *testing.T, h *tooltest.Host, method string) sentRequest {
	t.Helper()
	for {
		var r sentRequest
		line := h.Line()
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		if r.Method == method {
			return r
		}
		if r.Method == "" {
			t.Fatalf("a reply in place of %s: %s", method, line)
		}
	}
}

// A Host before 2026-07-28 gets a request; what it answers is what the handler sees.
func TestAQuestionIsARequestToAHostThatTakesRequests(t *testing.T) {
	for name, c := range map[string]struct{ version, capability, response, want string }{
		"accept":          {"2025-06-18", `"elicitation":{}`, `"result":{"action":"accept","content":{"yes":true}}`, `"action":"accept","content":"{\"yes\":true}"`},
		"decline, titled": {"2025-11-25", `"elicitation":{"form":{},"url":{}}`, `"result":{"action":"decline"}`, `"action":"decline"`},
		"an error":        {"2025-06-18", `"elicitation":{}`, `"error":{"code":-32601,"message":"no"}`, `"silent":true`},
		"nonsense":        {"2025-06-18", `"elicitation":{}`, `"result":{"action":"perhaps"}`, `"silent":true`},
	} {
		t.Run(name, func(t *testing.T) {
			h := tooltest.Start(t, asking(nil))
			h.Send(hello(c.version, c.capability), tooltest.Initialized)
			until(t, h, "0")
			h.Send(strings.TrimSpace(toolCall("1", "ask", "{}")))
			r := next(t, h, "elicitation/create")
			if titled := strings.Contains(string(r.Params), `"mode":"form"`); titled != (c.version == "2025-11-25") || !strings.Contains(string(r.Params), "May I?") {
				t.Errorf("%s", r.Params)
			}
			h.Send(`{"jsonrpc":"2.0","id":"akk-999","result":{"action":"accept"}}`, // nobody asked that
				`{"jsonrpc":"2.0","id":`+string(r.ID)+`,`+c.response+`}`)
			_, reply := until(t, h, "1")
			flat := string(reply.Result)
			if _, after, ok := strings.Cut(flat, `"structuredContent":`); ok {
				flat = after
			}
			if !strings.Contains(flat, c.want) || !strings.Contains(flat, `"inline":false`) {
				t.Errorf("%s", flat)
			}
		})
	}
}

func TestAQuestionThatIsWithdrawnIsCancelledAtTheHost(t *testing.T) {
	withdraw := make(chan struct{})
	h := tooltest.Start(t, asking(withdraw))
	h.Send(hello("2025-06-18", `"elicitation":{}`), tooltest.Initialized)
	until(t, h, "0")
	h.Send(strings.TrimSpace(toolCall("1", "ask", "{}")))
	r := next(t, h, "elicitation/create")
	close(withdraw)
	if n := next(t, h, "notifications/cancelled"); !strings.Contains(string(n.Params), `"requestId":`+string(r.ID)) {
		t.Errorf("%s", n.Params)
	}
	until(t, h, "1")
}

// A Host from 2026-07-28 on gets the question as the result, and calls again.
func TestAQuestionIsTheResultForAHostThatTakesNoRequests(t *testing.T) {
	h := tooltest.Start(t, asking(nil))
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"h","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}}}`
	call := func(id, more string) string {
		h.Send(`{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"ask","arguments":{}` + more + `,` + meta + `}}`)
		before, reply := until(t, h, id)
		if len(before) > 0 || reply.Error != nil {
			t.Fatalf("%+v %+v", before, reply)
		}
		return string(reply.Result)
	}
	first := call("1", "")
	if !strings.Contains(first, `"requestState":"sealed"`) || !strings.Contains(first, `"q1"`) || !strings.Contains(first, "May I?") || !strings.Contains(first, "input_required") {
		t.Fatalf("%s", first)
	}
	second := call("2", `,"requestState":"sealed","inputResponses":{"q1":{"action":"accept","content":{"yes":true}}}`)
	if !strings.Contains(second, `"state":"sealed"`) || !strings.Contains(second, `"action":"accept"`) || !strings.Contains(second, `"inline":true`) {
		t.Errorf("%s", second)
	}
}
