-- Evidence proves an assignment in the work item in which it was recorded: who closes the
-- item finds it there. Work that was queued again and moved to another item leaves its
-- evidence behind, so proofs counts only the evidence in the item of the assignment.
DROP TRIGGER ledger_evidence_proof;
CREATE TRIGGER ledger_evidence_proof AFTER INSERT ON ledger_evidence WHEN NEW.assignment_id <> '' BEGIN
    UPDATE ledger_assignment SET proofs = proofs + 1
    WHERE project_id = NEW.project_id AND id = NEW.assignment_id AND work_item_id = NEW.work_item_id;
END;

-- The last statement comes after the counters took the row as it was: its own trigger,
-- ledger_assignment_changed, brings them to the new number.
DROP TRIGGER ledger_assignment_moved;
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
    UPDATE ledger_assignment SET proofs = (SELECT count(*) FROM ledger_evidence e
        WHERE e.project_id = NEW.project_id AND e.assignment_id = NEW.id AND e.work_item_id = NEW.work_item_id)
    WHERE project_id = NEW.project_id AND id = NEW.id;
END;

UPDATE ledger_assignment SET proofs = (SELECT count(*) FROM ledger_evidence e
    WHERE e.project_id = ledger_assignment.project_id AND e.assignment_id = ledger_assignment.id AND e.work_item_id = ledger_assignment.work_item_id)
WHERE proofs > 0;
