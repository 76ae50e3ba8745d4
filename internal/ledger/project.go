package ledger

import (
	"path"
	"time"
)

// Project is the durable identity of a body of work. It is complete without roots.
type Project struct {
	ID             string    `json:"id"`
	Name           string    `json:"name"`
	Description    string    `json:"description,omitempty"`
	Roots          []Root    `json:"roots,omitempty"`
	DefaultRootID  string    `json:"default_root_id,omitempty"`
	ContextSources []Source  `json:"context_sources,omitempty"`
	CreatedAt      time.Time `json:"created_at,omitzero"`
	UpdatedAt      time.Time `json:"updated_at,omitzero"`
}

// Root is metadata of a workspace; its path is never touched but by skill discovery.
type Root struct {
	ID        string `json:"id"`
	Path      string `json:"path"`
	Kind      string `json:"kind,omitempty"`
	GitRemote string `json:"git_remote,omitempty"`
	GitBranch string `json:"git_branch,omitempty"`
	Active    bool   `json:"active"`
}

// Source names where context can be found. Nothing fetches it.
type Source struct {
	ID             string            `json:"id"`
	Kind           string            `json:"kind,omitempty"`
	Title          string            `json:"title,omitempty"`
	Locator        string            `json:"locator,omitempty"`
	Enabled        bool              `json:"enabled"`
	Format         string            `json:"format,omitempty"`
	Scope          string            `json:"scope,omitempty"`
	TrustLabel     string            `json:"trust_label,omitempty"`
	SourceCategory string            `json:"source_category,omitempty"`
	Metadata       map[string]string `json:"metadata,omitempty"`
	CreatedAt      time.Time         `json:"created_at,omitzero"`
	UpdatedAt      time.Time         `json:"updated_at,omitzero"`
}

// RootInput is a root as a caller gives it; a nil field keeps or defaults.
type RootInput struct {
	ID        string  `json:"id,omitempty"`
	Path      *string `json:"path,omitempty"`
	Kind      *string `json:"kind,omitempty"`
	GitRemote *string `json:"git_remote,omitempty"`
	GitBranch *string `json:"git_branch,omitempty"`
	Active    *bool   `json:"active,omitempty"`
}

// Apply lays the input over a root.
func (in RootInput) Apply(r Root) Root {
	set(&r.Path, in.Path)
	set(&r.Kind, in.Kind)
	set(&r.GitRemote, in.GitRemote)
	set(&r.GitBranch, in.GitBranch)
	if in.Active != nil {
		r.Active = *in.Active
	}
	return r
}

func set(to *string, from *string) {
	if from != nil {
		*to = Trim(*from)
	}
}

// SourceInput is a context source as a caller gives it.
type SourceInput struct {
	ID             string             `json:"id,omitempty"`
	Kind           *string            `json:"kind,omitempty"`
	Title          *string            `json:"title,omitempty"`
	Locator        *string            `json:"locator,omitempty"`
	Enabled        *bool              `json:"enabled,omitempty"`
	Format         *string            `json:"format,omitempty"`
	Scope          *string            `json:"scope,omitempty"`
	TrustLabel     *string            `json:"trust_label,omitempty"`
	SourceCategory *string            `json:"source_category,omitempty"`
	Metadata       *map[string]string `json:"metadata,omitempty"`
}

// Apply lays the input over a source.
func (in SourceInput) Apply(s Source) Source {
	set(&s.Kind, in.Kind)
	set(&s.Title, in.Title)
	set(&s.Locator, in.Locator)
	set(&s.Format, in.Format)
	set(&s.Scope, in.Scope)
	set(&s.TrustLabel, in.TrustLabel)
	set(&s.SourceCategory, in.SourceCategory)
	if in.Enabled != nil {
		s.Enabled = *in.Enabled
	}
	if in.Metadata != nil {
		s.Metadata = *in.Metadata
	}
	return s
}

// CleanRoot makes a root canonical and refuses one without a path.
func CleanRoot(r Root) (Root, error) {
	r.ID, r.Path, r.Kind = Trim(r.ID), Trim(r.Path), Trim(r.Kind)
	r.GitRemote, r.GitBranch = Trim(r.GitRemote), Trim(r.GitBranch)
	if r.Path == "" {
		return r, invalid("path is required")
	}
	r.Path = path.Clean(r.Path)
	if r.ID == "" {
		r.ID = NewID(KindRoot)
	}
	return r, check(ref("root id", r.ID), short("path", r.Path), short("kind", r.Kind), short("git_remote", r.GitRemote), short("git_branch", r.GitBranch))
}

// CleanRoots makes the roots of a whole replacement canonical: those without a path are
// dropped, an id may appear once.
func CleanRoots(in []Root) ([]Root, error) {
	if len(in) > MaxItems {
		return nil, invalid("roots has more than %d entries", MaxItems)
	}
	var out []Root
	seen := map[string]bool{}
	for _, r := range in {
		if Trim(r.Path) == "" {
			continue
		}
		r, err := CleanRoot(r)
		if err != nil {
			return nil, err
		}
		if err := CheckNewID("root", r.ID); err != nil {
			return nil, err
		}
		if seen[r.ID] {
			return nil, Exists("root", r.ID)
		}
		seen[r.ID] = true
		out = append(out, r)
	}
	return out, nil
}

// CleanSource makes a source canonical.
func CleanSource(s Source) (Source, error) {
	s.ID, s.Kind, s.Title, s.Locator = Trim(s.ID), Trim(s.Kind), Trim(s.Title), Trim(s.Locator)
	s.Format, s.Scope, s.TrustLabel, s.SourceCategory = Trim(s.Format), Trim(s.Scope), Trim(s.TrustLabel), Trim(s.SourceCategory)
	if s.ID == "" {
		s.ID = NewID(KindSource)
	}
	if len(s.Metadata) > MaxItems {
		return s, invalid("metadata has more than %d entries", MaxItems)
	}
	var meta map[string]string
	for k, v := range s.Metadata {
		if k, v = Trim(k), Trim(v); k != "" {
			if err := check(short("metadata", k), short("metadata", v)); err != nil {
				return s, err
			}
			if meta == nil {
				meta = map[string]string{}
			}
			meta[k] = v
		}
	}
	s.Metadata = meta
	return s, check(ref("source id", s.ID), short("kind", s.Kind), short("title", s.Title), short("locator", s.Locator),
		short("format", s.Format), short("scope", s.Scope), short("trust_label", s.TrustLabel), short("source_category", s.SourceCategory))
}

// CleanSources makes the sources of a whole replacement canonical. One that says nothing
// is dropped; one whose id was there keeps its time of creation.
func CleanSources(in, before []Source, now time.Time) ([]Source, error) {
	if len(in) > MaxItems {
		return nil, invalid("context_sources has more than %d entries", MaxItems)
	}
	old := map[string]Source{}
	for _, s := range before {
		old[s.ID] = s
	}
	var out []Source
	seen := map[string]bool{}
	for _, s := range in {
		if Trim(s.ID+s.Kind+s.Title+s.Locator) == "" {
			continue
		}
		s, err := CleanSource(s)
		if err != nil {
			return nil, err
		}
		if seen[s.ID] {
			return nil, Exists("context source", s.ID)
		}
		seen[s.ID] = true
		s.CreatedAt, s.UpdatedAt = now, now
		if o, ok := old[s.ID]; ok {
			s.CreatedAt = o.CreatedAt
		} else if err := CheckNewID("context source", s.ID); err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// CleanProject checks the project's own fields and settles its default root: a named one
// must exist, without a name the first root is it.
func CleanProject(p Project) (Project, error) {
	p.Name, p.Description, p.DefaultRootID = Trim(p.Name), Trim(p.Description), Trim(p.DefaultRootID)
	if err := Required("name", p.Name); err != nil {
		return p, err
	}
	if err := check(short("name", p.Name), body("description", p.Description)); err != nil {
		return p, err
	}
	if p.DefaultRootID == "" {
		if len(p.Roots) > 0 {
			p.DefaultRootID = p.Roots[0].ID
		}
		return p, nil
	}
	if !p.HasRoot(p.DefaultRootID) {
		return p, Missing("root", p.DefaultRootID)
	}
	return p, nil
}

// HasRoot reports whether the project has a root of that id.
func (p Project) HasRoot(id string) bool {
	for _, r := range p.Roots {
		if r.ID == id {
			return true
		}
	}
	return false
}
