package ledger

import (
	"fmt"
	"strings"
	"time"
)

// FoundSkill is a SKILL.md as discovery saw it: metadata, never the body.
type FoundSkill struct {
	ID, Title, Description string
	Path, RootID           string
	SourceRefs             []string
	SuggestedTools         []string
	RequiredPermissions    Permissions
}

// MaxSkillFile is how much of a file is read.
const MaxSkillFile = 64 << 10

// ReadSkill reads the front matter of a SKILL.md. folder is the name of its directory.
func ReadSkill(folder, text string) FoundSkill {
	folder, text = unicodeOnly(folder), unicodeOnly(text)
	s := FoundSkill{ID: NormalSkill(folder)}
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	body := lines
	var name, title string
	if len(lines) > 0 && strings.TrimRight(lines[0], " \t") == "---" {
		for i := 1; i < len(lines); i++ {
			if strings.TrimRight(lines[i], " \t") == "---" {
				name, title = s.frontMatter(lines[1:i])
				body = lines[i+1:]
				break
			}
		}
	}
	s.Title = or(name, title)
	if s.Title == "" {
		for _, l := range body {
			if h, ok := strings.CutPrefix(l, "# "); ok {
				s.Title = Trim(h)
				break
			}
		}
	}
	s.Title = clipTo(or(s.Title, folder), MaxID)
	s.Description = clipTo(s.Description, 16*MaxID)
	return s
}

func clipTo(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "")
}

// unicodeOnly is text of the disk as it can be stored.
func unicodeOnly(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// frontMatter reads the few keys that are known; it is no YAML reader.
func (s *FoundSkill) frontMatter(lines []string) (name, title string) {
	block, key := "", ""
	for _, raw := range lines {
		line := Trim(raw)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		indented := raw[0] == ' ' || raw[0] == '\t'
		if item, ok := strings.CutPrefix(line, "- "); ok {
			if indented && block != "" && key == "suggested_tools" {
				s.SuggestedTools = append(s.SuggestedTools, unquote(item))
			}
			continue
		}
		k, v, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		k, v = Trim(k), unquote(Trim(v))
		if !indented {
			block, key = "", ""
			switch k {
			case "name":
				name = v
			case "title":
				title = v
			case "description":
				s.Description = v
			case "cairnline", "hecate":
				block = k
			}
			continue
		}
		if block == "" {
			continue
		}
		switch {
		case k == "suggested_tools" || k == "required_permissions":
			key = k
			if k == "suggested_tools" && v != "" {
				s.SuggestedTools = append(s.SuggestedTools, inlineList(v)...)
			}
		case key == "required_permissions":
			s.permission(k, v)
		}
	}
	s.SuggestedTools = List(s.SuggestedTools)
	return name, title
}

func (s *FoundSkill) permission(name, value string) {
	var b bool
	switch strings.ToLower(value) {
	case "true", "yes", "on", "1":
		b = true
	case "false", "no", "off", "0":
	default:
		return
	}
	switch name {
	case "tools":
		s.RequiredPermissions.Tools = &b
	case "writes":
		s.RequiredPermissions.Writes = &b
	case "network":
		s.RequiredPermissions.Network = &b
	}
}

func inlineList(v string) []string {
	v = strings.TrimSuffix(strings.TrimPrefix(v, "["), "]")
	var out []string
	for part := range strings.SplitSeq(v, ",") {
		out = append(out, unquote(Trim(part)))
	}
	return out
}

func unquote(s string) string {
	s = Trim(s)
	if len(s) >= 2 && (s[0] == '"' || s[0] == '\'') && s[len(s)-1] == s[0] {
		return s[1 : len(s)-1]
	}
	return s
}

// MergeSkills lays what was found over what is known, in the order of finding. The first
// of two with one id wins and is a conflict. A known one keeps what operators edit; one
// that was not found is missing. It returns what is to be written.
func MergeSkills(projectID string, before []Skill, seen []FoundSkill, now time.Time) []Skill {
	known := map[string]Skill{}
	for _, s := range before {
		known[s.ID] = s
	}
	at := map[string]int{}
	var out []Skill
	for _, f := range seen {
		f.Path = unicodeOnly(f.Path)
		if i, again := at[f.ID]; again {
			out[i].Status = SkillConflict
			out[i].Warnings = List(append(out[i].Warnings, fmt.Sprintf("Found twice: %s is used, %s is not.", clipAt(out[i].Path, maxNamed), clipAt(f.Path, maxNamed))))
			continue
		}
		s, ok := known[f.ID]
		if !ok {
			s = Skill{ID: f.ID, ProjectID: projectID, Title: f.Title, Description: f.Description, Enabled: true, CreatedAt: now}
		}
		s.Path, s.RootID, s.Format, s.Status = f.Path, f.RootID, SkillFormat, SkillAvailable
		s.SuggestedTools, s.RequiredPermissions, s.SourceRefs, s.Warnings = f.SuggestedTools, f.RequiredPermissions, f.SourceRefs, nil
		s.DiscoveredAt, s.UpdatedAt = now, Next(s.UpdatedAt, now)
		at[f.ID] = len(out)
		out = append(out, s)
	}
	for _, s := range before {
		if _, found := at[s.ID]; found || s.Path == "" && s.DiscoveredAt.IsZero() {
			continue // written by hand and never on the disk
		}
		s.Status, s.UpdatedAt = SkillMissing, Next(s.UpdatedAt, now)
		s.Warnings = List(append(s.Warnings, "Not found at the last discovery."))
		out = append(out, s)
	}
	return out
}
