package toolkit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/agent-knock-knock/akk/internal/toolkit"
)

// steps is the input of the tools of these tests, in milliseconds of the fake clock.
type steps struct {
	Commit int `json:"commit"` // when Committed is signalled; 0 for never
	Return int `json:"return"`
}

const stepsSchema = `{"type":"object","properties":{"commit":{"type":"integer"},"return":{"type":"integer"}},"additionalProperties":false}`

// diary records what happened when.
type diary struct {
	mu      sync.Mutex
	started map[string]time.Time // by call id
	settled map[string]time.Time // committed or returned
}

func (d *diary) table() *toolkit.Registry {
	d.started, d.settled = map[string]time.Time{}, map[string]time.Time{}
	note := func(at map[string]time.Time, id string) {
		d.mu.Lock()
		defer d.mu.Unlock()
		if _, again := at[id]; !again {
			at[id] = time.Now()
		}
	}
	r := toolkit.New()
	for name, effect := range map[string]toolkit.Effect{"change": toolkit.Mutating, "read": toolkit.ReadOnly} {
		toolkit.Register(r, toolkit.Spec{Name: name, Description: "d", Effect: effect, Input: json.RawMessage(stepsSchema)},
			func(ctx context.Context, call toolkit.Call, in steps) (any, error) {
				note(d.started, call.ID)
				start := time.Now()
				if in.Commit > 0 {
					<-time.After(time.Duration(in.Commit) * time.Millisecond)
					note(d.settled, call.ID)
					toolkit.Committed(ctx)
				}
				<-time.After(time.Duration(in.Return)*time.Millisecond - time.Since(start))
				note(d.settled, call.ID)
				return nil, nil
			})
	}
	return r
}

func TestCallsStartInTheOrderRule(t *testing.T) { // M23
	rapid.Check(t, func(rt *rapid.T) {
		type planned struct {
			Change         bool
			Commit, Return int
		}
		plan := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) planned {
			return planned{rapid.Bool().Draw(t, "change"), rapid.IntRange(0, 300).Draw(t, "commit"), rapid.IntRange(300, 600).Draw(t, "return")}
		}), 1, 8).Draw(rt, "plan")
		synctest.Test(t, func(t *testing.T) {
			var d diary
			s := d.table().Open("b", quiet)
			var wg sync.WaitGroup
			arrived := time.Now()
			ids := make([]string, len(plan))
			for i, p := range plan {
				tool := "read"
				if p.Change {
					tool = "change"
				}
				ids[i] = fmt.Sprintf(`host-bridge:["b",%d]`, i)
				ticket := s.Arrive(toolkit.Arrival{ID: json.RawMessage(fmt.Sprint(i)), Tool: tool})
				wg.Go(func() {
					args := fmt.Sprintf(`{"commit":%d,"return":%d}`, p.Commit, p.Return)
					if r, err := ticket.Run(t.Context(), json.RawMessage(args)); err != nil || r.IsError {
						t.Errorf("call %d: %+v, %v", i, r, err)
					}
				})
			}
			wg.Wait()
			for i := range plan {
				want := arrived // or when the last earlier change settled
				for j := range i {
					if plan[j].Change && d.settled[ids[j]].After(want) {
						want = d.settled[ids[j]]
					}
				}
				if got := d.started[ids[i]]; !got.Equal(want) {
					t.Errorf("call %d of %+v started at %s, want %s", i, plan, got.Sub(arrived), want.Sub(arrived))
				}
			}
		})
	})
}

func TestReadersDoNotWaitForReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d diary
		s := d.table().Open("b", quiet)
		start := time.Now()
		var wg sync.WaitGroup
		for i := range 5 {
			ticket := s.Arrive(toolkit.Arrival{ID: json.RawMessage(fmt.Sprint(i)), Tool: "read"})
			wg.Go(func() { ticket.Run(t.Context(), json.RawMessage(`{"return":1000}`)) })
		}
		wg.Wait()
		if took := time.Since(start); took != time.Second {
			t.Errorf("five readers took %s", took)
		}
	})
}

func TestATurnThatDoesNotComeIsRefusedAndSafeToRepeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d diary
		s := d.table().Open("b", quiet)
		first := s.Arrive(toolkit.Arrival{ID: json.RawMessage(`1`), Tool: "change"})
		second := s.Arrive(toolkit.Arrival{ID: json.RawMessage(`2`), Tool: "read"})
		go first.Run(t.Context(), json.RawMessage(`{"return":9000}`))
		start := time.Now()
		r, err := second.Run(t.Context(), json.RawMessage(`{"return":1}`))
		if err != nil || !r.IsError || !strings.Contains(string(r.Structured), `"code":"timeout"`) || !strings.Contains(string(r.Structured), `"retry":"safe"`) {
			t.Errorf("got %+v, %v", r, err)
		}
		if took := time.Since(start); took != toolkit.OrderWait {
			t.Errorf("waited %s", took)
		}
		if err := s.Drain(t.Context()); err != nil {
			t.Error(err)
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		if _, ran := d.started[`host-bridge:["b",2]`]; ran {
			t.Error("the refused call ran")
		}
	})
}

func TestARefusedOrReleasedCallLetsLaterCallsPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d diary
		s := d.table().Open("b", quiet)
		bad := s.Arrive(toolkit.Arrival{ID: json.RawMessage(`1`), Tool: "change"})
		lost := s.Arrive(toolkit.Arrival{ID: json.RawMessage(`2`), Tool: "change"})
		cancelled := s.Arrive(toolkit.Arrival{ID: json.RawMessage(`3`), Tool: "change"})
		last := s.Arrive(toolkit.Arrival{ID: json.RawMessage(`4`), Tool: "change"})
		if _, err := bad.Run(t.Context(), json.RawMessage(`{"x":1}`)); err == nil {
			t.Error("bad arguments were accepted")
		}
		lost.Release() // as when the protocol refused it
		cancelled.Cancel()
		if r, err := cancelled.Run(t.Context(), json.RawMessage(`{"return":1}`)); err != nil || !strings.Contains(string(r.Structured), `"retry":"safe"`) {
			t.Errorf("cancelled before its start: %+v, %v", r, err)
		}
		start := time.Now()
		if r, err := last.Run(t.Context(), json.RawMessage(`{"return":1}`)); err != nil || r.IsError {
			t.Errorf("got %+v, %v", r, err)
		}
		if took := time.Since(start); took != time.Millisecond {
			t.Errorf("the last call took %s", took)
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		if len(d.started) != 1 {
			t.Errorf("ran: %v", d.started)
		}
	})
}

// stubborn is a table with tools that end with their context, or do not.
func stubborn() *toolkit.Registry {
	r := toolkit.New()
	for name, effect := range map[string]toolkit.Effect{"change": toolkit.Mutating, "read": toolkit.ReadOnly} {
		toolkit.Register(r, toolkit.Spec{Name: name, Description: "d", Effect: effect,
			Input: json.RawMessage(`{"type":"object","properties":{"deaf":{"type":"boolean"}},"additionalProperties":false}`)},
			func(ctx context.Context, _ toolkit.Call, in struct {
				Deaf bool `json:"deaf"`
			}) (any, error) {
				if in.Deaf {
					<-time.After(time.Minute)
				}
				<-ctx.Done()
				return nil, context.Cause(ctx)
			})
	}
	return r
}

func TestEveryCallIsAnsweredWithinTheLimit(t *testing.T) { // M20
	for _, tc := range []struct {
		tool, args string
		took       time.Duration
		want       string
	}{
		{"read", `{}`, 9 * time.Second, `"retry":"safe"`},
		{"change", `{}`, 9 * time.Second, `"retry":"check_first"`},
		{"change", `{"deaf":true}`, toolkit.CallLimit, `"retry":"check_first"`},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := stubborn().Open("b", quiet)
			start := time.Now()
			r, err := call(t.Context(), s, tc.tool, tc.args)
			if took := time.Since(start); err != nil || took != tc.took || !r.IsError ||
				!strings.Contains(string(r.Structured), tc.want) || !strings.Contains(string(r.Structured), `"code":"timeout"`) {
				t.Errorf("%s %s: after %s got %+v, %v", tc.tool, tc.args, took, r, err)
			}
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errors.New("still running"))
			defer cancel()
			if err := s.Drain(ctx); (err != nil) != strings.Contains(tc.args, "deaf") {
				t.Errorf("%s %s: Drain gave %v", tc.tool, tc.args, err)
			}
			if err := s.Drain(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestACancellationReachesTheHandlerWithItsCause(t *testing.T) { // M19
	synctest.Test(t, func(t *testing.T) {
		s := stubborn().Open("b", quiet)
		ticket := s.Arrive(toolkit.Arrival{ID: json.RawMessage(`1`), Tool: "change"})
		start := time.Now()
		go func() { synctest.Wait(); ticket.Cancel() }()
		r, err := ticket.Run(t.Context(), nil)
		if err != nil || !strings.Contains(r.Text, "cancelled") || !strings.Contains(string(r.Structured), `"retry":"check_first"`) || time.Since(start) != 0 {
			t.Errorf("after %s got %+v, %v", time.Since(start), r, err)
		}
	})
}
