// Package outboxsql is the SQL of routes, deliveries and attempts: plain functions on a
// transaction. It decides nothing; the rules are in package outbox. It knows the table of
// Bridges only by their ids, and no Turn or Watch.
package outboxsql

import (
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/outbox"
	"github.com/agent-knock-knock/akk/internal/store"
)

// PutRoute stores a route, if it is not there yet, and returns its id. A route never
// changes: other fields are another route.
func PutRoute(tx *store.Tx, r outbox.Route) (ids.RouteID, error) {
	id := r.ID()
	_, err := tx.Exec(`INSERT INTO callback_route (route_id, transport, profile_id, profile_revision, profile_fingerprint, session_digest, created_at)
		VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (route_id) DO NOTHING`,
		id, r.Transport, r.ProfileID, r.ProfileRevision, r.ProfileFingerprint, r.SessionDigest, store.Millis(tx.Now))
	return id, err
}

// GetRoute returns a stored route; a missing one is fault.NotFound.
func GetRoute(tx *store.Tx, id ids.RouteID) (outbox.Route, error) {
	var r outbox.Route
	err := tx.QueryRow(`SELECT transport, profile_id, profile_revision, profile_fingerprint, session_digest FROM callback_route WHERE route_id = ?`, id).
		Scan(&r.Transport, &r.ProfileID, &r.ProfileRevision, &r.ProfileFingerprint, &r.SessionDigest)
	if store.NotFound(err) {
		return r, fault.New(fault.NotFound, "outboxsql.route", "there is no callback route %q", id)
	}
	return r, err
}
