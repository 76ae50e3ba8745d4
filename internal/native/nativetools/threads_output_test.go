package nativetools

import (
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/agent/codex"
	"github.com/agent-knock-knock/akk/internal/discover"
	"github.com/agent-knock-knock/akk/internal/native"
	"github.com/agent-knock-knock/akk/internal/native/threads"
	"github.com/agent-knock-knock/akk/internal/testkit/tooltest"
)

func TestResultsOfThreadToolsFitTheirSchemas(t *testing.T) {
	const id, terminal = "01a23471-6914-7673-968c-22726edf667e", "terminal:v2:tmux:codex:a:0.0:1"
	term := discover.Terminal{ID: terminal, Adapter: codex.New(codex.Options{}), Native: agent.Native{Version: "0.171.0", ThreadID: id}}
	row := threads.ThreadRow{Thread: agent.Thread{ID: id, UpdatedAt: time.Unix(1_700_000_000, 0)}, SelectionNumber: 1}
	taken := row
	taken.Unavailable, taken.Managed = threads.ReasonElsewhere, "session-20260102T030405-00000000"
	full := threads.ThreadsResult{Terminal: term, SnapshotID: "snapshot-1", Rows: []threads.ThreadRow{row, taken}, Previous: &row, CurrentSession: taken.Managed}
	change := native.Transition{ID: "transition-1", Terminal: terminal, Status: native.Committed, ThreadID: id, FromThread: id, SessionID: taken.Managed, BindingID: "binding-1", Generation: 1}
	of := func(op native.Operation, status native.Status) threads.ChangeResult {
		c := change
		c.Operation = op
		if c.Status = status; status != native.Committed {
			c.ThreadID, c.SessionID, c.BindingID, c.Generation, c.Reason = "", "", "", 0, "why"
		}
		return threads.ChangeResult{Transition: c}
	}
	already := threads.ChangeResult{AlreadyActive: true, Transition: of(native.ResumeThread, native.Committed).Transition}
	for name, c := range map[string]struct {
		tool, args string
		out        any
	}{
		"a full listing":   {"list_resumable_threads", "", newThreadsOutput(full)},
		"an empty listing": {"list_resumable_threads", "", newThreadsOutput(threads.ThreadsResult{Terminal: term})},
		"a new thread":     {"new_thread", "", newChangeOutput(of(native.NewThread, native.Committed))},
		"an uncertain one": {"new_thread", "", newChangeOutput(of(native.NewThread, native.Uncertain))},
		"a resumed thread": {"resume_thread", `,"native_thread_id":"` + id + `"`, newChangeOutput(of(native.ResumeThread, native.Committed))},
		"a refused one":    {"resume_thread", `,"native_thread_id":"` + id + `"`, newChangeOutput(of(native.ResumeThread, native.Aborted))},
		"already there":    {"resume_thread", `,"native_thread_id":"` + id + `"`, newChangeOutput(already)},
		"untied": {"reconcile_binding", `,"conflicting_session_id":"` + string(taken.Managed) + `"`, reconcileOutput{Status: "reconciled",
			Outcome: "detached_conflicting_binding", ConflictKind: threads.ConflictClaimed, TerminalID: terminal, SessionID: taken.Managed, Revision: 2, Refresh: true}},
	} {
		t.Run(name, func(t *testing.T) {
			fits := tooltest.Fits[terminalInput]
			switch c.tool {
			case "resume_thread":
				fits = tooltest.Fits[resumeInput]
			case "reconcile_binding":
				fits = tooltest.Fits[reconcileInput]
			}
			fits(t, prefix+c.tool, `{"terminal_id":"`+terminal+`"`+c.args+`}`, c.out)
		})
	}
}
