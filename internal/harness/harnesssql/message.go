package harnesssql

import (
	"encoding/json"
	"time"

	"github.com/agent-knock-knock/akk/internal/harness"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/store/table"
)

var messages = table.New("harness_message", []string{"id"},
	[]string{"id", "session_id", "state", "key_hash", "text_hash", "text_bytes", "stop_reason", "outcome", "cancel_reason", "cancelled_by", "problem", "errors",
		"unsupported", "rejected", "orphaned", "result", "created_at", "started_at", "finished_at"},
	func(m *harness.Message) []any {
		return []any{&m.ID, &m.SessionID, &m.State, &m.KeyHash, &m.TextHash, &m.TextBytes, &m.StopReason, &m.Outcome, &m.CancelReason, &m.CancelledBy, table.Pack(&m.Problem),
			table.Pack(&m.Errors), table.Pack(&m.Unsupported), table.Pack(&m.Rejected), &m.Orphaned, table.Pack(&m.Result), table.Millis(&m.CreatedAt), table.Millis(&m.StartedAt), table.Millis(&m.FinishedAt)}
	})

// Message reads a message of a session.
func Message(tx *store.Tx, session, id string) (harness.Message, bool, error) {
	return messages.First(tx, "WHERE session_id = ? AND id = ?", session, id)
}

// MessageByKey finds the message that an idempotency key of a session belongs to.
func MessageByKey(tx *store.Tx, session, keyHash string) (harness.Message, bool, error) {
	return messages.First(tx, "WHERE session_id = ? AND key_hash = ?", session, keyHash)
}

// UnfinishedMessages lists the messages of a session that are not terminal: at most one,
// by the index.
func UnfinishedMessages(tx *store.Tx, session string) ([]harness.Message, error) {
	return messages.List(tx, "WHERE session_id = ? AND state IN ('queued', 'running', 'waiting_input')", session)
}

// AddMessage stores a new message.
func AddMessage(tx *store.Tx, m harness.Message) error { return messages.Insert(tx, m) }

// SaveMessage replaces a message.
func SaveMessage(tx *store.Tx, m harness.Message) error { return saved(messages.Update(tx, m)) }

// AddQuestion remembers that a question was asked. What it says is not stored: it may show
// file contents, and nothing can answer it after a restart.
func AddQuestion(tx *store.Tx, q harness.Question) error {
	_, err := tx.Exec("INSERT INTO harness_question (id, session_id, message_id, kind, state, routed, title, created_at, ended_at) VALUES (?, ?, ?, ?, ?, '', ?, ?, 0)",
		q.ID, q.SessionID, q.MessageID, q.Kind, q.State, q.Title, store.Millis(q.CreatedAt))
	return err
}

// EndQuestion stores how a question ended. One that ended before keeps its end.
func EndQuestion(tx *store.Tx, id string, state harness.QuestionState, routed harness.Routed) error {
	_, err := tx.Exec("UPDATE harness_question SET state = ?, routed = ?, ended_at = ? WHERE id = ? AND state = ?", state, routed, store.Millis(tx.Now), id, harness.QuestionOpen)
	return err
}

// DropQuestions ends every open question of a session.
func DropQuestions(tx *store.Tx, session string) error {
	_, err := tx.Exec("UPDATE harness_question SET state = ?, ended_at = ? WHERE session_id = ? AND state = ?", harness.QuestionDropped, store.Millis(tx.Now), session, harness.QuestionOpen)
	return err
}

// QuestionKnown reports whether the session ever asked a question with this id.
func QuestionKnown(tx *store.Tx, session, id string) (bool, error) {
	var n int
	err := tx.QueryRow("SELECT count(*) FROM harness_question WHERE session_id = ? AND id = ?", session, id).Scan(&n)
	return n > 0, err
}

// AddEvent appends to a session's log. A seq that is taken is fault.AlreadyExists.
func AddEvent(tx *store.Tx, session string, e harness.Event) error {
	_, err := tx.Exec("INSERT INTO harness_event (session_id, seq, kind, message_id, at, data) VALUES (?, ?, ?, ?, ?, ?)",
		session, e.Seq, e.Kind, e.MessageID, store.Millis(e.At), string(e.Data))
	return err
}

// Events reads a session's log after a cursor, at most limit entries and about maxBytes of
// data, but at least one entry.
func Events(tx *store.Tx, session string, after int64, limit, maxBytes int) ([]harness.Event, error) {
	rows, err := tx.Query("SELECT seq, kind, message_id, at, data FROM harness_event WHERE session_id = ? AND seq > ? ORDER BY seq LIMIT ?", session, after, limit)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := []harness.Event{}
	for size := 0; rows.Next() && (size <= maxBytes); {
		var e harness.Event
		var data string
		if err := rows.Scan(&e.Seq, &e.Kind, &e.MessageID, table.Millis(&e.At), &data); err != nil {
			return nil, err
		}
		if data != "" {
			e.Data = json.RawMessage(data)
		}
		if size += len(data); size > maxBytes && len(out) > 0 {
			break
		}
		out = append(out, e)
	}
	return out, rows.Err()
}

// AddTemplate stores a template; a known name is fault.AlreadyExists and changes nothing.
func AddTemplate(tx *store.Tx, t harness.Template) error {
	body, err := json.Marshal(t)
	if err != nil {
		return err
	}
	_, err = tx.Exec("INSERT INTO harness_template (name, body, created_at) VALUES (?, ?, ?)", t.Name, string(body), store.Millis(tx.Now))
	return err
}

// Templates lists all templates by name.
func Templates(tx *store.Tx) ([]harness.Template, error) {
	rows, err := tx.Query("SELECT body FROM harness_template ORDER BY name")
	if err != nil {
		return nil, err
	}
	return table.Collect(rows, func(t *harness.Template) []any { return []any{table.Pack(t)} })
}

// DropTemplate removes a template and reports whether there was one.
func DropTemplate(tx *store.Tx, name string) (bool, error) {
	r, err := tx.Exec("DELETE FROM harness_template WHERE name = ?", name)
	if err != nil {
		return false, err
	}
	n, err := r.RowsAffected()
	return n > 0, err
}

// AuthAttempts lists the attempts at a target since a time.
func AuthAttempts(tx *store.Tx, target string, since time.Time) ([]time.Time, error) {
	rows, err := tx.Query("SELECT at FROM harness_auth_attempt WHERE target = ? AND at >= ? ORDER BY at", target, store.Millis(since))
	if err != nil {
		return nil, err
	}
	return table.Collect(rows, func(t *time.Time) []any { return []any{table.Millis(t)} })
}

// AddAuthAttempt records an attempt now and forgets those before a time, which no limit
// looks at any more.
func AddAuthAttempt(tx *store.Tx, target string, forget time.Time) error {
	if _, err := tx.Exec("DELETE FROM harness_auth_attempt WHERE at < ?", store.Millis(forget)); err != nil {
		return err
	}
	_, err := tx.Exec("INSERT INTO harness_auth_attempt (target, at) VALUES (?, ?)", target, store.Millis(tx.Now))
	return err
}
