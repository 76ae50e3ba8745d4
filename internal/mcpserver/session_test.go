package mcpserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/mcpserver"
	"github.com/agent-knock-knock/akk/internal/testkit/tooltest"
	"github.com/agent-knock-knock/akk/internal/toolkit"
)

// until reads replies up to the one with id.
func until(t *testing.T, h *tooltest.Host, id string) (before []tooltest.Reply, reply tooltest.Reply) {
	t.Helper()
	for {
		r := h.Reply()
		if string(r.ID) == id {
			return before, r
		}
		before = append(before, r)
	}
}

func TestTheCatalogueHasTheSameBytesInTheOrderOfRegistration(t *testing.T) { // M22
	h := tooltest.Start(t, testTools(""))
	h.Initialize()
	var first string
	for range 5 {
		h.Send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
		line := h.Line()
		if first == "" {
			first = line
		}
		if line != first {
			t.Fatalf("the list changed:\n%s\n%s", first, line)
		}
	}
	at := -1
	for _, name := range []string{"slow", "add", "count", "wait", "echo"} {
		i := strings.Index(first, `"name":"`+name+`"`)
		if i <= at {
			t.Errorf("%s is not at its place in %s", name, first)
		}
		at = i
	}
}

func TestAListBehindTenCreatesInOneWriteShowsTen(t *testing.T) { // M23
	for range 10 {
		h := tooltest.Start(t, testTools(""))
		lines := []string{tooltest.Initialize, tooltest.Initialized}
		for k := range 10 {
			lines = append(lines, strings.TrimSpace(toolCall(fmt.Sprint(k+1), "add", `{"ms":1}`)))
		}
		h.Send(append(lines, strings.TrimSpace(toolCall("11", "count", "{}")))...)
		if _, r := until(t, h, "11"); !strings.Contains(string(r.Result), `"items":10`) {
			t.Fatalf("the list shows %s", r.Result)
		}
		h.Close()
	}
}

func TestASecondRequestWithAnIDInFlightIsRefusedAndNotRun(t *testing.T) { // M17
	h := tooltest.Start(t, testTools(""))
	h.Initialize()
	h.Send(strings.TrimSpace(toolCall(`"same"`, "add", `{"ms":300}`)), strings.TrimSpace(toolCall(`"s\u0061me"`, "add", `{"ms":1}`)))
	if r := h.Reply(); string(r.ID) != "null" || r.Error == nil || r.Error.Code != -32600 {
		t.Errorf("the second got %+v", r)
	}
	if r := h.Reply(); string(r.ID) != `"same"` || r.Error != nil {
		t.Errorf("the first got %+v", r)
	}
	if out, err := h.Call("count", nil); err != nil || !strings.Contains(string(out.Structured), `"items":1`) {
		t.Errorf("after both: %s, %v", out.Structured, err)
	}
	h.Send(strings.TrimSpace(toolCall(`"same"`, "count", `{}`)))
	if r := h.Reply(); string(r.ID) != `"same"` || r.Error != nil {
		t.Errorf("the id is not free again: %+v", r)
	}
}

func TestACancelledCallIsToldAtOnceAndGetsNoReply(t *testing.T) { // M19
	h := tooltest.Start(t, testTools(""))
	h.Initialize()
	for _, id := range []string{"5", `"abc"`, "9007199254740993"} {
		start := time.Now()
		h.Send(strings.TrimSpace(toolCall(id, "wait", `{"ms":9000}`)),
			`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+id+`,"reason":"x"}}`,
			strings.TrimSpace(ping(`"after"`)))
		if before, _ := until(t, h, `"after"`); len(before) != 0 {
			t.Errorf("replies after the cancellation of %s: %+v", id, before)
		}
		// The id is free as soon as the handler has seen the cancellation.
		for {
			h.Send(strings.TrimSpace(ping(id)))
			if r := h.Reply(); string(r.ID) == id {
				break
			}
		}
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("the cancellation took %s", took)
		}
	}
	for _, params := range []string{`{"requestId":12345}`, `{"requestId":null}`, `{}`, `{"requestId":{}}`} {
		h.Send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":` + params + `}`)
	}
	h.Send(`{"jsonrpc":"2.0","method":"notifications/cancelled"}`, strings.TrimSpace(ping("1")))
	if before, _ := until(t, h, "1"); len(before) != 0 {
		t.Errorf("odd cancellations were answered: %+v", before)
	}
	if rest, err := h.Close(); err != nil || len(rest) != 0 {
		t.Errorf("the end: %q, %v", rest, err)
	}
}

func TestWhatACancelledCallMadeDurableStands(t *testing.T) { // M19
	path := filepath.Join(t.TempDir(), "effects")
	h := tooltest.Start(t, testTools(path))
	h.Initialize()
	h.Send(strings.TrimSpace(toolCall("5", "slow", `{"ms":200}`)))
	awaitFile(t, path) // a call that is cancelled before it starts has no effect to speak of
	h.Send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}`)
	if rest, err := h.Close(); err != nil || len(rest) != 0 {
		t.Errorf("the end: %q, %v", rest, err)
	}
	if got := effects(t, path); len(got) != 1 {
		t.Errorf("effects %q", got)
	}
}

// awaitFile waits until "slow" runs: it makes its file first.
func awaitFile(t *testing.T, path string) {
	t.Helper()
	for end := time.Now().Add(patience); ; {
		if _, err := os.Stat(path); err == nil {
			return
		} else if time.Now().After(end) {
			t.Fatal(err)
		}
		<-time.After(time.Millisecond)
	}
}

func TestProgressGoesOnlyToWhoAskedAndBeforeTheReply(t *testing.T) { // M20
	h := tooltest.Start(t, testTools(""))
	h.Initialize()
	for _, token := range []string{`0`, `"t"`, `9007199254740993`} {
		h.Send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait","arguments":{"ms":1},"_meta":{"progressToken":` + token + `}}}`)
		before, r := until(t, h, "1")
		if len(before) != 1 || before[0].Method != "notifications/progress" ||
			string(before[0].Params) != `{"progressToken":`+token+`,"progress":1,"total":2,"message":"half"}` || r.Error != nil {
			t.Errorf("token %s: %+v then %+v", token, before, r)
		}
	}
	h.Send(strings.TrimSpace(toolCall("2", "wait", `{"ms":1}`)))
	if before, _ := until(t, h, "2"); len(before) != 0 {
		t.Errorf("progress without a token: %+v", before)
	}
}

func TestPipelinedPingsAreAllAnsweredWhileAToolRuns(t *testing.T) {
	h := tooltest.Start(t, testTools(""))
	h.Initialize()
	lines := []string{strings.TrimSpace(toolCall(`"w"`, "wait", `{"ms":100}`))}
	for k := range 2 * mcpserver.MaxInFlight {
		lines = append(lines, strings.TrimSpace(ping(fmt.Sprint(k+1))))
	}
	h.Send(lines...)
	seen := map[string]int{}
	for range lines {
		seen[string(h.Reply().ID)]++
	}
	if len(seen) != len(lines) {
		t.Errorf("%d of %d requests were answered once", len(seen), len(lines))
	}
}

func TestACallBeforeInitializeIsRefused(t *testing.T) {
	h := tooltest.Start(t, testTools(""))
	h.Send(strings.TrimSpace(toolCall("1", "add", "{}")))
	if r := h.Reply(); r.Error == nil || r.Error.Code != -32600 || r.Error.Message != "tools/call came before initialize" {
		t.Errorf("got %+v", r)
	}
	h.Send(`{"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":7}}`)
	if r := h.Reply(); r.Error == nil || r.Error.Code != -32602 {
		t.Errorf("got %+v", r)
	}
	h.Initialize()
	if out, err := h.Call("count", nil); err != nil || string(out.Structured) != `{"items":0}` {
		t.Errorf("the refused call ran, or the session is broken: %s, %v", out.Structured, err)
	}
}

func TestNumbersKeepEveryDigit(t *testing.T) {
	h := tooltest.Start(t, testTools(""))
	h.Initialize()
	out, err := h.Call("echo", map[string]any{"number": json.Number("9007199254740993")})
	if err != nil || !strings.Contains(string(out.Structured), "9007199254740993") {
		t.Errorf("got %s, %v", out.Structured, err)
	}
}

func TestDiscoverDoesNotReplaceTheIdentityOfASession(t *testing.T) { // M18
	const discover = `{"jsonrpc":"2.0","id":3,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	h := tooltest.Start(t, testTools(""))
	h.Send(`{"jsonrpc":"2.0","id":1,"method":"initialize"}`)
	if _, r := until(t, h, "1"); r.Error == nil {
		t.Error("initialize without params was accepted")
	}
	h.Initialize()
	h.Send(discover)
	if r := h.Reply(); r.Error == nil || r.Error.Code != -32600 {
		t.Errorf("discover in a session: %+v", r)
	}
	other := tooltest.Start(t, testTools(""))
	other.Send(`{"jsonrpc":"2.0","id":1,"method":"initialize"}`)
	until(t, other, "1")
	other.Send(discover)
	if r := other.Reply(); r.Error != nil {
		t.Errorf("discover after an initialize that failed: %+v", r)
	}
}

// sdkSession connects the SDK's own client; version "" is its newest era.
func sdkSession(t *testing.T, version string) *mcp.ClientSession {
	t.Helper()
	in, toServer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	fromServer, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() {
		served <- mcpserver.Serve(t.Context(), mcpserver.Config{Name: "n", Version: "v", Registry: testTools(""),
			In: in, Out: out, Log: slog.New(slog.DiscardHandler), Instance: "bridge-sdk"})
		out.Close()
	}()
	var opts *mcp.ClientSessionOptions
	if version != "" {
		opts = &mcp.ClientSessionOptions{ProtocolVersion: version}
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "0"}, nil)
	cs, err := client.Connect(t.Context(), &mcp.IOTransport{Reader: fromServer, Writer: toServer}, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cs.Close()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return cs
}

func TestTheSDKClientWorksInEveryEra(t *testing.T) {
	for _, version := range append(mcp.SupportedProtocolVersions()[1:], "") {
		t.Run("version "+version, func(t *testing.T) {
			cs := sdkSession(t, version)
			list, err := cs.ListTools(t.Context(), nil)
			if err != nil || len(list.Tools) != 5 || list.Tools[0].Name != "slow" || list.NextCursor != "" {
				t.Fatalf("list: %+v, %v", list, err)
			}
			a := list.Tools[0].Annotations
			if a.ReadOnlyHint || *a.DestructiveHint || a.IdempotentHint || *a.OpenWorldHint {
				t.Errorf("annotations %+v", a)
			}
			res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "add", Arguments: map[string]any{"ms": 0}})
			if err != nil || res.IsError {
				t.Errorf("call: %+v, %v", res, err)
			}
			if _, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "add", Arguments: map[string]any{"x": 0}}); err == nil {
				t.Error("an unknown argument was accepted")
			}
		})
	}
}

func TestAHostThatStopsReadingEndsTheSessionAfterTheStallLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, toServer := io.Pipe()
		fromServer, out := io.Pipe() // nobody reads
		defer fromServer.Close()
		served := make(chan error, 1)
		start := time.Now()
		go func() {
			served <- mcpserver.Serve(t.Context(), mcpserver.Config{Name: "n", Version: "v", Registry: testTools(""),
				In: in, Out: out, Log: slog.New(slog.DiscardHandler), Instance: "bridge-1"})
		}()
		if _, err := io.WriteString(toServer, handshake+ping("1")); err != nil {
			t.Fatal(err)
		}
		err := <-served
		if !fault.Is(err, mcpserver.HostGone) {
			t.Errorf("Serve returned %v", err)
		}
		if took := time.Since(start); took != mcpserver.WriteStall {
			t.Errorf("the session ended after %s", took)
		}
	})
}

func TestTheEndOfTheContextEndsTheSessionInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		in, toServer := io.Pipe()
		defer toServer.Close()
		fromServer, out := io.Pipe()
		served := make(chan error, 1)
		go func() {
			served <- mcpserver.Serve(ctx, mcpserver.Config{Name: "n", Version: "v", Registry: testTools(""),
				In: in, Out: out, Log: slog.New(slog.DiscardHandler), Instance: "bridge-1"})
			out.Close()
		}()
		go func() {
			io.WriteString(toServer, handshake+toolCall("1", "wait", `{"ms":5000}`))
			synctest.Wait()
			cancel()
		}()
		lines, err := io.ReadAll(fromServer)
		if err != nil {
			t.Fatal(err)
		}
		answered(t, strings.Split(strings.TrimSpace(string(lines)), "\n"), "0", "1")
		if err := <-served; err != nil {
			t.Errorf("Serve returned %v", err)
		}
	})
}

// nineteen is a table of the product's size.
func nineteen() *toolkit.Registry {
	r := toolkit.New()
	for k := range 19 {
		toolkit.Register(r, toolkit.Spec{Name: fmt.Sprintf("tool_%d", k), Description: strings.Repeat("word ", 60), Effect: toolkit.ReadOnly,
			Input:  json.RawMessage(`{"type":"object","properties":{"text":{"type":"string","maxLength":20,"pattern":"^[a-z]+$"},"number":{"type":"integer"}},"additionalProperties":false}`),
			Output: json.RawMessage(`{"type":"object","properties":{"a":{"type":"array","items":{"type":"object","properties":{"b":{"type":"string"}},"additionalProperties":false}}},"additionalProperties":false}`)},
			func(context.Context, toolkit.Call, struct {
				Text   string `json:"text"`
				Number int    `json:"number"`
			}) (any, error) {
				return nil, nil
			})
	}
	return r
}

// BenchmarkInitialize is a table of 19 tools, a session and the reply to initialize.
func BenchmarkInitialize(b *testing.B) {
	for b.Loop() {
		in, toServer := io.Pipe()
		fromServer, out := io.Pipe()
		served := make(chan error, 1)
		go func() {
			served <- mcpserver.Serve(b.Context(), mcpserver.Config{Name: "n", Version: "v", Registry: nineteen(),
				In: in, Out: out, Log: slog.New(slog.DiscardHandler), Instance: "bridge-1"})
			out.Close()
		}()
		io.WriteString(toServer, initialize)
		toServer.Close()
		if reply, err := io.ReadAll(fromServer); err != nil || !strings.Contains(string(reply), `"result"`) {
			b.Fatalf("%s, %v", reply, err)
		}
		if err := <-served; err != nil {
			b.Fatal(err)
		}
	}
}
