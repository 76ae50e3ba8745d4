package watcher

import (
	"context"
	"time"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/discover"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/outbox/outboxsql"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/turn"
	"github.com/agent-knock-knock/akk/internal/turn/turnsql"
	"github.com/agent-knock-knock/akk/internal/watch"
	"github.com/agent-knock-knock/akk/internal/watch/watchsql"
)

const (
	// taskLimit bounds the search for the task that runs: an agent shows that it works
	// before its records do, Claude Code up to some seconds on a busy machine.
	taskLimit = 6 * time.Second
	taskPause = 500 * time.Millisecond
	// armLimit bounds the start of the monitor.
	armLimit = 6 * time.Second
	// recordLimit bounds the commit of a Watch whose caller went away.
	recordLimit = 5 * time.Second
)

// WatchInput asks for a Watch.
type WatchInput struct {
	CallID      string
	TerminalID  ids.TerminalID
	Mode        watch.Mode    // "": watch.ModeTask
	HardTimeout time.Duration // 0: watch.DefaultHard
	Stored      func()        // called once the Watch is durable; may be nil
}

// WatchResult is the answer of Watch.
type WatchResult struct {
	Watch    watch.View `json:"watch"`
	Replayed bool       `json:"replayed"`
}

// Watch begins to observe the task that a person started in a terminal. The terminal must
// work or wait for a decision, show exactly one native thread, and carry no Turn of ours.
// An error means that no Watch was made. The same call again returns the same Watch.
func (s *Service) Watch(ctx context.Context, in WatchInput) (WatchResult, error) {
	if in.Mode == "" {
		in.Mode = watch.ModeTask
	}
	if in.HardTimeout <= 0 {
		in.HardTimeout = watch.DefaultHard
	}
	if err := s.DB.CheckWritable(); err != nil {
		return WatchResult{}, err
	}
	if err := s.CheckProfile(); err != nil {
		return WatchResult{}, err
	}
	if row, ok, err := s.replay(ctx, in); err != nil || ok {
		return s.result(ctx, row.Watch.ID, true, err)
	}
	term, err := s.Scanner.Find(ctx, in.TerminalID)
	if err != nil {
		return WatchResult{}, err
	}
	w, err := s.describe(ctx, in, term)
	if err != nil {
		return WatchResult{}, err
	}
	replayed, err := s.store(ctx, in, &w)
	if err != nil || replayed {
		return s.result(ctx, w.ID, replayed, err)
	}
	if in.Stored != nil {
		in.Stored()
	}
	s.Log.Info("watch created", "watch", w.ID, "terminal", w.Terminal, "mode", w.Mode)
	s.arm(ctx, w)
	res, err := s.result(ctx, w.ID, false, nil)
	if err != nil { // it is made, whatever the second look says
		res = WatchResult{Watch: w.View(watch.Counts{}, true)}
	}
	return res, nil
}

func (s *Service) result(ctx context.Context, id ids.WatchID, replayed bool, err error) (WatchResult, error) {
	if err != nil {
		return WatchResult{}, err
	}
	v, err := s.One(ctx, id)
	return WatchResult{Watch: v, Replayed: replayed}, err
}

// replay finds the Watch that the same call made before.
func (s *Service) replay(ctx context.Context, in WatchInput) (row watchsql.Row, ok bool, err error) {
	err = s.DB.View(ctx, func(tx *store.Tx) (err error) {
		row, ok, err = replayed(tx, in)
		return err
	})
	return row, ok, err
}

func replayed(tx *store.Tx, in WatchInput) (watchsql.Row, bool, error) {
	row, ok, err := watchsql.ByCallKey(tx, in.CallID)
	if err != nil || !ok {
		return row, false, err
	}
	w := row.Watch
	if w.Terminal != in.TerminalID || w.Mode != in.Mode || w.DeadlineAt.Sub(w.CreatedAt) != in.HardTimeout.Truncate(time.Millisecond) {
		return row, false, fault.New(watch.CodeReplay, "watcher.watch", "this call made %s of another terminal, mode or timeout", w.ID).
			WithHint("make a new call for another watch")
	}
	return row, true, nil
}

// describe proves that the terminal runs something that can be watched, and what.
func (s *Service) describe(ctx context.Context, in WatchInput, t discover.Terminal) (watch.Watch, error) {
	if err := watchable(t); err != nil {
		return watch.Watch{}, err
	}
	if err := s.DB.View(ctx, func(tx *store.Tx) error { return unmanaged(tx, t.Key(), t.ID) }); err != nil {
		return watch.Watch{}, err
	}
	w := watch.Watch{ID: ids.NewWatch(), CallKey: in.CallID, Origin: s.Bridge, Mode: in.Mode, Agent: t.Adapter.Kind(), AgentVersion: t.Native.Version,
		Terminal: t.ID, Endpoint: t.Ref.Endpoint, Process: t.Ref.Process, Workspace: t.Ref.Cwd}
	if t.Native.Thread == agent.ThreadResolved {
		w.ThreadID = t.Native.ThreadID
	}
	if in.Mode == watch.ModeActivity {
		w.TaskKey = "terminal|" + t.Key()
		w.Seen = true // it is active now
		w.Anchor = turn.Anchor{Agent: w.Agent, Channel: t.Native.Channel, ThreadID: w.ThreadID}
		return w, nil
	}
	task, err := s.task(ctx, t)
	w.TaskKey, w.Anchor = task.Key, task.Anchor
	return w, err
}

// watchable returns nil when the terminal works or waits for a decision, provably.
func watchable(t discover.Terminal) error {
	const op = "watcher.watch"
	if t.Conflict != "" {
		return fault.New(watch.CodeUnproved, op, "%s is ambiguous: %s", t.ID, t.Conflict).WithHint("use a pane that holds one agent")
	}
	switch state, reason := discover.Combine(t.Native, t.Screen); state {
	case discover.Working, discover.Awaiting:
		return nil
	case discover.Idle:
		return fault.New(watch.CodeIdle, op, "%s is idle: there is no task to watch", t.ID).
			WithHint("agent_knock_knock_send gives it one and reports by itself")
	default:
		return fault.New(watch.CodeUnproved, op, "nobody can tell what %s does: %s", t.ID, reason).WithHint("look at the pane")
	}
}

// unmanaged refuses a terminal that a Turn of ours keeps.
func unmanaged(tx *store.Tx, key string, id ids.TerminalID) error {
	rows, err := turnsql.List(tx, "WHERE blocking = 1 AND endpoint_key = ?", 1, key)
	if err != nil || len(rows) == 0 {
		return err
	}
	return fault.New(watch.CodeManaged, "watcher.watch", "%s carries turn %s of ours", id, rows[0].Turn.ID).
		WithHint("its own callback reports the task; look at it with agent_knock_knock_status")
}

// unwatched refuses a task that is watched under another name: what names a task may
// change once its first record is written, its request does not.
func unwatched(tx *store.Tx, w watch.Watch) error {
	if w.Mode != watch.ModeTask || w.Anchor.RequestHash == "" {
		return nil
	}
	rows, err := watchsql.List(tx, "WHERE active = 1 AND endpoint_key = ?", shownLimit, w.TerminalKey())
	for _, r := range rows {
		if had := r.Watch; r.Damaged == nil && had.Mode == w.Mode && had.ThreadID == w.ThreadID && had.Anchor.RequestHash == w.Anchor.RequestHash {
			return watchsql.Conflict(had.ID)
		}
	}
	return err
}

// task asks the agent's records for the task that runs.
func (s *Service) task(ctx context.Context, t discover.Terminal) (agent.Task, error) {
	const op = "watcher.watch"
	finder, ok := t.Adapter.(agent.TaskFinder)
	if !ok {
		return agent.Task{}, fault.New(fault.Unavailable, op, "the task of %s cannot be told apart", t.Adapter.Kind()).WithHint("watch it with mode terminal_activity")
	}
	ctx, cancel := context.WithTimeout(ctx, taskLimit)
	defer cancel()
	for {
		task, err := finder.CurrentTask(ctx, t.Ref, t.Native)
		switch {
		case err == nil && task.Key == "":
			return task, fault.New(fault.Internal, op, "the task has no name")
		case err == nil:
			return task, nil
		case !fault.Is(err, agent.CodeNoTask):
			return task, fault.Wrap(err, fault.CodeOf(err), op, "the task of %s cannot be told: %s", t.ID, public(err)).WithHint("watch it with mode terminal_activity, or look at the pane")
		}
		pause, stop := s.Clock.NewTimer(taskPause)
		select {
		case <-pause:
		case <-ctx.Done():
		}
		stop()
		if ctx.Err() != nil {
			return task, fault.Wrap(err, agent.CodeNoTask, op, "the beginning of a running task was not found: %s", public(err)).
				WithHint("call agent_knock_knock_list again; if it still works, watch it with mode terminal_activity")
		}
		if n, err := t.Adapter.Identify(ctx, t.Ref); err == nil && n.ThreadID == t.Native.ThreadID {
			t.Native = n // what the records say now
		}
	}
}

func public(err error) string { _, msg, _ := fault.Public(err); return msg }

// store writes the Watch unless a Turn or another Watch holds the terminal or the task by
// now: everything is asked in the transaction that writes.
func (s *Service) store(ctx context.Context, in WatchInput, w *watch.Watch) (again bool, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordLimit)
	defer cancel()
	err = s.DB.Update(ctx, func(tx *store.Tx) error {
		row, ok, err := replayed(tx, in)
		if err != nil {
			return err
		}
		if again = ok; ok {
			*w = row.Watch
			return nil
		}
		if err := unmanaged(tx, w.TerminalKey(), w.Terminal); err != nil {
			return err
		}
		if err := unwatched(tx, *w); err != nil {
			return err
		}
		if w.Route, err = outboxsql.PutRoute(tx, s.Route); err != nil {
			return err
		}
		w.DeadlineAt = tx.Now.Add(in.HardTimeout.Truncate(time.Millisecond))
		plan := watch.Create(*w, tx.Now)
		*w = plan.Watch
		_, err = watchsql.Insert(tx, plan, s.Bridge)
		return err
	})
	return again, err
}

// arm starts the monitor. A monitor that does not come up is started again by the sweeps:
// the Watch stands, and its anchor keeps what happens meanwhile.
func (s *Service) arm(ctx context.Context, w watch.Watch) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), armLimit)
	defer cancel()
	if err := s.Monitors.Watch(ctx, w); err != nil {
		s.Log.Warn("the monitor of a Watch is not up yet; it is started again", "watch", w.ID, "err", err)
	}
}
