-- Counters, kept by triggers on the records that they count.

CREATE TABLE ledger_item_tally (
    project_id   TEXT NOT NULL,
    work_item_id TEXT NOT NULL,
    is_open      INTEGER NOT NULL,
    touched      INTEGER NOT NULL,
    queued            INTEGER NOT NULL DEFAULT 0,
    claimed           INTEGER NOT NULL DEFAULT 0,
    running           INTEGER NOT NULL DEFAULT 0,
    awaiting_approval INTEGER NOT NULL DEFAULT 0,
    awaiting_review   INTEGER NOT NULL DEFAULT 0,
    completed         INTEGER NOT NULL DEFAULT 0,
    failed            INTEGER NOT NULL DEFAULT 0,
    cancelled         INTEGER NOT NULL DEFAULT 0,
    unproved          INTEGER NOT NULL DEFAULT 0,
    loose             INTEGER NOT NULL DEFAULT 0,
    handoffs          INTEGER NOT NULL DEFAULT 0,
    followups         INTEGER NOT NULL DEFAULT 0,
    -- What follows from the counters: ready to close, without any assignment, and how
    -- many completed assignments lack evidence.
    ready   INTEGER NOT NULL AS (is_open = 1 AND completed > 0 AND queued + claimed + running + awaiting_approval + awaiting_review + failed + cancelled + handoffs + followups = 0 AND (unproved = 0 OR loose > 0)) STORED,
    idle    INTEGER NOT NULL AS (is_open = 1 AND completed + queued + claimed + running + awaiting_approval + awaiting_review + failed + cancelled = 0) STORED,
    missing INTEGER NOT NULL AS (CASE WHEN loose > 0 THEN 0 ELSE unproved END) STORED,
    PRIMARY KEY (project_id, work_item_id),
    FOREIGN KEY (project_id, work_item_id) REFERENCES ledger_work_item (project_id, id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE INDEX ledger_item_tally_ready ON ledger_item_tally (project_id, touched DESC, work_item_id) WHERE ready = 1;
CREATE INDEX ledger_item_tally_idle ON ledger_item_tally (project_id, touched DESC, work_item_id) WHERE idle = 1;

-- all_… counts every assignment of the project, the others those of open items.
CREATE TABLE ledger_project_tally (
    project_id TEXT PRIMARY KEY REFERENCES ledger_project (id) ON DELETE CASCADE,
    items      INTEGER NOT NULL DEFAULT 0,
    open_items INTEGER NOT NULL DEFAULT 0,
    all_queued            INTEGER NOT NULL DEFAULT 0,
    all_claimed           INTEGER NOT NULL DEFAULT 0,
    all_running           INTEGER NOT NULL DEFAULT 0,
    all_awaiting_approval INTEGER NOT NULL DEFAULT 0,
    all_awaiting_review   INTEGER NOT NULL DEFAULT 0,
    all_completed         INTEGER NOT NULL DEFAULT 0,
    all_failed            INTEGER NOT NULL DEFAULT 0,
    all_cancelled         INTEGER NOT NULL DEFAULT 0,
    queued            INTEGER NOT NULL DEFAULT 0,
    claimed           INTEGER NOT NULL DEFAULT 0,
    running           INTEGER NOT NULL DEFAULT 0,
    awaiting_approval INTEGER NOT NULL DEFAULT 0,
    awaiting_review   INTEGER NOT NULL DEFAULT 0,
    completed         INTEGER NOT NULL DEFAULT 0,
    failed            INTEGER NOT NULL DEFAULT 0,
    cancelled         INTEGER NOT NULL DEFAULT 0,
    missing           INTEGER NOT NULL DEFAULT 0,
    handoffs          INTEGER NOT NULL DEFAULT 0,
    followups         INTEGER NOT NULL DEFAULT 0,
    ready             INTEGER NOT NULL DEFAULT 0,
    idle              INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

CREATE TRIGGER ledger_project_born AFTER INSERT ON ledger_project BEGIN
    INSERT INTO ledger_project_tally (project_id) VALUES (NEW.id);
END;

CREATE TRIGGER ledger_item_born AFTER INSERT ON ledger_work_item BEGIN
    INSERT INTO ledger_item_tally (project_id, work_item_id, is_open, touched) VALUES (NEW.project_id, NEW.id, NEW.is_open, NEW.updated_at);
END;
CREATE TRIGGER ledger_item_changed AFTER UPDATE OF is_open, rank, updated_at ON ledger_work_item BEGIN
    UPDATE ledger_item_tally SET is_open = NEW.is_open, touched = NEW.updated_at WHERE project_id = NEW.project_id AND work_item_id = NEW.id;
    UPDATE ledger_assignment SET is_open = NEW.is_open, rank = NEW.rank
        WHERE project_id = NEW.project_id AND work_item_id = NEW.id AND (is_open <> NEW.is_open OR rank <> NEW.rank);
END;

CREATE TRIGGER ledger_tally_born AFTER INSERT ON ledger_item_tally BEGIN
    UPDATE ledger_project_tally SET items = items + 1,
        open_items = open_items + NEW.is_open,
        all_queued = all_queued + NEW.queued,
        all_claimed = all_claimed + NEW.claimed,
        all_running = all_running + NEW.running,
        all_awaiting_approval = all_awaiting_approval + NEW.awaiting_approval,
        all_awaiting_review = all_awaiting_review + NEW.awaiting_review,
        all_completed = all_completed + NEW.completed,
        all_failed = all_failed + NEW.failed,
        all_cancelled = all_cancelled + NEW.cancelled,
        queued = queued + NEW.is_open * NEW.queued,
        claimed = claimed + NEW.is_open * NEW.claimed,
        running = running + NEW.is_open * NEW.running,
        awaiting_approval = awaiting_approval + NEW.is_open * NEW.awaiting_approval,
        awaiting_review = awaiting_review + NEW.is_open * NEW.awaiting_review,
        completed = completed + NEW.is_open * NEW.completed,
        failed = failed + NEW.is_open * NEW.failed,
        cancelled = cancelled + NEW.is_open * NEW.cancelled,
        missing = missing + NEW.is_open * NEW.missing,
        handoffs = handoffs + NEW.is_open * NEW.handoffs,
        followups = followups + NEW.is_open * NEW.followups,
        ready = ready + NEW.ready,
        idle = idle + NEW.idle
    WHERE project_id = NEW.project_id;
END;
CREATE TRIGGER ledger_tally_changed AFTER UPDATE ON ledger_item_tally BEGIN
    UPDATE ledger_project_tally SET open_items = open_items + NEW.is_open - OLD.is_open,
        all_queued = all_queued + NEW.queued - OLD.queued,
        all_claimed = all_claimed + NEW.claimed - OLD.claimed,
        all_running = all_running + NEW.running - OLD.running,
        all_awaiting_approval = all_awaiting_approval + NEW.awaiting_approval - OLD.awaiting_approval,
        all_awaiting_review = all_awaiting_review + NEW.awaiting_review - OLD.awaiting_review,
        all_completed = all_completed + NEW.completed - OLD.completed,
        all_failed = all_failed + NEW.failed - OLD.failed,
        all_cancelled = all_cancelled + NEW.cancelled - OLD.cancelled,
        queued = queued + NEW.is_open * NEW.queued - OLD.is_open * OLD.queued,
        claimed = claimed + NEW.is_open * NEW.claimed - OLD.is_open * OLD.claimed,
        running = running + NEW.is_open * NEW.running - OLD.is_open * OLD.running,
        awaiting_approval = awaiting_approval + NEW.is_open * NEW.awaiting_approval - OLD.is_open * OLD.awaiting_approval,
        awaiting_review = awaiting_review + NEW.is_open * NEW.awaiting_review - OLD.is_open * OLD.awaiting_review,
        completed = completed + NEW.is_open * NEW.completed - OLD.is_open * OLD.completed,
        failed = failed + NEW.is_open * NEW.failed - OLD.is_open * OLD.failed,
        cancelled = cancelled + NEW.is_open * NEW.cancelled - OLD.is_open * OLD.cancelled,
        missing = missing + NEW.is_open * NEW.missing - OLD.is_open * OLD.missing,
        handoffs = handoffs + NEW.is_open * NEW.handoffs - OLD.is_open * OLD.handoffs,
        followups = followups + NEW.is_open * NEW.followups - OLD.is_open * OLD.followups,
        ready = ready + NEW.ready - OLD.ready,
        idle = idle + NEW.idle - OLD.idle
    WHERE project_id = NEW.project_id;
END;
CREATE TRIGGER ledger_tally_gone AFTER DELETE ON ledger_item_tally BEGIN
    UPDATE ledger_project_tally SET items = items - 1,
        open_items = open_items - OLD.is_open,
        all_queued = all_queued - OLD.queued,
        all_claimed = all_claimed - OLD.claimed,
        all_running = all_running - OLD.running,
        all_awaiting_approval = all_awaiting_approval - OLD.awaiting_approval,
        all_awaiting_review = all_awaiting_review - OLD.awaiting_review,
        all_completed = all_completed - OLD.completed,
        all_failed = all_failed - OLD.failed,
        all_cancelled = all_cancelled - OLD.cancelled,
        queued = queued - OLD.is_open * OLD.queued,
        claimed = claimed - OLD.is_open * OLD.claimed,
        running = running - OLD.is_open * OLD.running,
        awaiting_approval = awaiting_approval - OLD.is_open * OLD.awaiting_approval,
        awaiting_review = awaiting_review - OLD.is_open * OLD.awaiting_review,
        completed = completed - OLD.is_open * OLD.completed,
        failed = failed - OLD.is_open * OLD.failed,
        cancelled = cancelled - OLD.is_open * OLD.cancelled,
        missing = missing - OLD.is_open * OLD.missing,
        handoffs = handoffs - OLD.is_open * OLD.handoffs,
        followups = followups - OLD.is_open * OLD.followups,
        ready = ready - OLD.ready,
        idle = idle - OLD.idle
    WHERE project_id = OLD.project_id;
END;

CREATE TRIGGER ledger_assignment_born AFTER INSERT ON ledger_assignment BEGIN
    UPDATE ledger_item_tally SET queued = queued + (NEW.status = 'queued'),
        claimed = claimed + (NEW.status = 'claimed'),
        running = running + (NEW.status = 'running'),
        awaiting_approval = awaiting_approval + (NEW.status = 'awaiting_approval'),
        awaiting_review = awaiting_review + (NEW.status = 'awaiting_review'),
        completed = completed + (NEW.status = 'completed'),
        failed = failed + (NEW.status = 'failed'),
        cancelled = cancelled + (NEW.status = 'cancelled'),
        unproved = unproved + (NEW.status = 'completed' AND NEW.proofs = 0)
    WHERE project_id = NEW.project_id AND work_item_id = NEW.work_item_id;
    UPDATE ledger_demand SET uses = uses + 1 WHERE number = NEW.demand;
END;
CREATE TRIGGER ledger_assignment_gone AFTER DELETE ON ledger_assignment BEGIN
    UPDATE ledger_item_tally SET queued = queued - (OLD.status = 'queued'),
        claimed = claimed - (OLD.status = 'claimed'),
        running = running - (OLD.status = 'running'),
        awaiting_approval = awaiting_approval - (OLD.status = 'awaiting_approval'),
        awaiting_review = awaiting_review - (OLD.status = 'awaiting_review'),
        completed = completed - (OLD.status = 'completed'),
        failed = failed - (OLD.status = 'failed'),
        cancelled = cancelled - (OLD.status = 'cancelled'),
        unproved = unproved - (OLD.status = 'completed' AND OLD.proofs = 0)
    WHERE project_id = OLD.project_id AND work_item_id = OLD.work_item_id;
    UPDATE ledger_demand SET uses = uses - 1 WHERE number = OLD.demand;
END;
CREATE TRIGGER ledger_assignment_changed AFTER UPDATE OF status, proofs ON ledger_assignment
WHEN NEW.work_item_id = OLD.work_item_id AND (NEW.status <> OLD.status OR NEW.proofs <> OLD.proofs) BEGIN
    UPDATE ledger_item_tally SET queued = queued + (NEW.status = 'queued') - (OLD.status = 'queued'),
        claimed = claimed + (NEW.status = 'claimed') - (OLD.status = 'claimed'),
        running = running + (NEW.status = 'running') - (OLD.status = 'running'),
        awaiting_approval = awaiting_approval + (NEW.status = 'awaiting_approval') - (OLD.status = 'awaiting_approval'),
        awaiting_review = awaiting_review + (NEW.status = 'awaiting_review') - (OLD.status = 'awaiting_review'),
        completed = completed + (NEW.status = 'completed') - (OLD.status = 'completed'),
        failed = failed + (NEW.status = 'failed') - (OLD.status = 'failed'),
        cancelled = cancelled + (NEW.status = 'cancelled') - (OLD.status = 'cancelled'),
        unproved = unproved + (NEW.status = 'completed' AND NEW.proofs = 0) - (OLD.status = 'completed' AND OLD.proofs = 0)
    WHERE project_id = NEW.project_id AND work_item_id = NEW.work_item_id;
END;
CREATE TRIGGER ledger_assignment_moved AFTER UPDATE OF work_item_id ON ledger_assignment WHEN NEW.work_item_id <> OLD.work_item_id BEGIN
    UPDATE ledger_item_tally SET queued = queued - (OLD.status = 'queued'),
        claimed = claimed - (OLD.status = 'claimed'),
        running = running - (OLD.status = 'running'),
        awaiting_approval = awaiting_approval - (OLD.status = 'awaiting_approval'),
        awaiting_review = awaiting_review - (OLD.status = 'awaiting_review'),
        completed = completed - (OLD.status = 'completed'),
        failed = failed - (OLD.status = 'failed'),
        cancelled = cancelled - (OLD.status = 'cancelled'),
        unproved = unproved - (OLD.status = 'completed' AND OLD.proofs = 0)
    WHERE project_id = OLD.project_id AND work_item_id = OLD.work_item_id;
    UPDATE ledger_item_tally SET queued = queued + (NEW.status = 'queued'),
        claimed = claimed + (NEW.status = 'claimed'),
        running = running + (NEW.status = 'running'),
        awaiting_approval = awaiting_approval + (NEW.status = 'awaiting_approval'),
        awaiting_review = awaiting_review + (NEW.status = 'awaiting_review'),
        completed = completed + (NEW.status = 'completed'),
        failed = failed + (NEW.status = 'failed'),
        cancelled = cancelled + (NEW.status = 'cancelled'),
        unproved = unproved + (NEW.status = 'completed' AND NEW.proofs = 0)
    WHERE project_id = NEW.project_id AND work_item_id = NEW.work_item_id;
END;
CREATE TRIGGER ledger_assignment_asks AFTER UPDATE OF demand ON ledger_assignment WHEN NEW.demand <> OLD.demand BEGIN
    UPDATE ledger_demand SET uses = uses - 1 WHERE number = OLD.demand;
    UPDATE ledger_demand SET uses = uses + 1 WHERE number = NEW.demand;
END;

CREATE TRIGGER ledger_evidence_loose AFTER INSERT ON ledger_evidence WHEN NEW.assignment_id = '' BEGIN
    UPDATE ledger_item_tally SET loose = loose + 1 WHERE project_id = NEW.project_id AND work_item_id = NEW.work_item_id;
END;
CREATE TRIGGER ledger_evidence_proof AFTER INSERT ON ledger_evidence WHEN NEW.assignment_id <> '' BEGIN
    UPDATE ledger_assignment SET proofs = proofs + 1 WHERE project_id = NEW.project_id AND id = NEW.assignment_id;
END;

CREATE TRIGGER ledger_handoff_born AFTER INSERT ON ledger_handoff WHEN NEW.status = 'open' BEGIN
    UPDATE ledger_item_tally SET handoffs = handoffs + 1 WHERE project_id = NEW.project_id AND work_item_id = NEW.work_item_id;
END;
CREATE TRIGGER ledger_handoff_changed AFTER UPDATE OF status ON ledger_handoff WHEN (NEW.status = 'open') <> (OLD.status = 'open') BEGIN
    UPDATE ledger_item_tally SET handoffs = handoffs + (NEW.status = 'open') - (OLD.status = 'open')
        WHERE project_id = NEW.project_id AND work_item_id = NEW.work_item_id;
END;
CREATE TRIGGER ledger_handoff_gone AFTER DELETE ON ledger_handoff WHEN OLD.status = 'open' BEGIN
    UPDATE ledger_item_tally SET handoffs = handoffs - 1 WHERE project_id = OLD.project_id AND work_item_id = OLD.work_item_id;
END;

CREATE TRIGGER ledger_review_born AFTER INSERT ON ledger_review WHEN NEW.unresolved = 1 BEGIN
    UPDATE ledger_item_tally SET followups = followups + 1 WHERE project_id = NEW.project_id AND work_item_id = NEW.work_item_id;
END;
CREATE TRIGGER ledger_review_changed AFTER UPDATE OF unresolved ON ledger_review WHEN NEW.unresolved <> OLD.unresolved BEGIN
    UPDATE ledger_item_tally SET followups = followups + NEW.unresolved - OLD.unresolved
        WHERE project_id = NEW.project_id AND work_item_id = NEW.work_item_id;
END;
CREATE TRIGGER ledger_review_gone AFTER DELETE ON ledger_review WHEN OLD.unresolved = 1 BEGIN
    UPDATE ledger_item_tally SET followups = followups - 1 WHERE project_id = OLD.project_id AND work_item_id = OLD.work_item_id;
END;
