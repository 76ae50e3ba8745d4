package coordination

import (
	"github.com/agent-knock-knock/akk/internal/ledger"
	"github.com/agent-knock-knock/akk/internal/ledger/coord"
	"github.com/agent-knock-knock/akk/internal/ledger/ledgersql"
	"github.com/agent-knock-knock/akk/internal/ledger/overview"
)

// The records of a ledger.
type (
	Project         = ledger.Project
	Root            = ledger.Root
	ContextSource   = ledger.Source
	Role            = ledger.Role
	Skill           = ledger.Skill
	WorkItem        = ledger.WorkItem
	Assignment      = ledger.Assignment
	DesiredAgent    = ledger.DesiredAgent
	AssignmentClaim = ledger.Claim
	ExecutionRef    = ledger.ExecutionRef
	Artifact        = ledger.Artifact
	Evidence        = ledger.Evidence
	Review          = ledger.Review
	Handoff         = ledger.Handoff
	MemoryEntry     = ledger.MemoryEntry
	MemoryCandidate = ledger.MemoryCandidate
	SourceRef       = ledger.SourceRef
	Proposal        = ledger.Proposal
	ProposalAction  = ledger.Action
	ProposalRecord  = ledger.ProposalRecord
	ApplyResult     = ledger.ApplyResult
	Snapshot        = ledger.Snapshot
)

// What readers get.
type (
	Readiness         = overview.Readiness
	Activity          = overview.Activity
	OperationsBrief   = overview.Brief
	SetupReadiness    = overview.Setup
	Health            = overview.Health
	AssignmentContext = ledger.Context
	LaunchPacket      = ledger.Packet
)

// What callers give.
type (
	// AssignmentCoordination is what [Assignment.Coordination] returns.
	AssignmentCoordination = ledger.Coordination
	// QueuedAssignmentUpdate is a compare-and-set edit of queued work.
	QueuedAssignmentUpdate = ledger.QueuedUpdate
	RootInput              = ledger.RootInput
	ContextSourceInput     = ledger.SourceInput
	ProjectPatch           = coord.ProjectPatch
	RolePatch              = coord.RolePatch
	WorkItemPatch          = coord.WorkItemPatch
	SkillPatch             = ledger.SkillPatch
	HandoffPatch           = ledger.HandoffPatch
	MemoryPatch            = coord.MemoryPatch
	Promotion              = ledger.Promotion
	NextFilter             = coord.NextFilter
	AssignmentFilter       = ledgersql.AssignmentFilter
	Span                   = coord.Span
	// Acceptance is an operator's decision on a handoff; Accepted is its outcome.
	Acceptance = ledger.Acceptance
	Accepted   = coord.Accepted
)

// Page is a piece of a list; Next is the offset of what follows, 0 at the end.
type Page[T any] = coord.Page[T]

// The intent of every [Acceptance].
const AcceptIntent = ledger.AcceptIntent

// The statuses of an assignment.
const (
	StatusQueued           = ledger.Queued
	StatusClaimed          = ledger.Claimed
	StatusRunning          = ledger.Running
	StatusAwaitingApproval = ledger.AwaitingApproval
	StatusAwaitingReview   = ledger.AwaitingReview
	StatusCompleted        = ledger.Completed
	StatusFailed           = ledger.Failed
	StatusCancelled        = ledger.Cancelled
)

// The execution modes; each is a request, not an authorization.
const (
	ModeManual          = ledger.ModeManual
	ModeMCPPull         = ledger.ModePull
	ModeExternalAdapter = ledger.ModeAdapter
	ModeOrchestrated    = ledger.ModeOrchestrated
)
