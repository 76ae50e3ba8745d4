package ledgersql

import (
	"strings"

	"github.com/agent-knock-knock/akk/internal/ledger"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/store/table"
)

var projects = table.New("ledger_project", []string{"id"},
	[]string{"id", "name", "description", "default_root_id", "created_at", "updated_at"},
	func(p *ledger.Project) []any {
		return []any{&p.ID, &p.Name, &p.Description, &p.DefaultRootID, table.Nanos(&p.CreatedAt), table.Nanos(&p.UpdatedAt)}
	})

type rootRow struct {
	project string
	place   int
	ledger.Root
}

var roots = table.New("ledger_root", []string{"project_id", "id"},
	[]string{"project_id", "id", "place", "path", "kind", "git_remote", "git_branch", "active"},
	func(r *rootRow) []any {
		return []any{&r.project, &r.ID, &r.place, &r.Path, &r.Kind, &r.GitRemote, &r.GitBranch, &r.Active}
	})

type sourceRow struct {
	project string
	place   int
	ledger.Source
}

var sources = table.New("ledger_source", []string{"project_id", "id"},
	[]string{"project_id", "id", "place", "kind", "title", "locator", "enabled", "format", "scope", "trust_label", "source_category", "metadata", "created_at", "updated_at"},
	func(s *sourceRow) []any {
		return []any{&s.project, &s.ID, &s.place, &s.Kind, &s.Title, &s.Locator, &s.Enabled, &s.Format, &s.Scope, &s.TrustLabel, &s.SourceCategory,
			table.Pack(&s.Metadata), table.Nanos(&s.CreatedAt), table.Nanos(&s.UpdatedAt)}
	})

// ProjectExists reports whether there is a project.
func ProjectExists(tx *store.Tx, id string) (bool, error) {
	return exists(tx, "SELECT 1 FROM ledger_project WHERE id = ?", id)
}

func exists(tx *store.Tx, query string, args ...any) (bool, error) {
	var one int
	err := tx.QueryRow(query, args...).Scan(&one)
	if store.NotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// Project reads a project with its roots and sources.
func Project(tx *store.Tx, id string) (ledger.Project, bool, error) {
	p, ok, err := projects.Get(tx, id)
	if err != nil || !ok {
		return p, ok, err
	}
	return p, true, fill(tx, &p)
}

func fill(tx *store.Tx, p *ledger.Project) error {
	rs, err := roots.List(tx, "WHERE project_id = ? ORDER BY place, id", p.ID)
	if err != nil {
		return err
	}
	for _, r := range rs {
		p.Roots = append(p.Roots, r.Root)
	}
	ss, err := sources.List(tx, "WHERE project_id = ? ORDER BY place, id", p.ID)
	if err != nil {
		return err
	}
	for _, s := range ss {
		p.ContextSources = append(p.ContextSources, s.Source)
	}
	return nil
}

// Projects lists projects, the most recently changed first.
func Projects(tx *store.Tx, page Page) ([]ledger.Project, error) {
	ps, err := projects.List(tx, "ORDER BY updated_at DESC, id"+page.sql())
	if err != nil {
		return nil, err
	}
	for i := range ps {
		if err := fill(tx, &ps[i]); err != nil {
			return nil, err
		}
	}
	return ps, nil
}

// InsertProject adds a project.
func InsertProject(tx *store.Tx, p ledger.Project) error {
	if err := projects.Insert(tx, p); err != nil {
		return err
	}
	return replaceParts(tx, p)
}

// PutProject inserts or replaces a project with its roots and sources.
func PutProject(tx *store.Tx, p ledger.Project) error {
	if err := projects.Put(tx, p); err != nil {
		return err
	}
	return replaceParts(tx, p)
}

func replaceParts(tx *store.Tx, p ledger.Project) error {
	for _, t := range []string{"ledger_root", "ledger_source"} {
		if _, err := tx.Exec("DELETE FROM "+t+" WHERE project_id = ?", p.ID); err != nil {
			return err
		}
	}
	for i, r := range p.Roots {
		if err := roots.Insert(tx, rootRow{p.ID, i, r}); err != nil {
			return err
		}
	}
	for i, s := range p.ContextSources {
		if err := sources.Insert(tx, sourceRow{p.ID, i, s}); err != nil {
			return err
		}
	}
	return nil
}

// DeleteProject removes a project with everything under it.
func DeleteProject(tx *store.Tx, id string) (bool, error) {
	if _, err := tx.Exec("DELETE FROM ledger_proposal WHERE project_id = ?", id); err != nil {
		return false, err
	}
	// The counters go first: nothing needs to keep them on the way.
	for _, t := range []string{"ledger_project_tally", "ledger_item_tally", "ledger_work_item"} {
		if _, err := tx.Exec("DELETE FROM "+t+" WHERE project_id = ?", id); err != nil {
			return false, err
		}
	}
	return projects.Delete(tx, id)
}

var roles = table.New("ledger_role", []string{"project_id", "id"},
	[]string{"project_id", "id", "name", "description", "instructions", "default_skill_ids", "default_execution_mode"},
	func(r *ledger.Role) []any {
		return []any{&r.ProjectID, &r.ID, &r.Name, &r.Description, &r.Instructions, table.Pack(&r.DefaultSkillIDs), &r.DefaultExecutionMode}
	})

// Role reads a role.
func Role(tx *store.Tx, project, id string) (ledger.Role, bool, error) {
	return roles.Get(tx, project, id)
}

// Roles lists roles by name.
func Roles(tx *store.Tx, project string, page Page) ([]ledger.Role, error) {
	return roles.List(tx, "WHERE project_id = ? ORDER BY name, id"+page.sql(), project)
}

// PutRole inserts or replaces a role.
func PutRole(tx *store.Tx, r ledger.Role) error { return roles.Put(tx, r) }

// DeleteRole removes a role. References to it stay.
func DeleteRole(tx *store.Tx, project, id string) (bool, error) { return roles.Delete(tx, project, id) }

// CountRoles counts the roles of a project.
func CountRoles(tx *store.Tx, project string) (n int, err error) {
	return n, tx.QueryRow("SELECT count(*) FROM ledger_role WHERE project_id = ?", project).Scan(&n)
}

var skills = table.New("ledger_skill", []string{"project_id", "id"},
	[]string{"project_id", "id", "title", "description", "path", "root_id", "format", "suggested_tools", "required_permissions", "enabled", "status",
		"trust_label", "source_refs", "warnings", "discovered_at", "created_at", "updated_at"},
	func(s *ledger.Skill) []any {
		return []any{&s.ProjectID, &s.ID, &s.Title, &s.Description, &s.Path, &s.RootID, &s.Format, table.Pack(&s.SuggestedTools), table.Pack(&s.RequiredPermissions),
			&s.Enabled, &s.Status, &s.TrustLabel, table.Pack(&s.SourceRefs), table.Pack(&s.Warnings), table.Nanos(&s.DiscoveredAt), table.Nanos(&s.CreatedAt), table.Nanos(&s.UpdatedAt)}
	})

// Skill reads a skill by its normalised id.
func Skill(tx *store.Tx, project, id string) (ledger.Skill, bool, error) {
	return skills.Get(tx, project, id)
}

// Skills lists skills by id.
func Skills(tx *store.Tx, project string, page Page) ([]ledger.Skill, error) {
	return skills.List(tx, "WHERE project_id = ? ORDER BY id"+page.sql(), project)
}

// PutSkill inserts or replaces a skill.
func PutSkill(tx *store.Tx, s ledger.Skill) error { return skills.Put(tx, s) }

// AskedSkills lists what [ledger.AskedSkills] makes of the assignments' skills.
func AskedSkills(tx *store.Tx, project string) ([]string, error) {
	rows, err := tx.Query("SELECT skills FROM ledger_demand WHERE project_id = ? AND uses > 0 AND skills <> ''", project)
	if err != nil {
		return nil, err
	}
	sets, err := table.Collect(rows, func(s *string) []any { return []any{s} })
	if err != nil {
		return nil, err
	}
	var out []string
	for _, s := range sets {
		out = append(out, strings.Split(s, " ")...)
	}
	return ledger.List(out), nil
}
