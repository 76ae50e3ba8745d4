-- Forgetting a Bridge asks every table that names one whether it still does, once by the
-- sweep and once by the foreign key. Without a whole index each of these reads the whole
-- table, in a transaction that keeps all other writers waiting. What an owner still has to
-- do is found by partial indexes as before; they are made again because of two that fit
-- equally well SQLite takes the younger.
CREATE INDEX turn_owner ON turn (owner);
DROP INDEX turn_blocking_owner;
CREATE INDEX turn_blocking_owner ON turn (owner) WHERE blocking = 1;
CREATE INDEX outbox_owner ON outbox (owner);
DROP INDEX outbox_open_owner;
CREATE INDEX outbox_open_owner ON outbox (owner) WHERE open = 1; -- seq is the row id, so it is in there
CREATE INDEX watch_owner ON watch (owner);
DROP INDEX watch_active_owner;
CREATE INDEX watch_active_owner ON watch (owner) WHERE active = 1;
CREATE INDEX native_transition_owner ON native_transition (owner);
DROP INDEX native_transition_open_owner;
CREATE INDEX native_transition_open_owner ON native_transition (owner) WHERE open = 1;
