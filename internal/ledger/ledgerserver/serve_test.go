package ledgerserver_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
)

// talk serves the lines of in and returns the replies.
func talk(t *testing.T, c *client, in string) []map[string]any {
	t.Helper()
	var out strings.Builder
	if err := c.server.Serve(t.Context(), strings.NewReader(in), &out); err != nil {
		t.Fatal(err)
	}
	var replies []map[string]any
	for l := range strings.Lines(out.String()) {
		var m map[string]any
		if err := json.Unmarshal([]byte(l), &m); err != nil {
			t.Fatalf("%q: %v", l, err)
		}
		replies = append(replies, m)
	}
	return replies
}

func code(m map[string]any) int {
	e, _ := m["error"].(map[string]any)
	n, _ := e["code"].(float64)
	return int(n)
}

// Cases 3, 4, 5 and 58.
func TestBadLinesAreAnsweredAndTheServerLivesOn(t *testing.T) {
	c := newClient(t)
	ping := func(id string) string { return `{"jsonrpc":"2.0","id":` + id + `,"method":"ping"}` + "\n" }
	for name, x := range map[string]struct {
		line string
		code int
		id   any
	}{
		"no json":         {"{not json", -32700, nil},
		"blanks":          {"   ", -32700, nil},
		"batch":           {`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, -32600, nil},
		"wrong version":   {`{"jsonrpc":"1.0","id":9,"method":"ping"}`, -32600, 9.0},
		"no method":       {`{"jsonrpc":"2.0","id":9}`, -32600, 9.0},
		"method a number": {`{"jsonrpc":"2.0","id":9,"method":1}`, -32600, 9.0},
		"unknown method":  {`{"jsonrpc":"2.0","id":9,"method":"prompts/list"}`, -32601, 9.0},
		"unknown tool":    {`{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"no.tool"}}`, -32602, 9.0},
		"params an array": {`{"jsonrpc":"2.0","id":9,"method":"tools/call","params":[]}`, -32602, 9.0},
		"no params":       {`{"jsonrpc":"2.0","id":9,"method":"tools/call"}`, -32602, 9.0},
		"no such address": {`{"jsonrpc":"2.0","id":9,"method":"resources/read","params":{"uri":"cairnline://projects/none"}}`, -32002, 9.0},
		"no address":      {`{"jsonrpc":"2.0","id":9,"method":"resources/read","params":{}}`, -32602, 9.0},
		"20 MB":           {`{"jsonrpc":"2.0","id":9,"method":"ping","params":{"x":"` + strings.Repeat("x", 20<<20) + `"}}`, -32600, nil},
		"too deep":        {`{"jsonrpc":"2.0","id":9,"method":"ping","params":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}`, -32700, nil},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			got := talk(t, c, x.line+"\n\r\n\n"+ping(`"after"`))
			if len(got) != 2 || code(got[0]) != x.code || got[0]["id"] != x.id || got[1]["id"] != "after" {
				t.Fatalf("got %.300v", got)
			}
		})
	}
	silent := `{"jsonrpc":"2.0","method":"notifications/odd"}` + "\n" + `{"jsonrpc":"2.0","id":null,"method":"ping"}` + "\n" + `{"jsonrpc":"2.0","id":4,"result":{}}` + "\n"
	if got := talk(t, c, silent+ping("1")+"{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}"); len(got) != 2 || got[0]["id"] != 1.0 || got[1]["id"] != 2.0 {
		t.Errorf("got %v", got)
	}
}

// D7: what is sent without waiting is answered in its order, and a list sees every create
// before it.
func TestABurstIsAnsweredInOrder(t *testing.T) {
	c := newClient(t)
	var in strings.Builder
	const n = 1000
	for i := range n {
		fmt.Fprintf(&in, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"projects.create","arguments":{"name":"p%d"}}}`+"\n", i, i)
	}
	fmt.Fprintf(&in, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"projects.list","arguments":{"limit":1000}}}`+"\n", n)
	got := talk(t, c, in.String())
	if len(got) != n+1 {
		t.Fatalf("%d replies", len(got))
	}
	for i, m := range got {
		if m["id"] != float64(i) {
			t.Fatalf("reply %d has the id %v", i, m["id"])
		}
	}
	items := got[n]["result"].(map[string]any)["structuredContent"].(map[string]any)["items"].([]any)
	if len(items) != n {
		t.Errorf("the list saw %d of %d", len(items), n)
	}
}

// A request that is cancelled while it waits is not carried out and has no reply.
func TestACancelledRequestThatWaitsIsNotCarriedOut(t *testing.T) {
	c := newClient(t)
	in, feed := io.Pipe()
	out, replies := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := c.server.Serve(t.Context(), in, replies)
		replies.Close()
		ended <- err
	}()
	call := func(id int, name string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"projects.create","arguments":{"name":%q}}}`+"\n", id, name)
	}
	// Nobody reads replies yet: the first one is held in the pipe, so that the others wait.
	if _, err := io.WriteString(feed, call(1, "one")); err != nil {
		t.Fatal(err)
	}
	first := make([]byte, 1)
	if _, err := io.ReadFull(out, first); err != nil { // its reply is being written
		t.Fatal(err)
	}
	// The second piece is taken only after every line of the first one was looked at.
	for _, piece := range []string{call(2, "two") + call(3, "three") + `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}` + "\n", call(4, "four")} {
		if _, err := io.WriteString(feed, piece); err != nil {
			t.Fatal(err)
		}
	}
	feed.Close()
	r := bufio.NewReader(io.MultiReader(strings.NewReader(string(first)), out))
	var ids []float64
	for {
		l, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		var m map[string]any
		if err := json.Unmarshal(l, &m); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, m["id"].(float64))
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(ids) != "[1 3 4]" {
		t.Errorf("replies to %v", ids)
	}
	if got := c.ok("projects.list", nil); got.n("items") != 3 {
		t.Errorf("%d projects", got.n("items"))
	}
}

func TestTheEndOfItsContextEndsTheServer(t *testing.T) {
	c := newClient(t)
	ctx, cancel := context.WithCancel(t.Context())
	in, feed := io.Pipe()
	defer feed.Close()
	ended := make(chan error, 1)
	go func() { ended <- c.server.Serve(ctx, in, io.Discard) }()
	cancel()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it still serves")
	}
}

// Cases 2, 7, 47, 48.
func TestTheCatalogueAndTheResourcesAreWhatHostsExpect(t *testing.T) {
	d := newDesk(t)
	one, two := d.message("tools/list", nil), d.message("tools/list", nil)
	tools := one["result"].(map[string]any)["tools"].([]any)
	if len(tools) != 78 || fmt.Sprint(one["result"]) != fmt.Sprint(two["result"]) {
		t.Errorf("%d tools, or not the same twice", len(tools))
	}
	for _, raw := range tools {
		tool := raw.(map[string]any)
		a := tool["annotations"].(map[string]any)
		if len(a) != 4 || tool["description"] == "" || tool["inputSchema"].(map[string]any)["type"] != "object" {
			t.Errorf("%v", tool["name"])
		}
		if got := d.call(tool["name"].(string), []any{}); got.rpc != 0 { // every name has a handler
			t.Errorf("%v: %d", tool["name"], got.rpc)
		}
	}
	d.ok("memory_candidates.create", d.with("title", "C", "body", "b"))
	list := d.message("resources/list", nil)["result"].(map[string]any)["resources"].([]any)
	if len(list) != 1+1+2+2+1 {
		t.Errorf("%d resources", len(list))
	}
	for _, raw := range list {
		r := raw.(map[string]any)
		got := d.message("resources/read", args{"uri": r["uri"]})
		contents := got["result"].(map[string]any)["contents"].([]any)[0].(map[string]any)
		if contents["mimeType"] != r["mimeType"] || contents["uri"] != r["uri"] || contents["text"] == "" {
			t.Errorf("%v: %.200v", r["uri"], got)
		}
	}
	view := d.message("resources/read", args{"uri": "ui://cairnline/project-status"})["result"].(map[string]any)["contents"].([]any)[0].(map[string]any)
	text := view["text"].(string)
	if view["mimeType"] != "text/html;profile=mcp-app" || !strings.HasPrefix(text, "<!doctype html>") ||
		!strings.Contains(text, `content="default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'"`) {
		t.Error("the view is not what hosts render")
	}
	for _, outward := range []string{"http://", "https://", "src=", "href=", "innerHTML", "eval(", "localStorage"} {
		if strings.Contains(text, outward) {
			t.Errorf("the view holds %s", outward)
		}
	}
}

// Cases 40, 41, 59: whatever the arguments are, a known tool answers with the envelope.
func TestOddArgumentsAreInvalid(t *testing.T) {
	d := newDesk(t)
	for _, a := range []any{nil, "x", []any{}, 5, args{"id": 5}, args{"id": nil}, args{"id": args{}}} {
		d.fails("invalid", "projects.get", a)
	}
	d.ok("projects.list", nil)
	d.ok("projects.create", args{"name": "x", "no_such_member": 1, "NAME": "case does not matter"})
	d.fails("already_exists", "skills.create", args{"project_id": d.project, "id": d.ok("skills.create", d.with("id", "Code Review", "enabled", false)).is("enabled", false, "id", "code-review").id()})
	d.fails("already_exists", "projects.create", args{"name": "x", "roots": []args{{"id": "r", "path": "/a"}, {"id": "r", "path": "/b"}}}) // D15
	long := strings.Repeat("é", 100000)
	got := d.ok("work_items.create", d.with("title", long, "brief", "<b>&\x00\u202e'\"; DROP TABLE x")) // case 57
	d.ok("work_items.get", d.with("id", got.id())).is("title", long, "brief", "<b>&\x00\u202e'\"; DROP TABLE x")
	d.fails("invalid", "work_items.create", d.with("title", strings.Repeat("x", 300000)))
}
