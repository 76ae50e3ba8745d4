-- Every list and status asks for the newest Turn of each terminal, and a list for the Turns
-- that changed last: both must be found without looking at all that ever were.
CREATE INDEX turn_by_terminal ON turn (endpoint_key, created_at, turn_id);
DROP INDEX turn_by_time;
CREATE INDEX turn_by_time ON turn (updated_at, turn_id);
