package ledger

import (
	"fmt"
	"time"
)

// Context is what an assignment is about. Memory holds enabled entries only.
type Context struct {
	ID         string        `json:"id"`
	Project    Project       `json:"project"`
	WorkItem   WorkItem      `json:"work_item"`
	Role       *Role         `json:"role,omitempty"`
	Assignment Assignment    `json:"assignment"`
	Memory     []MemoryEntry `json:"memory"`
	Warnings   []string      `json:"warnings"`
	CreatedAt  time.Time     `json:"created_at,omitzero"`
}

// Packet is everything a host needs to prepare a run.
type Packet struct {
	ID               string            `json:"id"`
	Kind             string            `json:"kind"`
	Project          Project           `json:"project"`
	WorkItem         WorkItem          `json:"work_item"`
	Role             *Role             `json:"role,omitempty"`
	Assignment       Assignment        `json:"assignment"`
	Skills           []Skill           `json:"skills"`
	Memory           []MemoryEntry     `json:"memory"`
	MemoryCandidates []MemoryCandidate `json:"memory_candidates"`
	Artifacts        []Artifact        `json:"artifacts"`
	Evidence         []Evidence        `json:"evidence"`
	Reviews          []Review          `json:"reviews"`
	Handoffs         []Handoff         `json:"handoffs"`
	Warnings         []string          `json:"warnings"`
	CreatedAt        time.Time         `json:"created_at,omitzero"`
}

// PacketKind is the kind of every packet.
const PacketKind = "assignment_launch_packet"

// ReferenceWarnings tells which references of an assignment lead nowhere.
func ReferenceWarnings(p Project, role *Role, a Assignment, w WorkItem) []string {
	out := []string{}
	if role == nil {
		out = append(out, fmt.Sprintf("The role %q no longer exists.", Clip(a.RoleID)))
	}
	if a.RootID != "" && !p.HasRoot(a.RootID) {
		out = append(out, fmt.Sprintf("The assignment's root %q no longer exists.", Clip(a.RootID)))
	}
	if w.RootID != "" && w.RootID != a.RootID && !p.HasRoot(w.RootID) {
		out = append(out, fmt.Sprintf("The work item's root %q no longer exists.", Clip(w.RootID)))
	}
	return out
}

// ResolveSkills finds the skills of an assignment and of its role. Each one that cannot be
// used is left out and gives a warning.
func ResolveSkills(role *Role, a Assignment, known []Skill) (skills []Skill, warnings []string) {
	byID := map[string]Skill{}
	for _, s := range known {
		byID[s.ID] = s
	}
	asked := append([]string{}, a.DesiredAgent.SkillIDs...)
	if role != nil {
		asked = append(asked, role.DefaultSkillIDs...)
	}
	skills = []Skill{}
	seen := map[string]bool{}
	for _, raw := range List(asked) {
		id := NormalSkill(raw)
		if seen[id] && id != "" {
			continue
		}
		seen[id] = true
		s, ok := byID[id]
		switch {
		case id == "":
			warnings = append(warnings, fmt.Sprintf("The skill id %q cannot be used.", Clip(raw)))
		case !ok:
			warnings = append(warnings, fmt.Sprintf("The skill %q is not known here.", id))
		case !s.Enabled:
			warnings = append(warnings, fmt.Sprintf("The skill %q is disabled.", id))
		case s.Status != SkillAvailable:
			warnings = append(warnings, fmt.Sprintf("The skill %q is %s.", id, s.Status))
		default:
			skills = append(skills, s)
		}
	}
	return skills, warnings
}
