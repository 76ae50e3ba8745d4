-- Forgetting a Bridge asks every table that names one whether it still does, once by the
-- sweep and once by the foreign key. Without an index each of these reads the whole table,
-- in a transaction that keeps all other writers waiting.
CREATE INDEX turn_owner ON turn (owner);
CREATE INDEX outbox_owner ON outbox (owner);
CREATE INDEX watch_owner ON watch (owner);
CREATE INDEX native_transition_owner ON native_transition (owner);
