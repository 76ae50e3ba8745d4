package ledger

import "time"

// Artifact is a collaboration note of any kind. It is written once.
type Artifact struct {
	ID             string    `json:"id"`
	ProjectID      string    `json:"project_id"`
	WorkItemID     string    `json:"work_item_id"`
	AssignmentID   string    `json:"assignment_id,omitempty"`
	Kind           string    `json:"kind"`
	Title          string    `json:"title,omitempty"`
	Body           string    `json:"body"`
	AuthorRoleID   string    `json:"author_role_id,omitempty"`
	ProvenanceKind string    `json:"provenance_kind,omitempty"`
	TrustLabel     string    `json:"trust_label,omitempty"`
	CreatedAt      time.Time `json:"created_at,omitzero"`
	UpdatedAt      time.Time `json:"updated_at,omitzero"`
}

// CleanArtifact makes an artifact canonical.
func CleanArtifact(a Artifact) (Artifact, error) {
	a.AssignmentID, a.Kind, a.Title, a.Body = Trim(a.AssignmentID), Trim(a.Kind), Trim(a.Title), Trim(a.Body)
	a.AuthorRoleID, a.ProvenanceKind, a.TrustLabel = Trim(a.AuthorRoleID), Trim(a.ProvenanceKind), Trim(a.TrustLabel)
	if err := Required("kind", a.Kind); err != nil {
		return a, err
	}
	if err := Required("body", a.Body); err != nil {
		return a, err
	}
	return a, check(short("kind", a.Kind), short("title", a.Title), body("body", a.Body), short("provenance_kind", a.ProvenanceKind), short("trust_label", a.TrustLabel))
}

// Evidence is proof of work. It is only ever added; its locator is never opened.
type Evidence struct {
	ID           string    `json:"id"`
	ProjectID    string    `json:"project_id"`
	WorkItemID   string    `json:"work_item_id"`
	AssignmentID string    `json:"assignment_id,omitempty"`
	Title        string    `json:"title"`
	Body         string    `json:"body,omitempty"`
	Locator      string    `json:"locator,omitempty"`
	SourceKind   string    `json:"source_kind,omitempty"`
	ExternalID   string    `json:"external_id,omitempty"`
	Provider     string    `json:"provider,omitempty"`
	TrustLabel   string    `json:"trust_label"`
	CreatedAt    time.Time `json:"created_at,omitzero"`
	UpdatedAt    time.Time `json:"updated_at,omitzero"`
}

// CleanEvidence makes evidence canonical.
func CleanEvidence(e Evidence) (Evidence, error) {
	e.AssignmentID, e.Title, e.Body, e.Locator = Trim(e.AssignmentID), Trim(e.Title), Trim(e.Body), Trim(e.Locator)
	e.SourceKind, e.ExternalID, e.Provider = Trim(e.SourceKind), Trim(e.ExternalID), Trim(e.Provider)
	e.TrustLabel = or(Trim(e.TrustLabel), "operator_provided")
	if err := Required("title", e.Title); err != nil {
		return e, err
	}
	if e.Body == "" && e.Locator == "" {
		return e, invalid("evidence needs a body or a locator")
	}
	return e, check(short("title", e.Title), body("body", e.Body), body("locator", e.Locator), short("source_kind", e.SourceKind),
		short("external_id", e.ExternalID), short("provider", e.Provider), short("trust_label", e.TrustLabel))
}

// Review is a verdict on work. It is only ever added.
type Review struct {
	ID             string    `json:"id"`
	ProjectID      string    `json:"project_id"`
	WorkItemID     string    `json:"work_item_id"`
	AssignmentID   string    `json:"assignment_id,omitempty"`
	ReviewerRoleID string    `json:"reviewer_role_id,omitempty"`
	Title          string    `json:"title"`
	Body           string    `json:"body"`
	Verdict        string    `json:"verdict"`
	Risk           string    `json:"risk,omitempty"`
	Status         string    `json:"status"`
	CreatedAt      time.Time `json:"created_at,omitzero"`
	UpdatedAt      time.Time `json:"updated_at,omitzero"`
}

// The verdicts that ask for follow-up.
const (
	VerdictChanges = "changes_requested"
	VerdictBlocked = "blocked"
)

var (
	verdicts = []string{"approved", VerdictChanges, VerdictBlocked, "risk"}
	risks    = []string{"low", "medium", "high", "unknown"}
)

// AsksFollowUp reports whether work must follow.
func (r Review) AsksFollowUp() bool {
	return r.Verdict == VerdictChanges || r.Verdict == VerdictBlocked
}

// CleanReview makes a review canonical.
func CleanReview(r Review) (Review, error) {
	r.AssignmentID, r.ReviewerRoleID, r.Body = Trim(r.AssignmentID), Trim(r.ReviewerRoleID), Trim(r.Body)
	r.Title, r.Verdict, r.Risk, r.Status = or(Trim(r.Title), "Review"), Trim(r.Verdict), Trim(r.Risk), "recorded"
	if err := Required("body", r.Body); err != nil {
		return r, err
	}
	if err := oneOf("verdict", r.Verdict, verdicts); err != nil {
		return r, err
	}
	if r.Risk != "" {
		if err := oneOf("risk", r.Risk, risks); err != nil {
			return r, err
		}
	}
	return r, check(short("title", r.Title), body("body", r.Body))
}

// MemoryEntry is knowledge that an operator accepted.
type MemoryEntry struct {
	ID         string    `json:"id"`
	ProjectID  string    `json:"project_id"`
	Title      string    `json:"title"`
	Body       string    `json:"body"`
	TrustLabel string    `json:"trust_label"`
	SourceKind string    `json:"source_kind,omitempty"`
	SourceID   string    `json:"source_id,omitempty"`
	Enabled    bool      `json:"enabled"`
	CreatedAt  time.Time `json:"created_at,omitzero"`
	UpdatedAt  time.Time `json:"updated_at,omitzero"`
}

// CleanMemory makes an entry canonical.
func CleanMemory(m MemoryEntry) (MemoryEntry, error) {
	m.Title, m.Body, m.SourceKind, m.SourceID = Trim(m.Title), Trim(m.Body), Trim(m.SourceKind), Trim(m.SourceID)
	m.TrustLabel = or(Trim(m.TrustLabel), "operator_memory")
	if err := Required("title", m.Title); err != nil {
		return m, err
	}
	if err := Required("body", m.Body); err != nil {
		return m, err
	}
	return m, check(short("title", m.Title), body("body", m.Body), short("trust_label", m.TrustLabel), short("source_kind", m.SourceKind), short("source_id", m.SourceID))
}

// MemoryCandidate is knowledge that waits for an operator's decision.
type MemoryCandidate struct {
	ID                  string      `json:"id"`
	ProjectID           string      `json:"project_id"`
	Title               string      `json:"title"`
	Body                string      `json:"body"`
	SuggestedKind       string      `json:"suggested_kind,omitempty"`
	SuggestedTrustLabel string      `json:"suggested_trust_label,omitempty"`
	SuggestedSourceKind string      `json:"suggested_source_kind,omitempty"`
	SuggestedSourceID   string      `json:"suggested_source_id,omitempty"`
	SourceRefs          []SourceRef `json:"source_refs,omitempty"`
	Status              string      `json:"status"`
	StatusReason        string      `json:"status_reason,omitempty"`
	PromotedMemoryID    string      `json:"promoted_memory_id,omitempty"`
	CreatedAt           time.Time   `json:"created_at,omitzero"`
	UpdatedAt           time.Time   `json:"updated_at,omitzero"`
}

// SourceRef names where a candidate comes from.
type SourceRef struct {
	Kind  string `json:"kind"`
	ID    string `json:"id"`
	Title string `json:"title,omitempty"`
	URL   string `json:"url,omitempty"`
}

// The states of a candidate; the last two are final.
const (
	Pending  = "pending"
	Promoted = "promoted"
	Rejected = "rejected"
)

// CandidateStates are all of them.
var CandidateStates = []string{Pending, Promoted, Rejected}

const (
	generatedTrust  = "generated_summary"
	generatedSource = "generated"
)

// CleanCandidate makes a candidate canonical; an incomplete source reference is dropped.
func CleanCandidate(c MemoryCandidate) (MemoryCandidate, error) {
	c.Title, c.Body, c.SuggestedKind, c.SuggestedSourceID = Trim(c.Title), Trim(c.Body), Trim(c.SuggestedKind), Trim(c.SuggestedSourceID)
	c.SuggestedTrustLabel = or(Trim(c.SuggestedTrustLabel), generatedTrust)
	c.SuggestedSourceKind = or(Trim(c.SuggestedSourceKind), generatedSource)
	c.Status = or(Trim(c.Status), Pending)
	if c.Status == "proposed" { // as older releases of peers wrote it
		c.Status = Pending
	}
	if err := Required("title", c.Title); err != nil {
		return c, err
	}
	if err := Required("body", c.Body); err != nil {
		return c, err
	}
	if err := oneOf("status", c.Status, CandidateStates); err != nil {
		return c, err
	}
	if len(c.SourceRefs) > MaxItems {
		return c, invalid("source_refs has more than %d entries", MaxItems)
	}
	var refs []SourceRef
	for _, r := range c.SourceRefs {
		r = SourceRef{Trim(r.Kind), Trim(r.ID), Trim(r.Title), Trim(r.URL)}
		if err := check(short("source_refs.kind", r.Kind), short("source_refs.id", r.ID), short("source_refs.title", r.Title), short("source_refs.url", r.URL)); err != nil {
			return c, err
		}
		if r.Kind != "" && r.ID != "" {
			refs = append(refs, r)
		}
	}
	c.SourceRefs = refs
	return c, check(short("title", c.Title), body("body", c.Body), short("suggested_kind", c.SuggestedKind),
		short("suggested_trust_label", c.SuggestedTrustLabel), short("suggested_source_kind", c.SuggestedSourceKind), short("suggested_source_id", c.SuggestedSourceID))
}

// Promotion is what an operator changes on the way into memory; nil keeps the suggestion.
type Promotion struct {
	Title, Body, TrustLabel, SourceKind, SourceID *string
	Enabled                                       *bool
}

// Promote turns a pending candidate into an entry.
func (c MemoryCandidate) Promote(p Promotion, memoryID string, now time.Time) (MemoryCandidate, MemoryEntry, error) {
	if c.Status != Pending {
		return c, MemoryEntry{}, conflict("the candidate is %s", c.Status)
	}
	m := MemoryEntry{ID: memoryID, ProjectID: c.ProjectID, Title: c.Title, Body: c.Body, TrustLabel: c.SuggestedTrustLabel,
		SourceKind: c.SuggestedSourceKind, SourceID: c.SuggestedSourceID, Enabled: true, CreatedAt: now, UpdatedAt: now}
	set(&m.Title, p.Title)
	set(&m.Body, p.Body)
	set(&m.TrustLabel, p.TrustLabel)
	set(&m.SourceKind, p.SourceKind)
	set(&m.SourceID, p.SourceID)
	if p.Enabled != nil {
		m.Enabled = *p.Enabled
	}
	m.TrustLabel, m.SourceKind = or(m.TrustLabel, generatedTrust), or(m.SourceKind, generatedSource)
	m, err := CleanMemory(m)
	if err != nil {
		return c, m, err
	}
	c.Status, c.PromotedMemoryID, c.UpdatedAt = Promoted, m.ID, Next(c.UpdatedAt, now)
	return c, m, nil
}

// Reject closes a pending candidate.
func (c MemoryCandidate) Reject(reason string, now time.Time) (MemoryCandidate, error) {
	if c.Status != Pending {
		return c, conflict("the candidate is %s", c.Status)
	}
	c.Status, c.StatusReason, c.UpdatedAt = Rejected, Trim(reason), Next(c.UpdatedAt, now)
	return c, check(body("reason", c.StatusReason))
}
