-- The coordination ledger. Times are unix nanoseconds, 0 for "not yet". Ids are text.
-- Lists that are only ever replaced whole are JSON text; everything that is edited or
-- asked for has a table. Counters are kept by triggers, so that a reading never counts.

CREATE TABLE ledger_project (
    id              TEXT PRIMARY KEY,
    name            TEXT NOT NULL,
    description     TEXT NOT NULL,
    default_root_id TEXT NOT NULL,
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL
) STRICT;
CREATE INDEX ledger_project_recent ON ledger_project (updated_at DESC, id);

CREATE TABLE ledger_root (
    project_id TEXT NOT NULL REFERENCES ledger_project (id) ON DELETE CASCADE,
    id         TEXT NOT NULL,
    place      INTEGER NOT NULL,
    path       TEXT NOT NULL,
    kind       TEXT NOT NULL,
    git_remote TEXT NOT NULL,
    git_branch TEXT NOT NULL,
    active     INTEGER NOT NULL,
    PRIMARY KEY (project_id, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE ledger_source (
    project_id      TEXT NOT NULL REFERENCES ledger_project (id) ON DELETE CASCADE,
    id              TEXT NOT NULL,
    place           INTEGER NOT NULL,
    kind            TEXT NOT NULL,
    title           TEXT NOT NULL,
    locator         TEXT NOT NULL,
    enabled         INTEGER NOT NULL,
    format          TEXT NOT NULL,
    scope           TEXT NOT NULL,
    trust_label     TEXT NOT NULL,
    source_category TEXT NOT NULL,
    metadata        TEXT NOT NULL,
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    PRIMARY KEY (project_id, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE ledger_role (
    project_id             TEXT NOT NULL REFERENCES ledger_project (id) ON DELETE CASCADE,
    id                     TEXT NOT NULL,
    name                   TEXT NOT NULL,
    description            TEXT NOT NULL,
    instructions           TEXT NOT NULL,
    default_skill_ids      TEXT NOT NULL,
    default_execution_mode TEXT NOT NULL,
    PRIMARY KEY (project_id, id)
) STRICT;
CREATE INDEX ledger_role_name ON ledger_role (project_id, name, id);

CREATE TABLE ledger_skill (
    project_id           TEXT NOT NULL REFERENCES ledger_project (id) ON DELETE CASCADE,
    id                   TEXT NOT NULL,
    title                TEXT NOT NULL,
    description          TEXT NOT NULL,
    path                 TEXT NOT NULL,
    root_id              TEXT NOT NULL,
    format               TEXT NOT NULL,
    suggested_tools      TEXT NOT NULL,
    required_permissions TEXT NOT NULL,
    enabled              INTEGER NOT NULL,
    status               TEXT NOT NULL,
    trust_label          TEXT NOT NULL,
    source_refs          TEXT NOT NULL,
    warnings             TEXT NOT NULL,
    discovered_at        INTEGER NOT NULL,
    created_at           INTEGER NOT NULL,
    updated_at           INTEGER NOT NULL,
    PRIMARY KEY (project_id, id)
) STRICT;

-- is_open and rank follow from status and priority.
CREATE TABLE ledger_work_item (
    project_id        TEXT NOT NULL REFERENCES ledger_project (id) ON DELETE CASCADE,
    id                TEXT NOT NULL,
    title             TEXT NOT NULL,
    brief             TEXT NOT NULL,
    status            TEXT NOT NULL,
    priority          TEXT NOT NULL,
    owner_role_id     TEXT NOT NULL,
    reviewer_role_ids TEXT NOT NULL,
    root_id           TEXT NOT NULL,
    created_at        INTEGER NOT NULL,
    updated_at        INTEGER NOT NULL,
    is_open           INTEGER NOT NULL,
    rank              INTEGER NOT NULL,
    PRIMARY KEY (project_id, id)
) STRICT;
CREATE INDEX ledger_work_item_recent ON ledger_work_item (project_id, updated_at DESC, id);

-- What an assignment asks of a worker: a project has few different demands however many
-- assignments it has, so that a search for compatible work looks at the demands first.
CREATE TABLE ledger_demand (
    number     INTEGER PRIMARY KEY,
    project_id TEXT NOT NULL REFERENCES ledger_project (id) ON DELETE CASCADE,
    mode       TEXT NOT NULL,
    agent_kind TEXT NOT NULL,
    skills     TEXT NOT NULL,
    uses       INTEGER NOT NULL DEFAULT 0,
    UNIQUE (project_id, mode, agent_kind, skills)
) STRICT;

-- is_open and rank are those of the work item, proofs counts the evidence.
CREATE TABLE ledger_assignment (
    project_id          TEXT NOT NULL,
    id                  TEXT NOT NULL,
    work_item_id        TEXT NOT NULL,
    role_id             TEXT NOT NULL,
    root_id             TEXT NOT NULL,
    execution_mode      TEXT NOT NULL,
    status              TEXT NOT NULL CHECK (status IN ('queued', 'claimed', 'running', 'awaiting_approval', 'awaiting_review', 'completed', 'failed', 'cancelled')),
    agent_kind          TEXT NOT NULL,
    skill_ids           TEXT NOT NULL,
    claimed_by          TEXT NOT NULL,
    claim_id            TEXT NOT NULL,
    claim_acquired_at   INTEGER NOT NULL,
    claim_expires_at    INTEGER NOT NULL,
    ref_kind            TEXT NOT NULL,
    ref_task_id         TEXT NOT NULL,
    ref_run_id          TEXT NOT NULL,
    ref_session_id      TEXT NOT NULL,
    ref_trace_id        TEXT NOT NULL,
    ref_approvals       INTEGER NOT NULL,
    context_snapshot_id TEXT NOT NULL,
    created_at          INTEGER NOT NULL,
    updated_at          INTEGER NOT NULL,
    started_at          INTEGER NOT NULL,
    completed_at        INTEGER NOT NULL,
    demand              INTEGER NOT NULL,
    is_open             INTEGER NOT NULL,
    rank                INTEGER NOT NULL,
    proofs              INTEGER NOT NULL,
    PRIMARY KEY (project_id, id),
    FOREIGN KEY (project_id, work_item_id) REFERENCES ledger_work_item (project_id, id) ON DELETE CASCADE
) STRICT;
CREATE INDEX ledger_assignment_offer ON ledger_assignment (demand, rank, created_at, id) WHERE status = 'queued' AND is_open = 1;
CREATE INDEX ledger_assignment_recent ON ledger_assignment (project_id, updated_at DESC, id);
CREATE INDEX ledger_assignment_status ON ledger_assignment (project_id, status, is_open, updated_at DESC, id);
CREATE INDEX ledger_assignment_item ON ledger_assignment (project_id, work_item_id, updated_at DESC, id);
CREATE INDEX ledger_assignment_expiry ON ledger_assignment (project_id, claim_expires_at) WHERE status = 'claimed' AND claim_id <> '';
CREATE INDEX ledger_assignment_unproved ON ledger_assignment (project_id, updated_at DESC, id) WHERE status = 'completed' AND proofs = 0 AND is_open = 1;

CREATE TABLE ledger_artifact (
    project_id      TEXT NOT NULL,
    id              TEXT NOT NULL,
    work_item_id    TEXT NOT NULL,
    assignment_id   TEXT NOT NULL,
    kind            TEXT NOT NULL,
    title           TEXT NOT NULL,
    body            TEXT NOT NULL,
    author_role_id  TEXT NOT NULL,
    provenance_kind TEXT NOT NULL,
    trust_label     TEXT NOT NULL,
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    PRIMARY KEY (project_id, id),
    FOREIGN KEY (project_id, work_item_id) REFERENCES ledger_work_item (project_id, id) ON DELETE CASCADE
) STRICT;
CREATE INDEX ledger_artifact_item ON ledger_artifact (project_id, work_item_id, created_at, id);
CREATE INDEX ledger_artifact_assignment ON ledger_artifact (project_id, assignment_id) WHERE assignment_id <> '';

CREATE TABLE ledger_evidence (
    project_id    TEXT NOT NULL,
    id            TEXT NOT NULL,
    work_item_id  TEXT NOT NULL,
    assignment_id TEXT NOT NULL,
    title         TEXT NOT NULL,
    body          TEXT NOT NULL,
    locator       TEXT NOT NULL,
    source_kind   TEXT NOT NULL,
    external_id   TEXT NOT NULL,
    provider      TEXT NOT NULL,
    trust_label   TEXT NOT NULL,
    created_at    INTEGER NOT NULL,
    updated_at    INTEGER NOT NULL,
    PRIMARY KEY (project_id, id),
    FOREIGN KEY (project_id, work_item_id) REFERENCES ledger_work_item (project_id, id) ON DELETE CASCADE
) STRICT;
CREATE INDEX ledger_evidence_item ON ledger_evidence (project_id, work_item_id, updated_at DESC, id);
CREATE INDEX ledger_evidence_assignment ON ledger_evidence (project_id, assignment_id) WHERE assignment_id <> '';

-- unresolved: the review asks for follow-up and none is finished.
CREATE TABLE ledger_review (
    project_id       TEXT NOT NULL,
    id               TEXT NOT NULL,
    work_item_id     TEXT NOT NULL,
    assignment_id    TEXT NOT NULL,
    reviewer_role_id TEXT NOT NULL,
    title            TEXT NOT NULL,
    body             TEXT NOT NULL,
    verdict          TEXT NOT NULL,
    risk             TEXT NOT NULL,
    status           TEXT NOT NULL,
    created_at       INTEGER NOT NULL,
    updated_at       INTEGER NOT NULL,
    unresolved       INTEGER NOT NULL,
    PRIMARY KEY (project_id, id),
    FOREIGN KEY (project_id, work_item_id) REFERENCES ledger_work_item (project_id, id) ON DELETE CASCADE
) STRICT;
CREATE INDEX ledger_review_item ON ledger_review (project_id, work_item_id, updated_at DESC, id);
CREATE INDEX ledger_review_assignment ON ledger_review (project_id, assignment_id) WHERE assignment_id <> '';
CREATE INDEX ledger_review_verdict ON ledger_review (project_id, verdict);
CREATE INDEX ledger_review_unresolved ON ledger_review (project_id, updated_at DESC, id) WHERE unresolved = 1;

CREATE TABLE ledger_handoff (
    project_id              TEXT NOT NULL,
    id                      TEXT NOT NULL,
    work_item_id            TEXT NOT NULL,
    source_assignment_id    TEXT NOT NULL,
    source_run_id           TEXT NOT NULL,
    source_chat_session_id  TEXT NOT NULL,
    source_message_id       TEXT NOT NULL,
    from_role_id            TEXT NOT NULL,
    to_role_id              TEXT NOT NULL,
    target_assignment_id    TEXT NOT NULL,
    target_work_item_id     TEXT NOT NULL,
    title                   TEXT NOT NULL,
    body                    TEXT NOT NULL,
    recommended_next_action TEXT NOT NULL,
    linked_artifact_ids     TEXT NOT NULL,
    linked_memory_ids       TEXT NOT NULL,
    context_refs            TEXT NOT NULL,
    status                  TEXT NOT NULL,
    provenance_kind         TEXT NOT NULL,
    trust_label             TEXT NOT NULL,
    created_at              INTEGER NOT NULL,
    updated_at              INTEGER NOT NULL,
    status_changed_at       INTEGER NOT NULL,
    PRIMARY KEY (project_id, id),
    FOREIGN KEY (project_id, work_item_id) REFERENCES ledger_work_item (project_id, id) ON DELETE CASCADE
) STRICT;
CREATE INDEX ledger_handoff_item ON ledger_handoff (project_id, work_item_id, updated_at DESC, id);
CREATE INDEX ledger_handoff_status ON ledger_handoff (project_id, status, updated_at DESC, id);
CREATE INDEX ledger_handoff_target ON ledger_handoff (project_id, target_assignment_id) WHERE target_assignment_id <> '';
CREATE INDEX ledger_handoff_target_item ON ledger_handoff (project_id, target_work_item_id) WHERE target_work_item_id <> '';

-- The linked_artifact_ids of handoffs, to find the handoffs of a review.
CREATE TABLE ledger_handoff_link (
    project_id  TEXT NOT NULL,
    artifact_id TEXT NOT NULL,
    handoff_id  TEXT NOT NULL,
    PRIMARY KEY (project_id, artifact_id, handoff_id),
    FOREIGN KEY (project_id, handoff_id) REFERENCES ledger_handoff (project_id, id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE INDEX ledger_handoff_link_handoff ON ledger_handoff_link (project_id, handoff_id);

-- What a command answered once, so that its repetition answers the same.
CREATE TABLE ledger_receipt (
    project_id      TEXT NOT NULL REFERENCES ledger_project (id) ON DELETE CASCADE,
    operation       TEXT NOT NULL,
    idempotency_key TEXT NOT NULL,
    fingerprint     TEXT NOT NULL,
    outcome         TEXT NOT NULL,
    handoff_id      TEXT NOT NULL,
    assignment_id   TEXT NOT NULL,
    created_at      INTEGER NOT NULL,
    PRIMARY KEY (project_id, operation, idempotency_key)
) STRICT, WITHOUT ROWID;

CREATE TABLE ledger_memory (
    project_id  TEXT NOT NULL REFERENCES ledger_project (id) ON DELETE CASCADE,
    id          TEXT NOT NULL,
    title       TEXT NOT NULL,
    body        TEXT NOT NULL,
    trust_label TEXT NOT NULL,
    source_kind TEXT NOT NULL,
    source_id   TEXT NOT NULL,
    enabled     INTEGER NOT NULL,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL,
    PRIMARY KEY (project_id, id)
) STRICT;
CREATE INDEX ledger_memory_order ON ledger_memory (project_id, enabled DESC, updated_at DESC, title, id);

CREATE TABLE ledger_candidate (
    project_id            TEXT NOT NULL REFERENCES ledger_project (id) ON DELETE CASCADE,
    id                    TEXT NOT NULL,
    title                 TEXT NOT NULL,
    body                  TEXT NOT NULL,
    suggested_kind        TEXT NOT NULL,
    suggested_trust_label TEXT NOT NULL,
    suggested_source_kind TEXT NOT NULL,
    suggested_source_id   TEXT NOT NULL,
    source_refs           TEXT NOT NULL,
    status                TEXT NOT NULL CHECK (status IN ('pending', 'promoted', 'rejected')),
    status_reason         TEXT NOT NULL,
    promoted_memory_id    TEXT NOT NULL,
    created_at            INTEGER NOT NULL,
    updated_at            INTEGER NOT NULL,
    PRIMARY KEY (project_id, id)
) STRICT;
-- pending, promoted, rejected happen to be in the order of the alphabet.
CREATE INDEX ledger_candidate_order ON ledger_candidate (project_id, status, updated_at DESC, title, id);

-- project_id is no reference: a proposal may be for a project that is not there yet.
CREATE TABLE ledger_proposal (
    id         TEXT PRIMARY KEY,
    project_id TEXT NOT NULL,
    source     TEXT NOT NULL,
    source_id  TEXT NOT NULL,
    status     TEXT NOT NULL,
    proposal   TEXT NOT NULL,
    result     TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    applied_at INTEGER NOT NULL
) STRICT;
CREATE INDEX ledger_proposal_project ON ledger_proposal (project_id, updated_at DESC, id);
CREATE INDEX ledger_proposal_recent ON ledger_proposal (updated_at DESC, id);

CREATE TABLE ledger_attempt (
    proposal_id   TEXT NOT NULL REFERENCES ledger_proposal (id) ON DELETE CASCADE,
    place         INTEGER NOT NULL,
    id            TEXT NOT NULL,
    status        TEXT NOT NULL,
    confirmed     INTEGER NOT NULL,
    result        TEXT NOT NULL,
    error_message TEXT NOT NULL,
    created_at    INTEGER NOT NULL,
    PRIMARY KEY (proposal_id, place)
) STRICT, WITHOUT ROWID;
