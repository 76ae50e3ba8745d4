-- A Terminal Watch observes one task that a person started; task_key names that task, so
-- that it is watched once.
CREATE TABLE watch (
    watch_id     TEXT PRIMARY KEY,
    task_key     TEXT NOT NULL,
    endpoint_key TEXT NOT NULL,
    call_key     TEXT NOT NULL UNIQUE,
    owner        TEXT NOT NULL REFERENCES bridge (bridge_id),
    fence        INTEGER NOT NULL,
    route_id     TEXT NOT NULL REFERENCES callback_route (route_id),
    status       TEXT NOT NULL,
    active       INTEGER NOT NULL,
    seq          INTEGER NOT NULL,
    state        TEXT NOT NULL,
    deadline_at  INTEGER NOT NULL,
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX watch_one_per_task ON watch (task_key) WHERE active = 1;
CREATE INDEX watch_active_owner ON watch (owner) WHERE active = 1;
CREATE INDEX watch_by_terminal ON watch (endpoint_key, created_at);
CREATE INDEX watch_by_time ON watch (updated_at);

CREATE TABLE watch_event (
    watch_id TEXT NOT NULL REFERENCES watch (watch_id) ON DELETE CASCADE,
    seq      INTEGER NOT NULL,
    at       INTEGER NOT NULL,
    kind     TEXT NOT NULL,
    data     TEXT NOT NULL,
    PRIMARY KEY (watch_id, seq)
) STRICT, WITHOUT ROWID;
