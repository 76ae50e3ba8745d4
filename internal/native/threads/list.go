package threads

import (
	"context"
	"fmt"
	"time"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/discover"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/native/nativesql"
	"github.com/agent-knock-knock/akk/internal/procinfo"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/turn"
	"github.com/agent-knock-knock/akk/internal/turn/turnsql"
)

// Rows of a listing.
const (
	DefaultThreads = 50
	MaxThreads     = 200
	listLimit      = 8 * time.Second
)

// Why a thread cannot be resumed. The first that holds is told (spec part 2.4).
const (
	ReasonActive       = "already_active"
	ReasonElsewhere    = "active_in_another_process"
	ReasonUnverifiable = "active_thread_ownership_unverifiable"
	ReasonBound        = "managed_session_bound"         // to another live terminal
	ReasonBusy         = "managed_session_has_open_turn" // which waits for this thread elsewhere
	ReasonWorkspace    = "managed_session_workspace_mismatch"
	ReasonArchived     = "archived"
	ReasonNoToken      = "candidate_token_unavailable"
)

// ThreadRow is one thread of a listing.
type ThreadRow struct {
	Thread          agent.Thread
	Managed         ids.SessionID // "" when no Session holds it
	Unavailable     string        // why it cannot be resumed; "" when it can
	SelectionNumber int
}

// Resumable reports whether resume may be asked for the row.
func (r ThreadRow) Resumable() bool { return r.Unavailable == "" }

// ThreadsResult is a listing. It stays good for SnapshotLife.
type ThreadsResult struct {
	Terminal       discover.Terminal
	CurrentSession ids.SessionID
	SnapshotID     string
	CreatedAt      time.Time
	Rows           []ThreadRow
	Cut            bool
	// Previous is the row of the thread that the terminal showed before its last change by
	// us, if that is still what it shows and the row can be resumed; nil for none.
	Previous *ThreadRow
}

// snapshot is what a listing showed of a terminal. Resume acts on nothing else.
type snapshot struct {
	key     string // the terminal's, see discover.Terminal.Key
	current string // the thread that it showed
	rows    map[string]ThreadRow
}

// ListResumable lists the threads of the terminal's workspace. It reads only, and keeps
// what it showed for a resume.
func (s *Service) ListResumable(ctx context.Context, id ids.TerminalID, limit int) (ThreadsResult, error) {
	ctx, cancel := context.WithTimeout(ctx, listLimit)
	defer cancel()
	if limit <= 0 {
		limit = DefaultThreads
	}
	term, scan, err := s.find(ctx, id)
	if err != nil {
		return ThreadsResult{}, err
	}
	k, err := keeper(term)
	if err != nil {
		return ThreadsResult{}, err
	}
	found, err := k.Threads(ctx, term.Ref, term.Native, min(limit, MaxThreads))
	if err != nil {
		return ThreadsResult{}, err
	}
	now := s.Clock.Now().UTC()
	out := ThreadsResult{Terminal: term, CreatedAt: now, Cut: found.Cut, SnapshotID: ids.Derive("snapshot", term.Key(), now.Format(time.RFC3339Nano))[:len("snapshot-")+16]}
	shown := snapshot{key: term.Key(), current: term.Native.ThreadID, rows: map[string]ThreadRow{}}
	err = s.DB.View(ctx, func(tx *store.Tx) error {
		bound, ok, err := turnsql.BoundSession(tx, term.Key())
		if err != nil {
			return err
		}
		if ok && (bound.ThreadID == "" || bound.ThreadID == term.Native.ThreadID) {
			out.CurrentSession = bound.ID
		}
		for i, t := range found.Threads {
			row := ThreadRow{Thread: t, SelectionNumber: i + 1}
			if row.Managed, row.Unavailable, err = judge(tx, term, scan, t); err != nil {
				return err
			}
			out.Rows = append(out.Rows, row)
			shown.rows[t.ID] = row
		}
		return out.previous(tx, term)
	})
	if err != nil {
		return ThreadsResult{}, err
	}
	s.shown.Put(string(term.ID), shown)
	return out, nil
}

// previous finds the row of the thread that the last committed change left.
func (r *ThreadsResult) previous(tx *store.Tx, term discover.Terminal) error {
	last, ok, err := nativesql.LastCommitted(tx, term.Key())
	if err != nil || !ok || last.Transition.ThreadID != term.Native.ThreadID {
		return err
	}
	for i := range r.Rows {
		if row := &r.Rows[i]; row.Thread.ID == last.Transition.FromThread && row.Resumable() {
			r.Previous = row
		}
	}
	return nil
}

// judge says which Session holds a thread, and why the terminal cannot resume it.
func judge(tx *store.Tx, term discover.Terminal, scan discover.Scan, t agent.Thread) (session ids.SessionID, reason string, err error) {
	holder, managed, err := turnsql.ThreadSession(tx, term.Adapter.Kind(), t.ID)
	if err != nil {
		return "", "", err
	}
	if managed {
		session = holder.ID
	}
	if reason = ownership(term, scan, t); reason != "" {
		return session, reason, nil
	}
	if managed {
		if reason, err = sessionReason(tx, term, scan, holder); err != nil || reason != "" {
			return session, reason, err
		}
	}
	switch {
	case t.Archived:
		reason = ReasonArchived
	case t.Token == "":
		reason = ReasonNoToken
	}
	return session, reason, nil
}

// ownership says why a thread may be in use by somebody else.
func ownership(term discover.Terminal, scan discover.Scan, t agent.Thread) string {
	if t.ID == term.Native.ThreadID {
		return ReasonActive
	}
	unknown := false
	for _, o := range scan.Terminals {
		if o.Key() == term.Key() || o.Adapter.Kind() != term.Adapter.Kind() {
			continue
		}
		switch o.Native.Thread {
		case agent.ThreadResolved:
			if o.Native.ThreadID == t.ID {
				return ReasonElsewhere
			}
		case agent.ThreadVerifiedAbsent:
		default: // a server's thread may be shown by any of its panes
			unknown = unknown || t.Owner == agent.OwnedHere && o.Native.Mode == term.Native.Mode
		}
	}
	switch {
	case t.Owner == agent.OwnedElsewhere:
		return ReasonElsewhere
	case t.Owner == agent.OwnedUnknown || unknown:
		return ReasonUnverifiable
	}
	return ""
}

// sessionReason says why the Session that holds a thread keeps it from this terminal. A
// Session whose terminal ended, or provably shows another thread, keeps nothing.
func sessionReason(tx *store.Tx, term discover.Terminal, scan discover.Scan, session turn.Session) (string, error) {
	if session.Status == turn.SessionBound && session.Terminal != term.Key() && holds(scan, session) {
		return ReasonBound, nil
	}
	busy, err := hasTurn(tx, session.ID)
	switch {
	case err != nil:
		return "", err
	case busy:
		return ReasonBusy, nil
	case session.Workspace != term.Ref.Cwd:
		return ReasonWorkspace, nil
	}
	return "", nil
}

// holds reports whether the terminal that a Session is bound to may still show its thread.
func holds(scan discover.Scan, session turn.Session) bool {
	for _, o := range scan.Terminals {
		if o.Key() == session.Terminal {
			return o.Native.Thread != agent.ThreadResolved || o.Native.ThreadID == session.ThreadID
		}
	}
	alive, err := procinfo.Alive(session.Binding.Process)
	return err != nil || alive
}

// hasTurn reports whether a Turn of the Session is not released.
func hasTurn(tx *store.Tx, id ids.SessionID) (bool, error) {
	var n int
	err := tx.QueryRow("SELECT count(*) FROM turn WHERE session_id = ? AND blocking = 1", id).Scan(&n)
	return n > 0, err
}

// offered returns the row of a fresh listing of exactly this terminal.
func (s *Service) offered(term discover.Terminal, thread string) (agent.Thread, error) {
	const op = "threads.resume"
	shown, _, ok := s.shown.Get(string(term.ID))
	row, listed := shown.rows[thread]
	switch {
	case !ok || !listed || shown.key != term.Key():
		return agent.Thread{}, fault.New(CodeNotListed, op, "thread %s was not listed for %s in the last %d minutes", thread, term.ID, int(SnapshotLife.Minutes())).
			WithHint("call agent_knock_knock_list_resumable_threads first")
	case shown.current != term.Native.ThreadID:
		return agent.Thread{}, fault.New(CodeNotListed, op, "%s shows another thread than when its threads were listed", term.ID).
			WithHint("call agent_knock_knock_list_resumable_threads again")
	case !row.Resumable():
		return agent.Thread{}, unresumable(thread, row.Unavailable)
	}
	return row.Thread, nil
}

func unresumable(thread, reason string) error {
	hints := map[string]string{
		ReasonElsewhere:    "use the terminal that has it open, or let a person close it there",
		ReasonUnverifiable: "choose another thread, or let a person resume it by hand",
		ReasonBound:        "use the terminal that its session is bound to",
		ReasonBusy:         "settle the open turn of its session first",
		ReasonArchived:     "let a person take it out of the archive",
	}
	return fault.New(CodeUnresumable, "threads.resume", "thread %s cannot be resumed: %s", thread, reason).
		WithHint("%s", orElse(hints[reason], "choose another thread"))
}

// stillOffered proves under the lock that the thread is what the listing showed: the same
// records, nobody's but ours to open, and no Session in the way. No key was pressed yet.
func (a attempt) stillOffered(ctx context.Context, scan discover.Scan) error {
	now, err := a.keeper.Thread(ctx, a.term.Ref, a.term.Native, a.in.ThreadID)
	if err != nil {
		return err
	}
	if now.Token == "" || now.Token != a.offered.Token {
		return fault.New(CodeUnresumable, "threads.resume", "thread %s changed after it was listed; somebody may be using it", a.in.ThreadID).
			WithHint("call agent_knock_knock_list_resumable_threads again")
	}
	var reason string
	err = a.DB.View(ctx, func(tx *store.Tx) (err error) {
		_, reason, err = judge(tx, a.term, scan, now)
		return err
	})
	if err == nil && reason != "" {
		err = unresumable(a.in.ThreadID, reason)
	}
	return err
}

// Handle names a row for a person; it is no argument of any tool.
func (r ThreadsResult) Handle(row ThreadRow) string {
	return fmt.Sprintf("%s#%d", ids.ShortRef(r.SnapshotID), row.SelectionNumber)
}
