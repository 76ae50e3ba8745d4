package ledgertools

import (
	"fmt"
	"slices"
	"time"

	"github.com/agent-knock-knock/akk/internal/ledger"
)

const capabilitiesTool = "coordination.capabilities"

type leaseFacts struct {
	TTLSeconds            int64    `json:"ttl_seconds"`
	FencingID             bool     `json:"fencing_id"`
	RenewalTool           string   `json:"renewal_tool"`
	RecoveryTool          string   `json:"recovery_tool"`
	RecoverableStatuses   []string `json:"recoverable_statuses"`
	RuntimeExpiryBehavior string   `json:"runtime_expiry_behavior"`
}

type capabilities struct {
	ServerName             string     `json:"server_name"`
	ServerVersion          string     `json:"server_version"`
	Product                string     `json:"product"`
	CoreRule               string     `json:"core_rule"`
	ExecutionModes         []string   `json:"execution_modes"`
	AssignmentStatuses     []string   `json:"assignment_statuses"`
	AssignmentClaimLeases  leaseFacts `json:"assignment_claim_leases"`
	DesiredAgentKindHints  []string   `json:"desired_agent_kind_hints"`
	SkillMetadataPaths     []string   `json:"skill_metadata_paths"`
	AgentHostOwns          []string   `json:"agent_host_owns"`
	RecommendedMCPPullFlow []string   `json:"recommended_mcp_pull_flow"`
}

func (t *Tools) capabilities() Outcome {
	ttl := int64(t.service.Lease() / time.Second)
	c := capabilities{
		ServerName: t.name, ServerVersion: t.version, Product: "Agent Knock Knock coordination ledger",
		CoreRule:       "An assignment is coordination. Whether it is executed depends on what the host can and may do.",
		ExecutionModes: ledger.ExecutionModes, AssignmentStatuses: ledger.Statuses,
		AssignmentClaimLeases: leaseFacts{TTLSeconds: ttl, FencingID: true, RenewalTool: "assignments.renew_claim", RecoveryTool: "assignments.recover_claim",
			RecoverableStatuses: []string{ledger.Claimed}, RuntimeExpiryBehavior: "never_requeued"},
		DesiredAgentKindHints: ledger.AgentHints, SkillMetadataPaths: ledger.SkillBases,
		AgentHostOwns: []string{"selection of models, providers and workers", "launch, supervision and cancellation of work", "tool, file, network and approval policy",
			"credentials, sessions and private memory", "workspaces, branches and worktrees"},
		RecommendedMCPPullFlow: []string{"assignments.next", "assignments.claim", "assignments.renew_claim", "assignments.context",
			"assignments.launch_packet", "evidence.record", "assignments.complete"},
	}
	off := func(tool string) bool { return !t.offer.Has(tool) } // nothing is recommended that would be refused
	c.RecommendedMCPPullFlow = slices.DeleteFunc(c.RecommendedMCPPullFlow, off)
	return Outcome{Text: fmt.Sprintf("%s %s. %s Claims last %d seconds.", c.ServerName, c.ServerVersion, c.CoreRule, ttl), Value: c}
}
