package harnesssql

import (
	"github.com/agent-knock-knock/akk/internal/harness"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/store/table"
)

var sessions = table.New("harness_session", []string{"id"},
	[]string{"id", "state", "launch", "withheld_env", "model_id", "model_name", "thinking", "permission_mode", "agent_name", "agent_version", "agent_session_id",
		"can_resume", "problem", "questions", "messages", "seq", "created_at", "updated_at", "closed_at"},
	func(s *harness.Session) []any {
		return []any{&s.ID, &s.State, table.Pack(&s.Launch), table.Pack(&s.WithheldEnv), &s.ModelID, &s.ModelName, &s.Thinking, &s.PermissionMode, &s.AgentName, &s.AgentVersion,
			&s.AgentSessionID, &s.CanResume, table.Pack(&s.Problem), &s.Questions, &s.Messages, &s.Seq, table.Millis(&s.CreatedAt), table.Millis(&s.UpdatedAt), table.Millis(&s.ClosedAt)}
	})

// Session reads a session.
func Session(tx *store.Tx, id string) (harness.Session, bool, error) {
	return sessions.First(tx, "WHERE id = ?", id)
}

// Sessions lists the sessions that changed last, at most limit.
func Sessions(tx *store.Tx, limit int) ([]harness.Session, error) {
	return sessions.List(tx, "ORDER BY updated_at DESC, id LIMIT ?", limit)
}

// LiveSessions lists the sessions whose state claims an agent.
func LiveSessions(tx *store.Tx) ([]harness.Session, error) {
	return sessions.List(tx, "WHERE state IN (?, ?, ?) ORDER BY created_at, id", harness.StateStarting, harness.StateAuthRequired, harness.StateReady)
}

// AddSession stores a new session; a known id is fault.AlreadyExists.
func AddSession(tx *store.Tx, s harness.Session) error { return sessions.Insert(tx, s) }

// SaveSession replaces a session.
func SaveSession(tx *store.Tx, s harness.Session) error { return saved(sessions.Update(tx, s)) }

// DropSession removes a session with all that belongs to it: one that never started.
func DropSession(tx *store.Tx, id string) error {
	if _, err := tx.Exec("DELETE FROM harness_create_key WHERE session_id = ?", id); err != nil {
		return err
	}
	_, err := tx.Exec("DELETE FROM harness_session WHERE id = ?", id)
	return err
}

// CreateKey finds the session that an idempotency key created, and the hash of what was
// asked for then.
func CreateKey(tx *store.Tx, keyHash string) (session, launchHash string, ok bool, err error) {
	err = tx.QueryRow("SELECT session_id, launch_hash FROM harness_create_key WHERE key_hash = ?", keyHash).Scan(&session, &launchHash)
	if store.NotFound(err) {
		return "", "", false, nil
	}
	return session, launchHash, err == nil, err
}

// AddCreateKey remembers which session a key created.
func AddCreateKey(tx *store.Tx, keyHash, launchHash, session string) error {
	_, err := tx.Exec("INSERT INTO harness_create_key (key_hash, launch_hash, session_id) VALUES (?, ?, ?)", keyHash, launchHash, session)
	return err
}
