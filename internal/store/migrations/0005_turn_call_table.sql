-- Every tool call that typed something for a Turn, so that the same call again is answered
-- from the record and never typed twice. The first call is also turn.call_key.
CREATE TABLE turn_call (
    call_key     TEXT PRIMARY KEY,
    turn_id      TEXT NOT NULL REFERENCES turn (turn_id) ON DELETE CASCADE,
    tool         TEXT NOT NULL,
    request_hash TEXT NOT NULL,
    created_at   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX turn_call_turn ON turn_call (turn_id);
