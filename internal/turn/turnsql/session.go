package turnsql

import (
	"encoding/json"
	"fmt"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/store/table"
	"github.com/agent-knock-knock/akk/internal/turn"
)

// PutSession inserts a Session or writes a newer revision of one. A write over a revision
// that is not the one before it is fault.Conflict.
func PutSession(tx *store.Tx, s turn.Session) error {
	binding, err := json.Marshal(s.Binding)
	if err != nil {
		return fmt.Errorf("turnsql.put session: %w", err)
	}
	res, err := tx.Exec(`INSERT INTO session (session_id, agent, status, endpoint_key, thread_id, workspace, binding, revision, created_at, updated_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (session_id) DO UPDATE SET status = excluded.status, endpoint_key = excluded.endpoint_key, thread_id = excluded.thread_id,
			workspace = excluded.workspace, binding = excluded.binding, revision = excluded.revision, updated_at = excluded.updated_at
		WHERE session.revision = excluded.revision - 1`,
		s.ID, s.Agent, s.Status, s.Terminal, s.ThreadID, s.Workspace, string(binding), s.Revision, store.Millis(s.CreatedAt), store.Millis(s.UpdatedAt))
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n != 1 {
		return fault.New(fault.Conflict, "turnsql.put session", "session %s changed meanwhile", s.ID).WithHint("call agent_knock_knock_list again")
	}
	return nil
}

func sessionWhere(tx *store.Tx, where string, args ...any) (turn.Session, bool, error) {
	var s turn.Session
	var binding string
	var created, updated int64
	err := tx.QueryRow("SELECT session_id, agent, status, endpoint_key, thread_id, workspace, binding, revision, created_at, updated_at FROM session WHERE "+where, args...).
		Scan(&s.ID, &s.Agent, &s.Status, &s.Terminal, &s.ThreadID, &s.Workspace, &binding, &s.Revision, &created, &updated)
	if store.NotFound(err) {
		return s, false, nil
	}
	if err != nil {
		return s, false, err
	}
	if err := json.Unmarshal([]byte(binding), &s.Binding); err != nil {
		return s, false, fault.Wrap(err, store.CodeStorage, "turnsql.session", "a stored Session cannot be read")
	}
	s.CreatedAt, s.UpdatedAt = store.Time(created), store.Time(updated)
	return s, true, nil
}

// GetSession returns a Session; a missing one is fault.NotFound.
func GetSession(tx *store.Tx, id ids.SessionID) (turn.Session, error) {
	s, ok, err := sessionWhere(tx, "session_id = ?", id)
	if err == nil && !ok {
		err = fault.New(fault.NotFound, "turnsql.session", "there is no session %q", id).WithHint("agent_knock_knock_list shows the sessions")
	}
	return s, err
}

// BoundSession returns the Session bound to a terminal.
func BoundSession(tx *store.Tx, terminalKey string) (turn.Session, bool, error) {
	return sessionWhere(tx, "endpoint_key = ? AND status = 'bound'", terminalKey)
}

// ThreadSession returns the Session of a native thread.
func ThreadSession(tx *store.Tx, agent, threadID string) (turn.Session, bool, error) {
	if threadID == "" {
		return turn.Session{}, false, nil
	}
	return sessionWhere(tx, "agent = ? AND thread_id = ? AND thread_id <> ''", agent, threadID) // without the last word the index does not fit
}

// BoundSessions returns the Sessions bound to the given terminals, by terminal key. A
// damaged one is left out.
func BoundSessions(tx *store.Tx, terminalKeys []string) (map[string]turn.Session, error) {
	out := make(map[string]turn.Session)
	for _, k := range terminalKeys {
		// One indexed point read each, on one connection: 20 of them take less than 1 ms.
		s, ok, err := BoundSession(tx, k)
		if fault.Is(err, store.CodeStorage) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if ok {
			out[k] = s
		}
	}
	return out, nil
}

// Bridge is one Bridge process as the Store remembers it.
type Bridge struct {
	ID                 ids.BridgeID
	Host, HostVersion  string
	ProfileID          string
	ProfileRevision    string
	ProfileFingerprint string
	PID                int
}

// PutBridge records that a Bridge started.
func PutBridge(tx *store.Tx, b Bridge) error {
	_, err := tx.Exec(`INSERT INTO bridge (bridge_id, host, host_version, profile_id, profile_revision, profile_fingerprint, pid, started_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?)`, b.ID, b.Host, b.HostVersion, b.ProfileID, b.ProfileRevision, b.ProfileFingerprint, b.PID, store.Millis(tx.Now))
	return err
}

// EndBridge records that a Bridge ended in order.
func EndBridge(tx *store.Tx, id ids.BridgeID) error {
	_, err := tx.Exec("UPDATE bridge SET ended_at = ? WHERE bridge_id = ?", store.Millis(tx.Now), id)
	return err
}

// OwnersOfBlocking returns the Bridges other than self that own a blocking Turn and serve
// the same Profile: what a dead one left, self may take over.
func OwnersOfBlocking(tx *store.Tx, self ids.BridgeID, profileID string) ([]ids.BridgeID, error) {
	return table.Column[ids.BridgeID](tx.Query(`SELECT DISTINCT owner FROM turn JOIN bridge ON bridge_id = owner WHERE blocking = 1 AND owner <> ? AND profile_id = ?`, self, profileID))
}
