package ledgerserver_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	h7Writers, h7Updates = 4, 200
	h7Cancelled          = 100
	h7Tries              = 1000                   // of one edit, against four others
	h7Slowest            = time.Second            // p99 of a call
	h7Upkeep             = 100 * time.Millisecond // between checkpoints and backups
)

// counter is an assignment whose agent's kind counts how often it was edited. Each edit is
// read, compared and replaced, so that a lost one shows in the number.
type counter struct {
	project, id string

	mu    sync.Mutex
	waits []time.Duration
}

// next reads the counter and returns the call that adds one.
func (c *counter) next(v *victim) (args, error) {
	read, err := c.call(v, "assignments.get", args{"project_id": c.project, "assignment_id": c.id})
	if err != nil {
		return nil, err
	}
	state := func(kind string) args {
		return args{"work_item_id": read["work_item_id"], "role_id": read["role_id"], "execution_mode": read["execution_mode"], "desired_agent": args{"kind": kind}}
	}
	n := c.number(read)
	return args{"project_id": c.project, "assignment_id": c.id, "expected": state(fmt.Sprintf("n%d", n)), "expected_updated_at": read["updated_at"],
		"replacement": state(fmt.Sprintf("n%d", n+1))}, nil
}

func (c *counter) number(record map[string]any) (n int) {
	agent, _ := record["desired_agent"].(map[string]any)
	kind, _ := agent["kind"].(string)
	_, _ = fmt.Sscanf(kind, "n%d", &n)
	return n
}

func (c *counter) call(v *victim, tool string, a args) (map[string]any, error) {
	begun := time.Now()
	out, err := v.call(tool, a)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waits = append(c.waits, time.Since(begun))
	return out, err
}

// add adds one, however often another writer was faster.
func (c *counter) add(v *victim) error {
	var err error
	for range h7Tries {
		var update args
		if update, err = c.next(v); err != nil {
			return err
		}
		if _, err = c.call(v, "assignments.update", update); err == nil {
			return nil
		}
		if !strings.Contains(err.Error(), "conflict") {
			return err // locked, busy, interrupted: nobody cancelled this
		}
	}
	return fmt.Errorf("another was faster %d times: %w", h7Tries, err)
}

// cancel sends an edit and takes it back at once. It reports whether it was answered, and
// with success.
func (c *counter) cancel(v *victim) (answered, done bool, err error) {
	update, err := c.next(v)
	if err != nil {
		return false, false, err
	}
	v.ids++
	call, ping := v.ids, v.ids+1
	v.ids++
	for _, m := range []args{
		{"jsonrpc": "2.0", "id": call, "method": "tools/call", "params": args{"name": "assignments.update", "arguments": update}},
		{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": args{"requestId": call}},
		{"jsonrpc": "2.0", "id": ping, "method": "ping"},
	} {
		raw, err := json.Marshal(m)
		if err == nil {
			_, err = v.in.Write(append(raw, '\n'))
		}
		if err != nil {
			return false, false, err
		}
	}
	for { // in whatever order
		line, err := v.out.ReadBytes('\n')
		if err != nil {
			return answered, done, err
		}
		var reply struct {
			ID     int
			Result struct{ IsError bool }
			Error  any
		}
		if err := json.Unmarshal(line, &reply); err != nil {
			return answered, done, err
		}
		if reply.ID == ping {
			return answered, done, nil
		}
		answered, done = true, reply.Error == nil && !reply.Result.IsError
	}
}

// H7: many processes and one file. Nobody is turned away because another writes, nothing
// that was accepted is lost, and what was taken back disturbs nobody.
func TestH7ManyWritersLoseNothingAndAreNeverTurnedAway(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ledger.db")
	all := make([]*victim, 8)
	for i := range all { // they find no file
		all[i] = spawn(t, file)
	}
	together(t, all, func(v *victim) error { _, err := v.call("projects.list", args{}); return err })
	v := all[0]
	project := v.must("projects.create", args{"name": "P"})["id"].(string)
	role := v.must("roles.create", args{"project_id": project, "name": "R"})["id"]
	item := v.must("work_items.create", args{"project_id": project, "title": "W"})["id"]
	c := &counter{project: project, id: v.must("assignments.create", args{"project_id": project, "work_item_id": item, "role_id": role, "desired_agent_kind": "n0"})["id"].(string)}

	busy, quiet := context.WithCancel(t.Context())
	defer quiet()
	writers := all[:h7Writers]
	canceller, reader, orphans := all[h7Writers], all[h7Writers+1], all[h7Writers+2:]
	var beside sync.WaitGroup
	var answered, unknown int
	beside.Go(func() {
		for range h7Cancelled {
			was, done, err := c.cancel(canceller)
			if err != nil {
				t.Error("cancelling:", err)
				return
			}
			if done {
				answered++
			} else if !was {
				unknown++
			}
		}
	})
	beside.Go(func() {
		for busy.Err() == nil {
			if _, err := c.call(reader, "assignments.list", args{"project_id": project}); err != nil {
				t.Error("reading:", err)
				return
			}
		}
	})
	beside.Go(func() { keepUp(t, busy, file) })
	together(t, writers, func(v *victim) error {
		for range h7Updates {
			if err := c.add(v); err != nil {
				return err
			}
		}
		return nil
	})
	quiet()
	beside.Wait()

	together(t, orphans, func(v *victim) error { // 20 in all
		for range 20 / len(orphans) {
			if _, err := v.call("work_items.create", args{"project_id": "proj_none", "title": "an orphan"}); err == nil || !strings.Contains(err.Error(), "not_found") {
				return fmt.Errorf("an orphan was not refused: %w", err)
			}
		}
		return nil
	})
	before := c.number(v.must("assignments.get", args{"project_id": project, "assignment_id": c.id}))
	if least := h7Writers*h7Updates + answered; before < least || before > least+unknown {
		t.Errorf("the counter is %d; %d edits were accepted, and of %d cancelled ones %d were not answered", before, least, h7Cancelled, unknown)
	}
	for range 50 { // the connections of the cancelled calls are as good as new
		if err := c.add(canceller); err != nil {
			t.Fatal(err)
		}
	}
	if p99 := percentile(c.waits, 99); p99 > h7Slowest {
		t.Errorf("p99 of %d calls is %v", len(c.waits), p99)
	} else {
		t.Logf("%d calls, p99 %v, counter %d, of %d cancelled %d done and %d unanswered", len(c.waits), p99, before, h7Cancelled, answered, unknown)
	}
	for _, v := range all {
		v.close()
	}
	whole(t, file, project)
}

// together does the same in all processes at the same moment.
func together(t *testing.T, all []*victim, do func(*victim) error) {
	t.Helper()
	var wg sync.WaitGroup
	for i, v := range all {
		wg.Go(func() {
			if err := do(v); err != nil {
				t.Errorf("process %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

// keepUp checkpoints and backs up the file, as another program of the operator's would.
func keepUp(t *testing.T, ctx context.Context, file string) {
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(5000)")
	if err != nil {
		t.Error(err)
		return
	}
	defer db.Close()
	often := time.NewTicker(h7Upkeep)
	defer often.Stop()
	for i := 0; ; i++ {
		select {
		case <-often.C:
		case <-ctx.Done():
			return
		}
		if _, err := db.Exec("PRAGMA wal_checkpoint(PASSIVE)"); err != nil {
			t.Error("checkpoint:", err)
			return
		}
		if _, err := db.Exec("VACUUM INTO ?", fmt.Sprintf("%s.copy-%d", file, i)); err != nil {
			t.Error("backup:", err)
			return
		}
	}
}

func percentile(d []time.Duration, p int) time.Duration {
	s := slices.Sorted(slices.Values(d))
	return s[(len(s)-1)*p/100]
}
