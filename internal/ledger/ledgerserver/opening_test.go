package ledgerserver_test

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ledger/coord"
	"github.com/agent-knock-knock/akk/internal/ledger/ledgerserver"
	"github.com/agent-knock-knock/akk/internal/ledger/ledgersql"
	"github.com/agent-knock-knock/akk/internal/store"
)

const (
	hello      = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}` + "\n"
	listTools  = `{"jsonrpc":"2.0","id":2,"method":"tools/list"}` + "\n"
	callATool  = `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"projects.list","arguments":{}}}` + "\n"
	askForPing = `{"jsonrpc":"2.0","id":4,"method":"ping"}` + "\n"
)

// The Host's greeting does not wait for the disk; what needs the ledger does, in its order.
func TestAClientIsGreetedWhileTheLedgerIsOpened(t *testing.T) {
	db, err := store.OpenMemory(t.Context(), store.Options{Sets: []store.Set{ledgersql.Tables()}})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	opened := make(chan struct{})
	server := ledgerserver.Opening(func() (*coord.Service, error) { <-opened; return coord.New(db), nil }, "1.0.0")
	out, w := io.Pipe()
	served := make(chan error, 1)
	go func() {
		served <- server.Serve(t.Context(), strings.NewReader(hello+listTools+callATool+askForPing), w)
		w.Close()
	}()
	replies := bufio.NewReader(out)
	for id := 1; id <= 4; id++ {
		if id == 3 {
			close(opened) // the first two came without it
		}
		line, err := replies.ReadString('\n')
		if err != nil || !strings.Contains(line, fmt.Sprintf(`"id":%d,"result"`, id)) {
			t.Fatalf("reply %d is %.200q, %v", id, line, err)
		}
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// reader calls end when it is read beyond its end.
type reader struct {
	*strings.Reader
	end func()
}

func (r *reader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil {
		r.end()
	}
	return n, err
}

// A ledger that cannot be opened ends the server with the cause, whether somebody waits for
// it or not, and who waits is told why.
func TestALedgerThatCannotBeOpenedEndsTheServerAndSaysWhy(t *testing.T) {
	cause := fault.New(store.CodeUnwritable, "store.open", "the disk is read-only").WithHint("name another file")
	fails := func() (*coord.Service, error) { return nil, cause }

	var out strings.Builder
	in, w := io.Pipe() // never ends by itself
	defer w.Close()
	if err := ledgerserver.Opening(fails, "1.0.0").Serve(t.Context(), in, &out); !fault.Is(err, store.CodeUnwritable) {
		t.Errorf("nobody asked: %v", err)
	}

	asked := make(chan struct{})
	late := func() (*coord.Service, error) { <-asked; return nil, cause }
	// Both messages are queued when more is read.
	lines := &reader{Reader: strings.NewReader(hello + callATool), end: sync.OnceFunc(func() { close(asked) })}
	replies, answers := io.Pipe()
	served := make(chan error, 1)
	go func() {
		served <- ledgerserver.Opening(late, "1.0.0").Serve(t.Context(), lines, answers)
		answers.Close()
	}()
	r := bufio.NewReader(replies)
	if line, err := r.ReadString('\n'); err != nil || !strings.Contains(line, `"id":1,"result"`) {
		t.Errorf("the greeting is %q, %v", line, err)
	}
	line, err := r.ReadString('\n')
	if err != nil || !strings.Contains(line, `"id":3,"error"`) || !strings.Contains(line, "the disk is read-only: name another file") {
		t.Errorf("the reply is %q, %v", line, err)
	}
	if err := <-served; !fault.Is(err, store.CodeUnwritable) {
		t.Errorf("served: %v", err)
	}
}
