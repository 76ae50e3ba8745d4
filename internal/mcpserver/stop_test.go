package mcpserver_test

import (
	"bytes"
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

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/mcpserver"
)

func TestWhatArrivesAfterTheStopIsTurnedAwayAndNotRun(t *testing.T) {
	in, toServer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	defer toServer.Close() // the input does not end
	if _, err := toServer.WriteString(handshake + toolCall("1", "add", "{}") + "{bad\n" + ping("2")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out bytes.Buffer
	if err := mcpserver.Serve(ctx, mcpserver.Config{Name: "n", Version: "v", Registry: testTools(""),
		In: in, Out: &out, Log: slog.New(slog.DiscardHandler), Instance: "bridge-1"}); err != nil {
		t.Fatal(err)
	}
	got := replies(t, strings.Split(strings.TrimSpace(out.String()), "\n"))
	if fmt.Sprint(got) != "[-32000 0 -32000 1 -32700 null -32000 2]" {
		t.Errorf("got %v", got)
	}
}

func TestAFloodThatNobodyReadsCannotHoldTheStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		in, toServer := io.Pipe()
		fromServer, out := io.Pipe() // nobody reads
		defer fromServer.Close()
		served := make(chan error, 1)
		go func() {
			served <- mcpserver.Serve(ctx, mcpserver.Config{Name: "n", Version: "v", Registry: testTools(""),
				In: in, Out: out, Log: slog.New(slog.DiscardHandler), Instance: "bridge-1"})
		}()
		flooded := make(chan struct{})
		go func() {
			defer close(flooded)
			// Each id makes the refusal long; together they are far above MaxQueued.
			frame := `{"jsonrpc":"2.0","id":"` + strings.Repeat("x", 1000) + `","method":"nope"}` + "\n"
			for range 4 * mcpserver.MaxQueued / 1000 {
				if _, err := io.WriteString(toServer, frame); err != nil {
					return
				}
			}
		}()
		synctest.Wait() // the queue is full, and the reader waits for it
		start := time.Now()
		cancel()
		err := <-served
		if !fault.Is(err, mcpserver.HostGone) {
			t.Errorf("Serve returned %v", err)
		}
		if took := time.Since(start); took > mcpserver.DrainLimit+mcpserver.CancelGrace {
			t.Errorf("the stop took %s", took)
		}
		<-flooded
	})
}

func TestRubbishDoesNotFloodTheLog(t *testing.T) {
	var log, out bytes.Buffer
	in := io.NopCloser(strings.NewReader(strings.Repeat("rubbish\n", 500)))
	if err := mcpserver.Serve(t.Context(), mcpserver.Config{Name: "n", Version: "v", Registry: testTools(""),
		In: in, Out: &out, Log: slog.New(slog.NewTextHandler(&log, nil)), Instance: "bridge-1"}); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(log.String(), "\n"); n < 10 || n > 60 {
		t.Errorf("%d log lines for 500 bad lines", n)
	}
	if n := strings.Count(out.String(), "-32700"); n != 500 {
		t.Errorf("%d replies for 500 bad lines", n)
	}
}

func TestOnReadyIsCalledOnceInEitherEra(t *testing.T) {
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	for name, tc := range map[string]struct {
		input string
		calls int
	}{
		"handshake":                       {handshake + handshake + ping("1"), 1},
		"no initialized notification":     {initialize + toolCall("1", "count", "{}") + toolCall("2", "count", "{}"), 1},
		"stateless discover":              {`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{` + meta + `}}` + "\n", 1},
		"stateless call":                  {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"count",` + meta + `}}` + "\n", 1},
		"only a ping":                     {ping("1"), 0},
		"a call without any introduction": {toolCall("1", "count", "{}"), 0},
	} {
		t.Run(name, func(t *testing.T) {
			calls := make(chan struct{}, 10)
			var out bytes.Buffer
			if err := mcpserver.Serve(t.Context(), mcpserver.Config{Name: "n", Version: "v", Registry: testTools(""),
				In: io.NopCloser(strings.NewReader(tc.input)), Out: &out, Log: slog.New(slog.DiscardHandler), Instance: "bridge-1",
				OnReady: func() { calls <- struct{}{} }}); err != nil {
				t.Fatal(err)
			}
			if len(calls) != tc.calls {
				t.Errorf("called %d times, want %d; output %s", len(calls), tc.calls, out.String())
			}
		})
	}
}

func TestAHostCannotForgeTheCallIdentity(t *testing.T) {
	var out bytes.Buffer
	forged := `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"add","arguments":{},` +
		`"_meta":{"Akk-Request":"r1","akk/call":"x"},"Akk-Request":"r1","inputResponses":{},"requestState":"x"}}` + "\n"
	if err := mcpserver.Serve(t.Context(), mcpserver.Config{Name: "n", Version: "v", Registry: testTools(""),
		In: io.NopCloser(strings.NewReader(handshake + forged)), Out: &out, Log: slog.New(slog.DiscardHandler), Instance: "bridge-1"}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	var last struct {
		Result struct {
			Structured struct {
				Call string `json:"call"`
			} `json:"structuredContent"`
		} `json:"result"`
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil || last.Result.Structured.Call != `host-bridge:["bridge-1",5]` {
		t.Errorf("got %s, %v", lines, err)
	}
}

func TestAToolThatWasAnsweredForIsStillWaitedFor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "effects")
	synctest.Test(t, func(t *testing.T) {
		in, toServer := io.Pipe()
		var out bytes.Buffer
		served := make(chan error, 1)
		go func() {
			served <- mcpserver.Serve(t.Context(), mcpserver.Config{Name: "n", Version: "v", Registry: testTools(path),
				In: in, Out: &out, Log: slog.New(slog.DiscardHandler), Instance: "bridge-1"})
		}()
		start := time.Now()
		if _, err := io.WriteString(toServer, handshake+toolCall("1", "slow", `{"ms":15000}`)); err != nil {
			t.Fatal(err)
		}
		pause(9000)
		toServer.Close() // the reply is due after one second more, the effect after six
		if err := <-served; err != nil {
			t.Errorf("Serve returned %v", err)
		}
		if took := time.Since(start); took != 15*time.Second {
			t.Errorf("the session ended after %s", took)
		}
	})
	if got := effects(t, path); len(got) != 1 {
		t.Errorf("the effect was not waited for: %q", got)
	}
}
