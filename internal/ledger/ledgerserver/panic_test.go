package ledgerserver_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/agent-knock-knock/akk/internal/ledger/ledgerserver"
)

type panicReply struct {
	ID     int
	Result struct {
		IsError           bool
		Content           []struct{ Text string }
		StructuredContent struct {
			Error struct{ Code, Message string }
		}
	}
	Error struct {
		Code    int
		Message string
	}
}

// A defect of one tool costs that call: it is answered as internal, the log says where it
// is, and the next message is served. A nil ledger makes every tool panic.
func TestAPanicCostsOneCallAndIsLogged(t *testing.T) {
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })

	s := ledgerserver.New(nil, "1.0.0")
	in := strings.Join([]string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"projects.list"}}`,
		`{"jsonrpc":"2.0","method":"tools/call","params":{"name":"projects.list"}}`,
		`{"jsonrpc":"2.0","id":2,"method":"resources/list"}`,
		`{"jsonrpc":"2.0","id":3,"method":"ping"}`}, "\n")
	var out bytes.Buffer
	if err := s.Serve(t.Context(), strings.NewReader(in), &out); err != nil {
		t.Fatal(err)
	}
	var got []panicReply
	dec := json.NewDecoder(&out)
	for dec.More() {
		got = append(got, panicReply{})
		if err := dec.Decode(&got[len(got)-1]); err != nil {
			t.Fatal(err)
		}
	}
	if len(got) != 3 || got[2].ID != 3 || got[2].Error.Code != 0 {
		t.Fatalf("%+v", got)
	}
	if r := got[0].Result; !r.IsError || r.StructuredContent.Error.Code != "internal" || r.StructuredContent.Error.Message != r.Content[0].Text {
		t.Errorf("the call: %+v", got[0])
	}
	if got[1].Error.Code != -32603 {
		t.Errorf("the resources: %+v", got[1])
	}
	if n := strings.Count(log.String(), "nil pointer"); n != 3 || !strings.Contains(log.String(), "projects.list") || !strings.Contains(log.String(), "stack=") {
		t.Errorf("%d panics in the log:\n%s", n, log.String())
	}
	for _, secretive := range []string{"nil pointer", "goroutine"} {
		if strings.Contains(got[0].Result.Content[0].Text, secretive) {
			t.Errorf("the caller is told %q", got[0].Result.Content[0].Text)
		}
	}
}
