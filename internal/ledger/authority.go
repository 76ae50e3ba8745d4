package ledger

import "time"

// The rules of this file are for a trusted embedding host. They know no fence and must
// never be a tool of an agent.

// AcquireByHost claims without a lease.
func (a Assignment) AcquireByHost(label string, now time.Time) (Assignment, error) {
	label = Trim(label)
	if err := Required("claimed_by", label); err != nil {
		return a, err
	}
	if a.Status != Queued {
		return a, a.taken(now)
	}
	a.Status, a.ClaimedBy = Claimed, label
	a.UpdatedAt = Next(a.UpdatedAt, now)
	return a, nil
}

func (a Assignment) heldBy(label string) error {
	label = Trim(label)
	if err := Required("claimed_by", label); err != nil {
		return err
	}
	switch {
	case a.Status != Claimed:
		return conflict("the assignment is %s, not claimed", a.Status)
	case a.ClaimedBy != label:
		return conflict("the assignment is claimed by %q", Clip(a.ClaimedBy))
	}
	return nil
}

// PrepareByHost is Prepare for the label that claimed.
func (a Assignment) PrepareByHost(label string, r *ExecutionRef, contextID string, now time.Time) (Assignment, error) {
	r, contextID, err := preparation(r, contextID)
	if err != nil {
		return a, err
	}
	if err := a.heldBy(label); err != nil {
		return a, err
	}
	return a.prepared(r, contextID, now), nil
}

// ReleaseByHost is Release for the label that claimed.
func (a Assignment) ReleaseByHost(label string, now time.Time) (Assignment, error) {
	if err := a.heldBy(label); err != nil {
		return a, err
	}
	return a.requeued(now), nil
}

// ProgressByHost is Progress without a fence.
func (a Assignment) ProgressByHost(status string, r *ExecutionRef, now time.Time) (Assignment, error) {
	status, r, err := move(status, r, "", progress)
	if err != nil {
		return a, err
	}
	if a.Status == Queued || a.Terminal() {
		return a, conflict("the assignment is %s", a.Status)
	}
	return a.moved(status, r, now), nil
}

// FinishByHost ends work from any state that is no end. Queued work that is cancelled
// never started.
func (a Assignment) FinishByHost(status string, r *ExecutionRef, now time.Time) (Assignment, error) {
	status, r, err := move(status, r, Completed, completions)
	if err != nil {
		return a, err
	}
	if a.Terminal() {
		return a, conflict("the assignment is %s since %s: the first end stands", a.Status, stamp(a.CompletedAt))
	}
	unstarted := a.Status == Queued && status == Cancelled
	a = a.moved(status, r, now)
	if unstarted {
		a.StartedAt = time.Time{}
	}
	return a, nil
}
