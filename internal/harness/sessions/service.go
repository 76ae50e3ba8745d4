// Package sessions is the use cases of headless agents: create, send, cancel, answer, log
// in, change, close, reopen, and the truth about them after a crash.
//
// One Service owns its database and its agents. A fact is stored in one transaction, with
// its event, before anybody hears of it; what an agent is told follows the commit. A prompt
// is written once and never again: after any possible write the message ends by the agent's
// answer, or as failed or cancelled.
//
// It starts agents through a Launcher and speaks to them through an Agent, both its own
// interfaces. It must never know HTTP, MCP or a command line.
package sessions

import (
	"context"
	"log/slog"

	"github.com/agent-knock-knock/akk/internal/clock"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/harness"
	"github.com/agent-knock-knock/akk/internal/harness/config"
	"github.com/agent-knock-knock/akk/internal/harness/harnesssql"
	"github.com/agent-knock-knock/akk/internal/harness/launch"
	"github.com/agent-knock-knock/akk/internal/store"
)

// Options configure a Service.
type Options struct {
	Config   config.Config
	Launcher Launcher
	Clock    clock.Clock  // nil is the system clock
	Log      *slog.Logger // nil discards
}

// Service is all sessions of one state directory.
type Service struct {
	db    *store.DB
	cfg   config.Config
	clock clock.Clock
	log   *slog.Logger
}

// New serves the state of db. ctx bounds everything the Service does.
func New(_ context.Context, db *store.DB, o Options) (*Service, error) {
	s := &Service{db: db, cfg: o.Config, clock: o.Clock, log: o.Log}
	if s.clock == nil {
		s.clock = clock.System{}
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	return s, nil
}

// Live counts the sessions that have an agent.
func (s *Service) Live() int { return 0 }

// Close ends every session.
func (s *Service) Close(context.Context) {}

func exists(err error) bool { return fault.Is(err, fault.AlreadyExists) }

// Register stores a template. A name that is taken is refused and changes nothing.
func (s *Service) Register(ctx context.Context, t harness.Template) (harness.Template, error) {
	t, err := t.Check()
	if err != nil {
		return t, err
	}
	err = s.db.Update(ctx, func(tx *store.Tx) error {
		now := tx.Now
		t.CreatedAt = &now
		return harnesssql.AddTemplate(tx, t)
	})
	if exists(err) {
		return t, harness.Refuse(harness.TemplateExists, "there is a template %q", t.Name).Advise("choose another name; a template is never overwritten")
	}
	return t, err
}

// FindTemplates searches; total counts also what the answer has no room for.
func (s *Service) FindTemplates(ctx context.Context, f harness.Search) (found []harness.Template, total int, err error) {
	err = s.db.View(ctx, func(tx *store.Tx) error {
		all, err := harnesssql.Templates(tx)
		if err != nil {
			return err
		}
		found, total = f.Find(all)
		return nil
	})
	return found, total, err
}

// DeleteTemplate removes a template.
func (s *Service) DeleteTemplate(ctx context.Context, name string) error {
	if err := harness.CheckTemplateName(name); err != nil {
		return err
	}
	return s.db.Update(ctx, func(tx *store.Tx) error {
		there, err := harnesssql.DropTemplate(tx, name)
		if err == nil && !there {
			return harness.Refuse(harness.UnknownTemplate, "there is no template %q", name)
		}
		return err
	})
}

// Launcher starts the programs of agents.
type Launcher interface {
	Start(ctx context.Context, spec launch.Spec) (*launch.Process, error)
}
