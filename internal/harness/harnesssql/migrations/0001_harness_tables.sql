-- Headless agents. Times are unix milliseconds, 0 for "not yet". Values that are only ever
-- replaced whole are JSON text. No secret is in here: values of the environment that look
-- like one are left out, answers to a login are never stored, keys are hashes.

CREATE TABLE harness_session (
    id               TEXT PRIMARY KEY,
    state            TEXT NOT NULL,
    launch           TEXT NOT NULL,
    withheld_env     TEXT NOT NULL,
    model_id         TEXT NOT NULL,
    model_name       TEXT NOT NULL,
    thinking         TEXT NOT NULL,
    permission_mode  TEXT NOT NULL,
    agent_name       TEXT NOT NULL,
    agent_version    TEXT NOT NULL,
    agent_session_id TEXT NOT NULL,
    can_resume       INTEGER NOT NULL,
    problem          TEXT NOT NULL,
    questions        INTEGER NOT NULL,
    messages         INTEGER NOT NULL,
    seq              INTEGER NOT NULL,
    created_at       INTEGER NOT NULL,
    updated_at       INTEGER NOT NULL,
    closed_at        INTEGER NOT NULL
) STRICT;
CREATE INDEX harness_session_state ON harness_session (state);
CREATE INDEX harness_session_recent ON harness_session (updated_at DESC, id);

CREATE TABLE harness_message (
    id            TEXT PRIMARY KEY,
    session_id    TEXT NOT NULL REFERENCES harness_session (id) ON DELETE CASCADE,
    state         TEXT NOT NULL,
    key_hash      TEXT NOT NULL,
    text_hash     TEXT NOT NULL,
    text_bytes    INTEGER NOT NULL,
    stop_reason   TEXT NOT NULL,
    outcome       TEXT NOT NULL,
    cancel_reason TEXT NOT NULL,
    cancelled_by  TEXT NOT NULL,
    problem       TEXT NOT NULL,
    errors        TEXT NOT NULL,
    unsupported   TEXT NOT NULL,
    rejected      TEXT NOT NULL,
    orphaned      INTEGER NOT NULL,
    result        TEXT NOT NULL,
    created_at    INTEGER NOT NULL,
    started_at    INTEGER NOT NULL,
    finished_at   INTEGER NOT NULL
) STRICT;
-- The two rules that no race may break: a session has at most one message that is not
-- terminal, and a key of a session means one message for ever.
CREATE UNIQUE INDEX harness_message_active ON harness_message (session_id) WHERE state IN ('queued', 'running', 'waiting_input');
CREATE UNIQUE INDEX harness_message_key ON harness_message (session_id, key_hash) WHERE key_hash <> '';

CREATE TABLE harness_question (
    id         TEXT PRIMARY KEY,
    session_id TEXT NOT NULL REFERENCES harness_session (id) ON DELETE CASCADE,
    message_id TEXT NOT NULL,
    kind       TEXT NOT NULL,
    state      TEXT NOT NULL,
    routed     TEXT NOT NULL,
    title      TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    ended_at   INTEGER NOT NULL
) STRICT;
CREATE INDEX harness_question_session ON harness_question (session_id, state);

CREATE TABLE harness_event (
    session_id TEXT NOT NULL REFERENCES harness_session (id) ON DELETE CASCADE,
    seq        INTEGER NOT NULL,
    kind       TEXT NOT NULL,
    message_id TEXT NOT NULL,
    at         INTEGER NOT NULL,
    data       TEXT NOT NULL,
    PRIMARY KEY (session_id, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE harness_create_key (
    key_hash    TEXT PRIMARY KEY,
    launch_hash TEXT NOT NULL,
    session_id  TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE harness_template (
    name       TEXT PRIMARY KEY,
    body       TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;

-- Attempts to log in: the hash of a target and a time, nothing else.
CREATE TABLE harness_auth_attempt (
    target TEXT NOT NULL,
    at     INTEGER NOT NULL
) STRICT;
CREATE INDEX harness_auth_attempt_target ON harness_auth_attempt (target, at);
