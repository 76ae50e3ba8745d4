package nativetools

import (
	"context"
	"strings"
	"time"

	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/native/threads"
	"github.com/agent-knock-knock/akk/internal/toolkit"
	"github.com/agent-knock-knock/akk/internal/turn/dispatch"
	"github.com/agent-knock-knock/akk/schemas"
)

const listThreadsDescription = `Lists the conversations (native threads) of the agent in a terminal that belong to its working directory, newest first, so that one can be resumed there.

Needs a terminal_id from agent_knock_knock_list. It only reads. A row with available_actions.resume_thread can be resumed for the next 5 minutes; the others say why not in unavailable_reason. previous is the thread that this terminal showed before its last change. Let the person choose when it is not plain which one is meant: selection_number and short_id are for showing, never arguments.`

type terminalInput struct {
	TerminalID ids.TerminalID `json:"terminal_id"`
}

type threadsOutput struct {
	TerminalID      ids.TerminalID   `json:"terminal_id"`
	Agent           string           `json:"agent"`
	AgentVersion    string           `json:"agent_version"`
	Workspace       string           `json:"workspace"`
	CurrentSession  *ids.SessionID   `json:"current_session_id"`
	CurrentThread   *string          `json:"current_native_thread_id"`
	Capability      threadCapability `json:"capability"`
	Snapshot        threadSnapshot   `json:"selection_snapshot"`
	Threads         []threadOutput   `json:"threads"`
	Truncated       bool             `json:"truncated"`
	PreviousKeyword *previousOutput  `json:"previous,omitempty"`
}

type threadCapability struct {
	Supported  bool     `json:"supported"`
	Operations []string `json:"operations"`
}

type threadSnapshot struct {
	Schema      string    `json:"schema"`
	Version     int       `json:"version"`
	SnapshotID  string    `json:"snapshot_id"`
	CreatedAt   time.Time `json:"created_at"`
	ExpiresAt   time.Time `json:"expires_at"`
	Scope       string    `json:"scope"`
	DisplayOnly bool      `json:"display_only"`
}

type threadOutput struct {
	ThreadID        string                     `json:"native_thread_id"`
	Agent           string                     `json:"agent"`
	Workspace       string                     `json:"workspace"`
	Title           string                     `json:"title"`
	Preview         string                     `json:"preview"`
	UpdatedAt       time.Time                  `json:"updated_at"`
	UpdatedAtMS     int64                      `json:"updated_at_ms"`
	Archived        bool                       `json:"archived"`
	Elsewhere       bool                       `json:"active_elsewhere"`
	Managed         ids.SessionID              `json:"managed_session_id,omitempty"`
	Resumable       bool                       `json:"resumable"`
	Unavailable     string                     `json:"unavailable_reason,omitempty"`
	SelectionNumber int                        `json:"selection_number"`
	ShortID         string                     `json:"short_id"`
	Handle          string                     `json:"selection_handle"`
	SelectionScope  string                     `json:"selection_scope"`
	Actions         map[string]dispatch.Action `json:"available_actions"`
}

type previousOutput struct {
	Keyword         string                     `json:"keyword"`
	ThreadID        string                     `json:"native_thread_id"`
	SelectionNumber int                        `json:"selection_number"`
	ShortID         string                     `json:"short_id"`
	Handle          string                     `json:"selection_handle"`
	Actions         map[string]dispatch.Action `json:"available_actions"`
}

// RegisterListResumableThreads adds the tool.
func RegisterListResumableThreads(r *toolkit.Registry, s *threads.Service) {
	name := prefix + "list_resumable_threads"
	toolkit.Register(r, toolkit.Spec{
		Name: name, Title: "AKK List Resumable Threads", Description: listThreadsDescription,
		Input: schemas.ToolInput(name), Output: schemas.ToolOutput(name), Effect: toolkit.ReadOnly,
	}, func(ctx context.Context, _ toolkit.Call, in terminalInput) (any, error) {
		res, err := s.ListResumable(ctx, in.TerminalID, 0)
		if err != nil {
			return nil, err
		}
		return newThreadsOutput(res), nil
	})
}

func newThreadsOutput(res threads.ThreadsResult) threadsOutput {
	t := res.Terminal
	out := threadsOutput{
		TerminalID: t.ID, Agent: t.Adapter.Kind(), AgentVersion: t.Native.Version, Workspace: strings.ToValidUTF8(t.Ref.Cwd, "\uFFFD"),
		CurrentSession: orNull(res.CurrentSession), CurrentThread: orNull(t.Native.ThreadID),
		Capability: threadCapability{true, []string{"new_thread", "resume_thread"}},
		Snapshot: threadSnapshot{"agent-knock-knock/thread-selection", 1, res.SnapshotID, res.CreatedAt, res.CreatedAt.Add(threads.SnapshotLife),
			"terminal_workspace", true},
		Threads: []threadOutput{}, Truncated: res.Cut,
	}
	for _, row := range res.Rows {
		o := threadOutput{
			ThreadID: row.Thread.ID, Agent: t.Adapter.Kind(), Workspace: strings.ToValidUTF8(row.Thread.Workspace, "\uFFFD"), Title: row.Thread.Title, Preview: row.Thread.Preview,
			UpdatedAt: row.Thread.UpdatedAt, UpdatedAtMS: row.Thread.UpdatedAt.UnixMilli(), Archived: row.Thread.Archived,
			Elsewhere: row.Unavailable == threads.ReasonElsewhere, Managed: row.Managed, Resumable: row.Resumable(), Unavailable: row.Unavailable,
			SelectionNumber: row.SelectionNumber, ShortID: ids.ShortRef(row.Thread.ID), Handle: res.Handle(row), SelectionScope: "current_snapshot",
			Actions: map[string]dispatch.Action{},
		}
		if row.Resumable() {
			o.Actions["resume_thread"] = threads.ResumeAction(t, row)
		}
		out.Threads = append(out.Threads, o)
	}
	if p := res.Previous; p != nil {
		out.PreviousKeyword = &previousOutput{"previous", p.Thread.ID, p.SelectionNumber, ids.ShortRef(p.Thread.ID), res.Handle(*p),
			map[string]dispatch.Action{"resume_thread": threads.ResumeAction(t, *p)}}
	}
	return out
}

// orNull is null for an empty id.
func orNull[T ~string](v T) *T {
	if v == "" {
		return nil
	}
	return &v
}
