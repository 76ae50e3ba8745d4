-- A route names a Profile and stands for a session by its digest; the session value is
-- in no table.
CREATE TABLE callback_route (
    route_id            TEXT PRIMARY KEY,
    transport           TEXT NOT NULL,
    profile_id          TEXT NOT NULL,
    profile_revision    TEXT NOT NULL,
    profile_fingerprint TEXT NOT NULL,
    session_digest      TEXT NOT NULL,
    created_at          INTEGER NOT NULL
) STRICT;

-- seq is the order in which deliveries were enqueued; open is 1 while automatic work is
-- left (pending, delivering).
CREATE TABLE outbox (
    seq                  INTEGER PRIMARY KEY AUTOINCREMENT,
    delivery_id          TEXT NOT NULL UNIQUE,
    idempotency_key      TEXT NOT NULL,
    route_id             TEXT NOT NULL REFERENCES callback_route (route_id),
    source_kind          TEXT NOT NULL,
    source_id            TEXT NOT NULL,
    message_id           TEXT NOT NULL,
    type                 TEXT NOT NULL,
    kind                 TEXT NOT NULL,
    body                 BLOB NOT NULL,
    requires_response    INTEGER NOT NULL,
    metadata             TEXT NOT NULL,
    owner                TEXT NOT NULL REFERENCES bridge (bridge_id),
    status               TEXT NOT NULL,
    open                 INTEGER NOT NULL,
    attempts             INTEGER NOT NULL,
    attempt_id           TEXT NOT NULL,
    lease_expires_at     INTEGER NOT NULL,
    transport_started_at INTEGER NOT NULL,
    next_attempt_at      INTEGER NOT NULL,
    outcome              TEXT NOT NULL,
    last_error           TEXT NOT NULL,
    created_at           INTEGER NOT NULL,
    accepted_at          INTEGER NOT NULL,
    settled_at           INTEGER NOT NULL,
    updated_at           INTEGER NOT NULL,
    UNIQUE (route_id, message_id)
) STRICT;
CREATE INDEX outbox_due ON outbox (owner, next_attempt_at, seq) WHERE status = 'pending';
CREATE INDEX outbox_open ON outbox (source_kind, source_id, seq) WHERE open = 1;
CREATE INDEX outbox_open_owner ON outbox (owner, seq) WHERE open = 1;
CREATE INDEX outbox_source ON outbox (source_kind, source_id, seq);

-- What was tried, kept when the delivery goes on.
CREATE TABLE outbox_attempt (
    attempt_id  TEXT PRIMARY KEY,
    delivery_id TEXT NOT NULL REFERENCES outbox (delivery_id) ON DELETE CASCADE,
    number      INTEGER NOT NULL,
    owner       TEXT NOT NULL,
    claimed_at  INTEGER NOT NULL,
    started_at  INTEGER NOT NULL,
    ended_at    INTEGER NOT NULL,
    outcome     TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX outbox_attempt_delivery ON outbox_attempt (delivery_id, number);
