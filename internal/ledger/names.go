package ledger

import (
	"crypto/rand"
	"encoding/hex"
)

// Kind is the prefix of a minted id.
type Kind string

// The kinds of records.
const (
	KindProject   Kind = "proj"
	KindRoot      Kind = "root"
	KindSource    Kind = "src"
	KindWorkItem  Kind = "work"
	KindRole      Kind = "role"
	KindAssign    Kind = "asgn"
	KindArtifact  Kind = "art"
	KindEvidence  Kind = "ev"
	KindReview    Kind = "rev"
	KindHandoff   Kind = "handoff"
	KindMemory    Kind = "mem"
	KindCandidate Kind = "memcand"
	KindProposal  Kind = "prop"
	KindAttempt   Kind = "paatt"
	KindContext   Kind = "ctx"
	KindLaunch    Kind = "launch"
)

// NewID mints the id of a record.
func NewID(k Kind) string { return string(k) + "_" + random(8) }

// NewClaimID mints a fence.
func NewClaimID() string { return "claim_" + random(16) }

func random(n int) string {
	b := make([]byte, n)
	rand.Read(b) // never fails: the process ends when the system has no randomness
	return hex.EncodeToString(b)
}

// ExecutionModes are what an assignment may ask for. A mode is a request.
var ExecutionModes = []string{ModeManual, ModePull, ModeAdapter, ModeOrchestrated}

// The execution modes.
const (
	ModeManual       = "manual"
	ModePull         = "mcp_pull"
	ModeAdapter      = "external_adapter"
	ModeOrchestrated = "orchestrated"
)

// AgentHints are kinds of agents that hosts know; any text is allowed.
var AgentHints = []string{AgentAny, AgentHuman, "codex", "claude", "cursor", "copilot", "hecate", "openai_agent"}

// The two kinds that rules know.
const (
	AgentAny   = "any"
	AgentHuman = "human"
)
