-- A transition is one change of the native thread of a terminal: new, resumed, adopted. It
-- is a fold of its events. While open is 1 nobody else may type into the terminal.
CREATE TABLE native_transition (
    transition_id TEXT PRIMARY KEY,
    endpoint_key  TEXT NOT NULL,
    call_key      TEXT NOT NULL UNIQUE,
    owner         TEXT NOT NULL REFERENCES bridge (bridge_id),
    fence         INTEGER NOT NULL,
    operation     TEXT NOT NULL,
    status        TEXT NOT NULL,
    open          INTEGER NOT NULL,
    seq           INTEGER NOT NULL,
    state         TEXT NOT NULL,
    created_at    INTEGER NOT NULL,
    updated_at    INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX native_transition_one_per_terminal ON native_transition (endpoint_key) WHERE open = 1;
CREATE INDEX native_transition_open_owner ON native_transition (owner) WHERE open = 1;
CREATE INDEX native_transition_by_terminal ON native_transition (endpoint_key, created_at);

CREATE TABLE native_transition_event (
    transition_id TEXT NOT NULL REFERENCES native_transition (transition_id) ON DELETE CASCADE,
    seq           INTEGER NOT NULL,
    at            INTEGER NOT NULL,
    kind          TEXT NOT NULL,
    data          TEXT NOT NULL,
    PRIMARY KEY (transition_id, seq)
) STRICT, WITHOUT ROWID;
