package ledger

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
)

// Skill is metadata of a host's instructions. It is never a permission, and its body is
// never stored.
type Skill struct {
	ID                  string      `json:"id"`
	ProjectID           string      `json:"project_id"`
	Title               string      `json:"title"`
	Description         string      `json:"description,omitempty"`
	Path                string      `json:"path"`
	RootID              string      `json:"root_id,omitempty"`
	Format              string      `json:"format"`
	SuggestedTools      []string    `json:"suggested_tools,omitempty"`
	RequiredPermissions Permissions `json:"required_permissions,omitzero"`
	Enabled             bool        `json:"enabled"`
	Status              string      `json:"status"`
	TrustLabel          string      `json:"trust_label"`
	SourceRefs          []string    `json:"source_refs,omitempty"`
	Warnings            []string    `json:"warnings,omitempty"`
	DiscoveredAt        time.Time   `json:"discovered_at,omitzero"`
	CreatedAt           time.Time   `json:"created_at,omitzero"`
	UpdatedAt           time.Time   `json:"updated_at,omitzero"`
}

// Permissions are wishes of a skill, each yes, no or unsaid.
type Permissions struct {
	Tools   *bool `json:"tools,omitempty"`
	Writes  *bool `json:"writes,omitempty"`
	Network *bool `json:"network,omitempty"`
}

// The statuses of a skill.
const (
	SkillAvailable = "available"
	SkillMissing   = "missing"
	SkillInvalid   = "invalid"
	SkillConflict  = "conflict"
)

const (
	// SkillFormat is the only format.
	SkillFormat = "skill_md"
	// MaxSuggestedTools bounds the tools that a skill may suggest.
	MaxSuggestedTools = 16
)

var skillStatuses = []string{SkillAvailable, SkillMissing, SkillInvalid, SkillConflict}

// NormalSkill is the one spelling of a skill id: lower case a-z 0-9 _ and single hyphens.
// Text that holds nothing of it gives "".
func NormalSkill(id string) string {
	var b strings.Builder
	gap := false
	for _, c := range strings.ToLower(Trim(id)) {
		switch {
		case c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_':
			if gap && b.Len() > 0 {
				b.WriteByte('-')
			}
			gap = false
			b.WriteRune(c)
		case c == '-' || c == ' ' || c == '.':
			gap = true
		}
	}
	return b.String()
}

// NormalSkills normalises ids, drops unusable ones and sorts.
func NormalSkills(ids []string) []string {
	var out []string
	for _, id := range ids {
		if n := NormalSkill(id); n != "" && !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out
}

// Unnamable stands for the skill ids that normalise to nothing. No worker can name such a
// skill, and no skill has such an id.
const Unnamable = "!"

// AskedSkills is [NormalSkills] with [Unnamable] for those that are unusable: who asks for
// one does not ask for nothing.
func AskedSkills(ids []string) []string {
	out := NormalSkills(ids)
	if slices.ContainsFunc(ids, func(id string) bool { return Trim(id) != "" && NormalSkill(id) == "" }) {
		return append([]string{Unnamable}, out...)
	}
	return out
}

// SkillID normalises the id of a skill and refuses an unusable one.
func SkillID(given string) (string, error) {
	if err := Required("id", given); err != nil {
		return "", err
	}
	id := NormalSkill(given)
	if id == "" {
		return "", invalid("id %q holds nothing of a-z, 0-9 and _", Clip(given))
	}
	return id, nil
}

// maxNamed bounds what a warning of a skill names.
const maxNamed = 4 << 10

// CleanSkill makes a skill canonical.
func CleanSkill(s Skill) (Skill, error) {
	var err error
	if s.ID, err = SkillID(s.ID); err != nil {
		return s, err
	}
	s.Title, s.Description, s.RootID = or(Trim(s.Title), s.ID), Trim(s.Description), Trim(s.RootID)
	if s.Path = Trim(s.Path); s.Path != "" {
		s.Path = path.Clean(strings.ReplaceAll(s.Path, `\`, "/"))
	}
	s.Format, s.Status = or(Trim(s.Format), SkillFormat), or(Trim(s.Status), SkillAvailable)
	s.TrustLabel = or(Trim(s.TrustLabel), "workspace_skill")
	s.SourceRefs, s.Warnings = List(s.SourceRefs), List(s.Warnings)
	if err := oneOf("format", s.Format, []string{SkillFormat}); err != nil {
		return s, err
	}
	if err := oneOf("status", s.Status, skillStatuses); err != nil {
		return s, err
	}
	s.SuggestedTools = List(s.SuggestedTools)
	slices.Sort(s.SuggestedTools)
	if len(s.SuggestedTools) > MaxSuggestedTools {
		s.Warnings = List(append(s.Warnings, fmt.Sprintf("suggested_tools is cut to %d, left out: %s", MaxSuggestedTools,
			clipAt(strings.Join(s.SuggestedTools[MaxSuggestedTools:], ", "), maxNamed))))
		s.SuggestedTools = s.SuggestedTools[:MaxSuggestedTools]
	}
	for name, l := range map[string][]string{"suggested_tools": s.SuggestedTools, "source_refs": s.SourceRefs, "warnings": s.Warnings} {
		if err := checkList(name, l); err != nil {
			return s, err
		}
	}
	return s, check(ref("id", s.ID), short("title", s.Title), body("description", s.Description), short("path", s.Path), ref("root_id", s.RootID), short("trust_label", s.TrustLabel))
}

// SkillPatch is an edit; a nil field keeps.
type SkillPatch struct {
	Title               *string      `json:"title"`
	Description         *string      `json:"description"`
	Path                *string      `json:"path"`
	RootID              *string      `json:"root_id"`
	Format              *string      `json:"format"`
	SuggestedTools      *[]string    `json:"suggested_tools"`
	RequiredPermissions *Permissions `json:"required_permissions"`
	Enabled             *bool        `json:"enabled"`
	Status              *string      `json:"status"`
	TrustLabel          *string      `json:"trust_label"`
	SourceRefs          *[]string    `json:"source_refs"`
	Warnings            *[]string    `json:"warnings"`
}

// Apply lays the patch over a skill.
func (p SkillPatch) Apply(s Skill) Skill {
	set(&s.Title, p.Title)
	set(&s.Description, p.Description)
	set(&s.Path, p.Path)
	set(&s.RootID, p.RootID)
	set(&s.Format, p.Format)
	set(&s.Status, p.Status)
	set(&s.TrustLabel, p.TrustLabel)
	setList(&s.SuggestedTools, p.SuggestedTools)
	setList(&s.SourceRefs, p.SourceRefs)
	setList(&s.Warnings, p.Warnings)
	if p.RequiredPermissions != nil {
		s.RequiredPermissions = *p.RequiredPermissions
	}
	if p.Enabled != nil {
		s.Enabled = *p.Enabled
	}
	return s
}

// Compatible reports whether a worker fits a demand: see assignments.next. Skills are
// compared only when the worker states its own.
func Compatible(workerKind string, workerSkills *[]string, modes []string, mode, kind string, skills []string) bool {
	if !slices.Contains(modes, mode) {
		return false
	}
	w := strings.ToLower(workerKind)
	if w != "" && w != AgentAny && kind != "" && kind != AgentAny && w != kind {
		return false
	}
	if workerSkills == nil {
		return true
	}
	have := NormalSkills(*workerSkills)
	for _, s := range skills {
		if _, ok := slices.BinarySearch(have, s); !ok {
			return false
		}
	}
	return true
}

// SkillBases are the folders below a root where skills are looked for, in order.
var SkillBases = []string{".agents/skills", ".cairnline/skills", ".claude/skills", ".gemini/skills", ".hecate/skills"}

// Usable reports whether a skill is enabled and available.
func (s Skill) Usable() bool { return s.Enabled && s.Status == SkillAvailable }
