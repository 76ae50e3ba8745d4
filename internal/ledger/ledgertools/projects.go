package ledgertools

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/agent-knock-knock/akk/internal/ledger"
	"github.com/agent-knock-knock/akk/internal/ledger/coord"
)

func projectLine(p ledger.Project) string { return p.ID + " " + oneLine(p.Name) }
func rootLine(r ledger.Root) string       { return r.ID + " " + oneLine(r.Path) }
func sourceLine(s ledger.Source) string {
	return fmt.Sprintf("%s %s %s", s.ID, oneLine(s.Kind), oneLine(s.Locator))
}

type projectFields struct {
	Name           *string               `json:"name"`
	Description    *string               `json:"description"`
	DefaultRootID  *string               `json:"default_root_id"`
	Roots          *[]ledger.RootInput   `json:"roots"`
	ContextSources *[]ledger.SourceInput `json:"context_sources"`
}

func (f projectFields) roots() []ledger.Root {
	var out []ledger.Root
	for _, r := range *f.Roots {
		out = append(out, r.Apply(ledger.Root{ID: r.ID, Active: true}))
	}
	return out
}

func (f projectFields) sources() []ledger.Source {
	var out []ledger.Source
	for _, s := range *f.ContextSources {
		out = append(out, s.Apply(ledger.Source{ID: s.ID, Enabled: true}))
	}
	return out
}

func (f projectFields) patch() coord.ProjectPatch {
	p := coord.ProjectPatch{Name: f.Name, Description: f.Description, DefaultRootID: f.DefaultRootID}
	if f.Roots != nil {
		r := f.roots()
		p.Roots = &r
	}
	if f.ContextSources != nil {
		s := f.sources()
		p.ContextSources = &s
	}
	return p
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func addProjects() {
	// The tool has no arguments in the contract. Those of a page are ours: what does not fit
	// them is ignored like everything else.
	handlers["projects.list"] = func(ctx context.Context, s *coord.Service, args json.RawMessage) (Outcome, error) {
		var in paging
		_ = json.Unmarshal(args, &in)
		span, err := in.span()
		if err != nil {
			span = coord.Span{Limit: defaultPage}
		}
		p, err := s.ListProjects(ctx, span)
		return lines(p, err, "No projects.", projectLine)
	}
	tool("projects.get", func(ctx context.Context, s *coord.Service, in struct{ ID string }) (Outcome, error) {
		p, err := s.GetProject(ctx, in.ID)
		return record(p, err, projectLine)
	})
	tool("projects.create", func(ctx context.Context, s *coord.Service, in projectFields) (Outcome, error) {
		p := ledger.Project{Name: text(in.Name), Description: text(in.Description), DefaultRootID: text(in.DefaultRootID)}
		if in.Roots != nil {
			p.Roots = in.roots()
		}
		if in.ContextSources != nil {
			p.ContextSources = in.sources()
		}
		p, err := s.CreateProject(ctx, p)
		return record(p, err, func(p ledger.Project) string { return "Created project " + projectLine(p) })
	})
	tool("projects.update", func(ctx context.Context, s *coord.Service, in struct {
		ID string `json:"id"`
		projectFields
	}) (Outcome, error) {
		if err := ledger.Required("id", in.ID); err != nil {
			return Outcome{}, err
		}
		p, err := s.UpdateProject(ctx, in.ID, in.patch())
		return record(p, err, func(p ledger.Project) string { return "Updated project " + projectLine(p) })
	})
	tool("projects.delete", func(ctx context.Context, s *coord.Service, in struct{ ID string }) (Outcome, error) {
		return removed("project", in.ID, s.DeleteProject(ctx, in.ID))
	})
}

func addRoots() {
	tool("roots.list", func(ctx context.Context, s *coord.Service, in struct {
		inProject
		paging
	}) (Outcome, error) {
		all, err := s.ListRoots(ctx, in.ProjectID)
		return slice(all, err, in.paging, "No roots.", rootLine)
	})
	tool("roots.create", func(ctx context.Context, s *coord.Service, in struct {
		inProject
		ledger.RootInput
	}) (Outcome, error) {
		r, err := s.CreateRoot(ctx, in.ProjectID, in.RootInput)
		return record(r, err, func(r ledger.Root) string { return "Created root " + rootLine(r) })
	})
	tool("roots.update", func(ctx context.Context, s *coord.Service, in struct {
		inProject
		RootID string `json:"root_id"`
		ledger.RootInput
	}) (Outcome, error) {
		r, err := s.UpdateRoot(ctx, in.ProjectID, in.RootID, in.RootInput)
		return record(r, err, func(r ledger.Root) string { return "Updated root " + rootLine(r) })
	})
	tool("roots.delete", func(ctx context.Context, s *coord.Service, in struct {
		inProject
		RootID string `json:"root_id"`
	}) (Outcome, error) {
		r, err := s.DeleteRoot(ctx, in.ProjectID, in.RootID)
		return record(r, err, func(r ledger.Root) string { return "Deleted root " + rootLine(r) })
	})

	tool("context_sources.list", func(ctx context.Context, s *coord.Service, in struct {
		inProject
		paging
	}) (Outcome, error) {
		all, err := s.ListContextSources(ctx, in.ProjectID)
		return slice(all, err, in.paging, "No context sources.", sourceLine)
	})
	tool("context_sources.create", func(ctx context.Context, s *coord.Service, in struct {
		inProject
		ledger.SourceInput
	}) (Outcome, error) {
		v, err := s.CreateContextSource(ctx, in.ProjectID, in.SourceInput)
		return record(v, err, func(v ledger.Source) string { return "Created context source " + sourceLine(v) })
	})
	tool("context_sources.update", func(ctx context.Context, s *coord.Service, in struct {
		inProject
		SourceID string `json:"source_id"`
		ledger.SourceInput
	}) (Outcome, error) {
		v, err := s.UpdateContextSource(ctx, in.ProjectID, in.SourceID, in.SourceInput)
		return record(v, err, func(v ledger.Source) string { return "Updated context source " + sourceLine(v) })
	})
	tool("context_sources.delete", func(ctx context.Context, s *coord.Service, in struct {
		inProject
		SourceID string `json:"source_id"`
	}) (Outcome, error) {
		v, err := s.DeleteContextSource(ctx, in.ProjectID, in.SourceID)
		return record(v, err, func(v ledger.Source) string { return "Deleted context source " + sourceLine(v) })
	})
}

// slice pages a list that is read whole, because it is part of its project.
func slice[T any](all []T, err error, p paging, none string, line func(T) string) (Outcome, error) {
	if err != nil {
		return Outcome{}, err
	}
	span, err := p.span()
	if err != nil {
		return Outcome{}, err
	}
	from := min(span.Offset, len(all))
	to := min(from+span.Limit, len(all))
	out := coord.Page[T]{Items: all[from:to]}
	if to < len(all) {
		out.Next = to
	}
	return lines(out, nil, none, line)
}
