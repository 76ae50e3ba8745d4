package coord

import (
	"context"
	"time"

	"github.com/agent-knock-knock/akk/internal/ledger"
	"github.com/agent-knock-knock/akk/internal/ledger/ledgersql"
	"github.com/agent-knock-knock/akk/internal/store"
)

// ListProjects lists projects, the most recently changed first.
func (s *Service) ListProjects(ctx context.Context, span Span) (out Page[ledger.Project], err error) {
	err = s.view(ctx, func(tx *store.Tx) error {
		out, err = page(span, func(p ledgersql.Page) ([]ledger.Project, error) { return ledgersql.Projects(tx, p) })
		return err
	})
	return out, err
}

// GetProject reads a project.
func (s *Service) GetProject(ctx context.Context, id string) (p ledger.Project, err error) {
	if err := requireIDs("id", &id); err != nil {
		return p, err
	}
	err = s.view(ctx, func(tx *store.Tx) error { p, err = project(tx, id); return err })
	return p, err
}

// CreateProject adds a project. An id is minted unless p has one.
func (s *Service) CreateProject(ctx context.Context, p ledger.Project) (ledger.Project, error) {
	err := s.change(ctx, func(tx *store.Tx, now time.Time) (err error) { p, err = createProject(tx, now, p); return err })
	return p, err
}

func createProject(tx *store.Tx, now time.Time, p ledger.Project) (ledger.Project, error) {
	var err error
	if p.Roots, err = ledger.CleanRoots(p.Roots); err != nil {
		return p, err
	}
	if p.ContextSources, err = ledger.CleanSources(p.ContextSources, nil, now); err != nil {
		return p, err
	}
	if p, err = ledger.CleanProject(p); err != nil {
		return p, err
	}
	if err := free(ledger.KindProject, "project", &p.ID, func(id string) (bool, error) { return ledgersql.ProjectExists(tx, id) }); err != nil {
		return p, err
	}
	p.CreatedAt, p.UpdatedAt = now, now
	return p, ledgersql.InsertProject(tx, p)
}

// ProjectPatch is an edit; a nil field keeps.
type ProjectPatch struct {
	Name, Description, DefaultRootID *string
	Roots                            *[]ledger.Root
	ContextSources                   *[]ledger.Source
}

// UpdateProject edits a project.
func (s *Service) UpdateProject(ctx context.Context, id string, patch ProjectPatch) (ledger.Project, error) {
	return s.editProject(ctx, id, func(p *ledger.Project, now time.Time) error {
		given := patch.DefaultRootID != nil
		set(&p.Name, patch.Name)
		set(&p.Description, patch.Description)
		set(&p.DefaultRootID, patch.DefaultRootID)
		var err error
		if patch.Roots != nil {
			if p.Roots, err = ledger.CleanRoots(*patch.Roots); err != nil {
				return err
			}
			if !given && !p.HasRoot(p.DefaultRootID) {
				p.DefaultRootID = ""
			}
		}
		if patch.ContextSources != nil {
			if p.ContextSources, err = ledger.CleanSources(*patch.ContextSources, p.ContextSources, now); err != nil {
				return err
			}
		}
		return nil
	})
}

func set(to *string, from *string) {
	if from != nil {
		*to = *from
	}
}

// editProject reads, changes and writes a project in one transaction.
func (s *Service) editProject(ctx context.Context, id string, edit func(p *ledger.Project, now time.Time) error) (p ledger.Project, err error) {
	if err := requireIDs("project_id", &id); err != nil {
		return p, err
	}
	err = s.change(ctx, func(tx *store.Tx, now time.Time) error { p, err = changeProject(tx, now, id, edit); return err })
	return p, err
}

func changeProject(tx *store.Tx, now time.Time, id string, edit func(p *ledger.Project, now time.Time) error) (ledger.Project, error) {
	p, err := project(tx, id)
	if err != nil {
		return p, err
	}
	if err := edit(&p, now); err != nil {
		return p, err
	}
	if p, err = ledger.CleanProject(p); err != nil {
		return p, err
	}
	p.UpdatedAt = ledger.Next(p.UpdatedAt, now)
	return p, ledgersql.PutProject(tx, p)
}

// DeleteProject removes a project with everything under it.
func (s *Service) DeleteProject(ctx context.Context, id string) error {
	if err := requireIDs("id", &id); err != nil {
		return err
	}
	return s.change(ctx, func(tx *store.Tx, _ time.Time) error {
		return gone(ledgersql.DeleteProject(tx, id))("project", id)
	})
}

// gone turns "there was none" into a refusal.
func gone(ok bool, err error) func(kind, id string) error {
	return func(kind, id string) error {
		if err == nil && !ok {
			return ledger.Missing(kind, id)
		}
		return err
	}
}

// ListRoots lists the roots of a project.
func (s *Service) ListRoots(ctx context.Context, projectID string) ([]ledger.Root, error) {
	if err := requireIDs("project_id", &projectID); err != nil {
		return nil, err
	}
	p, err := s.GetProject(ctx, projectID)
	return p.Roots, err
}

// CreateRoot adds a root; it is active unless the input says otherwise.
func (s *Service) CreateRoot(ctx context.Context, projectID string, in ledger.RootInput) (r ledger.Root, err error) {
	_, err = s.editProject(ctx, projectID, func(p *ledger.Project, _ time.Time) error {
		r, err = attachRoot(p, in.Apply(ledger.Root{ID: in.ID, Active: true}))
		return err
	})
	return r, err
}

func attachRoot(p *ledger.Project, r ledger.Root) (ledger.Root, error) {
	r, err := ledger.CleanRoot(r)
	if err != nil {
		return r, err
	}
	if err := ledger.CheckNewID("root", r.ID); err != nil {
		return r, err
	}
	if p.HasRoot(r.ID) {
		return r, ledger.Exists("root", r.ID)
	}
	p.Roots = append(p.Roots, r)
	return r, nil
}

// UpdateRoot edits a root.
func (s *Service) UpdateRoot(ctx context.Context, projectID, rootID string, in ledger.RootInput) (r ledger.Root, err error) {
	if err := requireIDs("project_id", &projectID, "root_id", &rootID); err != nil {
		return r, err
	}
	_, err = s.editProject(ctx, projectID, func(p *ledger.Project, _ time.Time) error {
		for i := range p.Roots {
			if p.Roots[i].ID == rootID {
				r, err = ledger.CleanRoot(in.Apply(p.Roots[i]))
				p.Roots[i] = r
				return err
			}
		}
		return ledger.Missing("root", rootID)
	})
	return r, err
}

// DeleteRoot removes a root and returns it. When it was the default, the first one that
// remains is.
func (s *Service) DeleteRoot(ctx context.Context, projectID, rootID string) (r ledger.Root, err error) {
	if err := requireIDs("project_id", &projectID, "root_id", &rootID); err != nil {
		return r, err
	}
	_, err = s.editProject(ctx, projectID, func(p *ledger.Project, _ time.Time) error {
		r, err = detachRoot(p, rootID)
		return err
	})
	return r, err
}

func detachRoot(p *ledger.Project, rootID string) (ledger.Root, error) {
	for i, r := range p.Roots {
		if r.ID == rootID {
			p.Roots = append(p.Roots[:i:i], p.Roots[i+1:]...)
			if p.DefaultRootID == rootID {
				p.DefaultRootID = ""
			}
			return r, nil
		}
	}
	return ledger.Root{}, ledger.Missing("root", rootID)
}

// ListContextSources lists the sources of a project.
func (s *Service) ListContextSources(ctx context.Context, projectID string) ([]ledger.Source, error) {
	if err := requireIDs("project_id", &projectID); err != nil {
		return nil, err
	}
	p, err := s.GetProject(ctx, projectID)
	return p.ContextSources, err
}

// CreateContextSource adds a source; it is enabled unless the input says otherwise.
func (s *Service) CreateContextSource(ctx context.Context, projectID string, in ledger.SourceInput) (src ledger.Source, err error) {
	_, err = s.editProject(ctx, projectID, func(p *ledger.Project, now time.Time) error {
		src = in.Apply(ledger.Source{ID: in.ID, Enabled: true})
		if ledger.Trim(src.Kind) == "" {
			src.Kind = "doc"
		}
		if src, err = source(src); err != nil {
			return err
		}
		if err := ledger.CheckNewID("context source", src.ID); err != nil {
			return err
		}
		for _, o := range p.ContextSources {
			if o.ID == src.ID {
				return ledger.Exists("context source", src.ID)
			}
		}
		src.CreatedAt, src.UpdatedAt = now, now
		p.ContextSources = append(p.ContextSources, src)
		return nil
	})
	return src, err
}

func source(in ledger.Source) (ledger.Source, error) {
	if err := ledger.Required("locator", in.Locator); err != nil {
		return in, err
	}
	return ledger.CleanSource(in)
}

// UpdateContextSource edits a source.
func (s *Service) UpdateContextSource(ctx context.Context, projectID, sourceID string, in ledger.SourceInput) (src ledger.Source, err error) {
	if err := requireIDs("project_id", &projectID, "source_id", &sourceID); err != nil {
		return src, err
	}
	_, err = s.editProject(ctx, projectID, func(p *ledger.Project, now time.Time) error {
		for i, o := range p.ContextSources {
			if o.ID == sourceID {
				if src, err = source(in.Apply(o)); err != nil {
					return err
				}
				src.UpdatedAt = ledger.Next(o.UpdatedAt, now)
				p.ContextSources[i] = src
				return nil
			}
		}
		return ledger.Missing("context source", sourceID)
	})
	return src, err
}

// DeleteContextSource removes a source and returns it.
func (s *Service) DeleteContextSource(ctx context.Context, projectID, sourceID string) (src ledger.Source, err error) {
	if err := requireIDs("project_id", &projectID, "source_id", &sourceID); err != nil {
		return src, err
	}
	_, err = s.editProject(ctx, projectID, func(p *ledger.Project, _ time.Time) error {
		for i, o := range p.ContextSources {
			if o.ID == sourceID {
				src = o
				p.ContextSources = append(p.ContextSources[:i:i], p.ContextSources[i+1:]...)
				return nil
			}
		}
		return ledger.Missing("context source", sourceID)
	})
	return src, err
}
