// Package tooltest drives a table of tools as a Host does: over pipes, through the real
// transport, line by line.
//
// It owns an in-process Host ([Start]) and the replay of reviewed transcripts ([Run]). It
// must never know a domain: the caller brings the registry. Only tests import it.
package tooltest

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/mcpserver"
	"github.com/agent-knock-knock/akk/internal/toolkit"
)

const (
	// Instance is the Bridge instance id of every session that Start opens.
	Instance ids.BridgeID = "bridge-00000000000000aa"
	// Patience bounds every wait for a line; it is far above what any call may take.
	Patience = 30 * time.Second
	// maxLine bounds one line from the server.
	maxLine = 16 << 20
)

// Host is the client end of one session. Its methods are for one goroutine.
type Host struct {
	tb     testing.TB
	in     *os.File // we write
	lines  chan string
	served chan error
	nextID int
}

// Start serves the registry on pipes and returns the Host's end, not yet initialized. The
// session is closed when the test ends. Results are checked against output schemas.
func Start(tb testing.TB, r *toolkit.Registry) *Host {
	tb.Helper()
	if err := r.Verify(); err != nil {
		tb.Fatal(err)
	}
	r.CheckOutput()
	serverIn, hostOut := pipe(tb)
	hostIn, serverOut := pipe(tb)
	h := &Host{tb: tb, in: hostOut, lines: make(chan string, 1024), served: make(chan error, 1)}
	ended := make(chan struct{})
	go func() {
		h.served <- mcpserver.Serve(tb.Context(), mcpserver.Config{
			Name: "agent-knock-knock-host-bridge", Version: "0.0.0-test", Registry: r,
			In: serverIn, Out: serverOut, Instance: Instance,
			Log: slog.New(slog.NewTextHandler(tb.Output(), &slog.HandlerOptions{Level: slog.LevelError})),
		})
		close(ended)
		_ = serverOut.Close() // the reader below sees the end
	}()
	go func() {
		defer close(h.lines)
		scan := bufio.NewScanner(hostIn)
		scan.Buffer(nil, maxLine)
		for scan.Scan() {
			h.lines <- scan.Text()
		}
	}()
	tb.Cleanup(func() {
		_ = hostOut.Close() // may be closed already
		for range h.lines {
		}
		<-ended
		_, _ = serverIn.Close(), hostIn.Close() // nothing reads them any more
	})
	return h
}

func pipe(tb testing.TB) (r, w *os.File) {
	tb.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		tb.Fatal(err)
	}
	return r, w
}

// Send writes the lines in one write, each with a newline.
func (h *Host) Send(lines ...string) {
	h.tb.Helper()
	var all []byte
	for _, l := range lines {
		all = append(append(all, l...), '\n')
	}
	if _, err := h.in.Write(all); err != nil {
		h.tb.Fatalf("write to the server: %v", err)
	}
}

// Line returns the next line of the server; the test fails when none comes.
func (h *Host) Line() string {
	h.tb.Helper()
	timer := time.NewTimer(Patience)
	defer timer.Stop()
	select {
	case l, ok := <-h.lines:
		if !ok {
			h.tb.Fatal("the server closed its output")
		}
		return l
	case <-timer.C:
		h.tb.Fatalf("the server was silent for %s", Patience)
	}
	return ""
}

// Reply is a JSON-RPC reply.
type Reply struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"` // of a notification
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *ReplyError     `json:"error"`
}

// ReplyError is the error of a reply.
type ReplyError struct {
	Code    int64  `json:"code"`
	Message string `json:"message"`
}

// Error renders the error.
func (e *ReplyError) Error() string { return fmt.Sprintf("JSON-RPC error %d: %s", e.Code, e.Message) }

// Reply returns the next line, decoded.
func (h *Host) Reply() Reply {
	h.tb.Helper()
	line := h.Line()
	var r Reply
	if err := json.Unmarshal([]byte(line), &r); err != nil {
		h.tb.Fatalf("not JSON-RPC on stdout: %q: %v", line, err)
	}
	return r
}

// Initialize does the handshake of the session era.
func (h *Host) Initialize() {
	h.tb.Helper()
	h.Send(Initialize, Initialized)
	if r := h.Reply(); r.Error != nil {
		h.tb.Fatalf("initialize: %v", r.Error)
	}
}

// The lines of the handshake.
const (
	Initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18",` +
		`"capabilities":{},"clientInfo":{"name":"tooltest","version":"0"}}}`
	Initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
)

// Outcome is the result of a tool call.
type Outcome struct {
	IsError    bool            `json:"isError"`
	Structured json.RawMessage `json:"structuredContent"`
	Content    []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	} `json:"content"`
}

// Call calls a tool with arguments that marshal to a JSON object (nil: none) and waits
// for its reply; notifications on the way are skipped. A JSON-RPC error comes as a
// *ReplyError.
func (h *Host) Call(tool string, args any) (Outcome, error) {
	h.tb.Helper()
	h.nextID++
	params := map[string]any{"name": tool}
	if args != nil {
		params["arguments"] = args
	}
	line, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": h.nextID, "method": "tools/call", "params": params})
	if err != nil {
		h.tb.Fatal(err)
	}
	h.Send(string(line))
	for {
		r := h.Reply()
		if string(r.ID) != fmt.Sprint(h.nextID) {
			continue
		}
		if r.Error != nil {
			return Outcome{}, r.Error
		}
		var out Outcome
		if err := json.Unmarshal(r.Result, &out); err != nil {
			h.tb.Fatalf("result of %s: %v", tool, err)
		}
		return out, nil
	}
}

// Close ends the input, returns the lines that still came and what Serve returned.
func (h *Host) Close() (rest []string, err error) {
	h.tb.Helper()
	if err := h.in.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		h.tb.Fatal(err)
	}
	timer := time.NewTimer(Patience)
	defer timer.Stop()
	for {
		select {
		case l, ok := <-h.lines:
			if !ok {
				return rest, <-h.served
			}
			rest = append(rest, l)
		case <-timer.C:
			h.tb.Fatalf("the session did not end within %s", Patience)
		}
	}
}
