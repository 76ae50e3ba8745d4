package ledgerserver_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/ledger/coord"
	"github.com/agent-knock-knock/akk/internal/ledger/ledgerserver"
	"github.com/agent-knock-knock/akk/internal/ledger/ledgersql"
	"github.com/agent-knock-knock/akk/internal/store"
)

const (
	serverEnv = "AKK_LEDGER_TEST_SERVER" // file of a ledger: be its server on stdio
	roundsEnv = "AKK_LEDGER_KILLS"       // how often a server is killed
)

// TestMain lets the test binary be a server that can be killed.
func TestMain(m *testing.M) {
	if file := os.Getenv(serverEnv); file != "" {
		if err := serveFile(context.Background(), file); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func serveFile(ctx context.Context, file string) error {
	db, err := store.OpenFile(ctx, file, store.Options{Sets: []store.Set{ledgersql.Tables()}})
	if err != nil {
		return err
	}
	defer db.Close()
	return ledgerserver.New(coord.New(db), "1.0.0").Serve(ctx, os.Stdin, os.Stdout)
}

// victim is a server process, spoken to over its pipes.
type victim struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
	ids int

	left  int           // calls until begun closes
	begun chan struct{} // closed when that call was sent
}

func spawn(t *testing.T, file string) *victim {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), serverEnv+"="+file)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return &victim{t: t, cmd: cmd, in: in, out: bufio.NewReader(out)}
}

var errGone = errors.New("the server is gone")

// call returns errGone when no whole reply came.
func (v *victim) call(tool string, a args) (map[string]any, error) {
	v.t.Helper()
	v.ids++
	raw, err := json.Marshal(args{"jsonrpc": "2.0", "id": v.ids, "method": "tools/call", "params": args{"name": tool, "arguments": a}})
	if err != nil {
		v.t.Fatal(err)
	}
	if _, err := v.in.Write(append(raw, '\n')); err != nil {
		return nil, errGone
	}
	if v.left--; v.left == 0 {
		close(v.begun)
	}
	line, err := v.out.ReadBytes('\n')
	if err != nil {
		return nil, errGone
	}
	var reply struct {
		ID     int
		Result struct {
			IsError           bool
			StructuredContent map[string]any
		}
	}
	if err := json.Unmarshal(line, &reply); err != nil || reply.ID != v.ids || reply.Result.StructuredContent == nil {
		v.t.Fatalf("%s: %v in %s", tool, err, line)
	}
	if reply.Result.IsError {
		return nil, fmt.Errorf("%s: %v", tool, reply.Result.StructuredContent["error"])
	}
	return reply.Result.StructuredContent, nil
}

// must is call on a server that lives.
func (v *victim) must(tool string, a args) map[string]any {
	v.t.Helper()
	out, err := v.call(tool, a)
	if err != nil {
		v.t.Fatal(err)
	}
	return out
}

// close ends the server in order.
func (v *victim) close() {
	v.t.Helper()
	v.in.Close()
	if err := v.cmd.Wait(); err != nil {
		v.t.Errorf("the server ended with %v", err)
	}
}

func rounds(t *testing.T) int {
	t.Helper()
	n := 6
	if text := os.Getenv(roundsEnv); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil || n < 1 {
			t.Fatalf("%s=%q", roundsEnv, text)
		}
	}
	return n
}

// told is what servers acknowledged before they died.
type told struct {
	items    []string
	finished map[string]string // assignment to its fence
	accepted []promise
}

// promise is an acceptance that was asked for. Its assignment is empty when no answer came.
type promise struct {
	request    args
	assignment string
}

// load works until the server is gone.
func (d *told) load(v *victim, project, role string) error {
	with := func(pairs ...any) args {
		a := args{"project_id": project}
		for i := 0; i < len(pairs); i += 2 {
			a[pairs[i].(string)] = pairs[i+1]
		}
		return a
	}
	str := func(m map[string]any, key string) string { s, _ := m[key].(string); return s }
	for {
		item, err := v.call("work_items.create", with("title", "W"))
		if err != nil {
			return err
		}
		w := str(item, "id")
		d.items = append(d.items, w)
		a, err := v.call("assignments.create", with("work_item_id", w, "role_id", role))
		if err != nil {
			return err
		}
		claimed, err := v.call("assignments.claim", with("assignment_id", a["id"], "claimed_by", "w"))
		if err != nil {
			return err
		}
		fence := str(claimed["claim"].(map[string]any), "id")
		if _, err := v.call("assignments.complete", with("assignment_id", a["id"], "claim_id", fence)); err != nil {
			return err
		}
		d.finished[str(a, "id")] = fence
		h, err := v.call("handoffs.create", with("work_item_id", w, "title", "H", "body", "b", "to_role_id", role))
		if err != nil {
			return err
		}
		p := promise{request: with("work_item_id", w, "handoff_id", h["id"], "expected_updated_at", h["updated_at"], "idempotency_key", "key of "+w, "intent", "accept_and_ensure_follow_up")}
		got, err := v.call("handoffs.accept_with_follow_up", p.request)
		if err == nil {
			p.assignment = str(got["assignment"].(map[string]any), "id")
		}
		d.accepted = append(d.accepted, p)
		if err != nil {
			return err
		}
	}
}

// check asks a new server for all that was acknowledged.
func (d *told) check(v *victim, project string) {
	v.t.Helper()
	for _, w := range d.items {
		v.must("work_items.get", args{"project_id": project, "id": w})
	}
	for a, fence := range d.finished {
		got := v.must("assignments.get", args{"project_id": project, "assignment_id": a})
		if got["status"] != "completed" || got["claim"].(map[string]any)["id"] != fence {
			v.t.Errorf("%s was acknowledged as completed under %s and is %v", a, fence, got)
		}
	}
	for i, p := range d.accepted { // each is asked again: the first answer stands, or there is a first one now
		got := v.must("handoffs.accept_with_follow_up", p.request)
		id := got["assignment"].(map[string]any)["id"].(string)
		if p.assignment != "" && (id != p.assignment || got["replayed"] != true) {
			v.t.Errorf("acceptance of %s again: %v", p.assignment, got)
		}
		d.accepted[i].assignment = id
	}
}

// Cases 29, 33 and 53, H7: a server is killed at any moment while it works; what it
// acknowledged is stored, receipts still answer, the file is whole and its counters right.
func TestWhatAKilledServerAcknowledgedIsStored(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ledger.db")
	v := spawn(t, file)
	project := v.must("projects.create", args{"name": "P"})["id"].(string)
	role := v.must("roles.create", args{"project_id": project, "name": "R"})["id"].(string)
	v.close()
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 1))
	t.Logf("seed %d", seed)
	d := &told{finished: map[string]string{}}
	for range rounds(t) {
		v := spawn(t, file)
		v.must("projects.get", args{"id": project})
		died := make(chan struct{})
		v.begun, v.left = make(chan struct{}), 1+random.IntN(40)
		moment := time.Duration(random.Int64N(int64(3 * time.Millisecond)))
		go func() { // somewhere in that call, or soon after it
			defer close(died)
			<-v.begun
			<-time.NewTimer(moment).C
			if err := v.cmd.Process.Kill(); err != nil {
				t.Error(err)
			}
		}()
		if err := d.load(v, project, role); !errors.Is(err, errGone) {
			t.Fatal(err)
		}
		<-died
		_ = v.cmd.Wait() // it was killed
		after := spawn(t, file)
		d.check(after, project)
		after.close()
	}
	if len(d.items) == 0 {
		t.Error("nothing was acknowledged at all")
	}
	whole(t, file, project)
}

// whole opens the file once more: SQLite finds it whole, and what triggers counted is what
// is there.
func whole(t *testing.T, file, project string) {
	t.Helper()
	db, err := store.OpenFile(t.Context(), file, store.Options{Sets: []store.Set{ledgersql.Tables()}})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	s := coord.New(db)
	var verdict string
	if err := db.View(t.Context(), func(tx *store.Tx) error { return tx.QueryRow("PRAGMA integrity_check").Scan(&verdict) }); err != nil || verdict != "ok" {
		t.Errorf("integrity: %s, %v", verdict, err)
	}
	snap, err := s.ExportSnapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b, err := s.OperationsBrief(t.Context(), project)
	if err != nil || b.Counts.WorkItems != len(snap.WorkItems) || b.Counts.Assignments != len(snap.Assignments) {
		t.Errorf("counted %+v, stored %d items and %d assignments, %v", b.Counts, len(snap.WorkItems), len(snap.Assignments), err)
	}
}
