-- What keeps a terminal is read by every list and every sweep, newest change first; callbacks
-- are counted and listed by status. Neither may look at all that ever was.
CREATE INDEX turn_blocking_time ON turn (updated_at, turn_id) WHERE blocking = 1;
CREATE INDEX outbox_status ON outbox (status, seq);
