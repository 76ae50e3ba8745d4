-- Times are unix milliseconds, 0 for "not yet". Ids are text.
CREATE TABLE meta (
    format          INTEGER NOT NULL,
    writer_protocol INTEGER NOT NULL,
    secret          TEXT NOT NULL,
    created_at      TEXT NOT NULL
) STRICT;

-- One row per Bridge process that ever wrote here. Whether it lives is proved by the
-- lock file of its id, not by a column.
CREATE TABLE bridge (
    bridge_id           TEXT PRIMARY KEY,
    host                TEXT NOT NULL,
    host_version        TEXT NOT NULL,
    profile_id          TEXT NOT NULL,
    profile_revision    TEXT NOT NULL,
    profile_fingerprint TEXT NOT NULL,
    pid                 INTEGER NOT NULL,
    started_at          INTEGER NOT NULL,
    ended_at            INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE session (
    session_id   TEXT PRIMARY KEY,
    agent        TEXT NOT NULL,
    status       TEXT NOT NULL,
    endpoint_key TEXT NOT NULL,
    thread_id    TEXT NOT NULL,
    workspace    TEXT NOT NULL,
    binding      TEXT NOT NULL,
    revision     INTEGER NOT NULL,
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL
) STRICT;
-- One terminal carries at most one bound Session, one native thread belongs to at most one.
CREATE UNIQUE INDEX session_bound_endpoint ON session (endpoint_key) WHERE status = 'bound';
CREATE UNIQUE INDEX session_thread ON session (agent, thread_id) WHERE thread_id <> '';

CREATE TABLE turn (
    turn_id      TEXT PRIMARY KEY,
    session_id   TEXT NOT NULL REFERENCES session (session_id),
    call_key     TEXT NOT NULL UNIQUE,
    owner        TEXT NOT NULL REFERENCES bridge (bridge_id),
    fence        INTEGER NOT NULL,
    endpoint_key TEXT NOT NULL,
    status       TEXT NOT NULL,
    blocking     INTEGER NOT NULL,
    seq          INTEGER NOT NULL,
    state        TEXT NOT NULL,
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL
) STRICT;
-- The fence that keeps two tasks off one pane, whoever sends them.
CREATE UNIQUE INDEX turn_one_per_terminal ON turn (endpoint_key) WHERE blocking = 1;
-- A Session has one task at a time, wherever its thread is shown.
CREATE UNIQUE INDEX turn_one_per_session ON turn (session_id) WHERE blocking = 1;
CREATE INDEX turn_blocking_owner ON turn (owner) WHERE blocking = 1;
CREATE INDEX turn_by_session ON turn (session_id, created_at);
CREATE INDEX turn_by_time ON turn (updated_at);

CREATE TABLE turn_event (
    turn_id TEXT NOT NULL REFERENCES turn (turn_id) ON DELETE CASCADE,
    seq     INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    kind    TEXT NOT NULL,
    data    TEXT NOT NULL,
    PRIMARY KEY (turn_id, seq)
) STRICT, WITHOUT ROWID;
