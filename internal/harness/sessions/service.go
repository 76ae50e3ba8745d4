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
	"sync"
	"time"

	"github.com/agent-knock-knock/akk/internal/clock"
	"github.com/agent-knock-knock/akk/internal/harness"
	"github.com/agent-knock-knock/akk/internal/harness/config"
	"github.com/agent-knock-knock/akk/internal/harness/harnesssql"
	"github.com/agent-knock-knock/akk/internal/lifecycle"
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
	db     *store.DB
	cfg    config.Config
	launch Launcher
	clock  clock.Clock
	log    *slog.Logger
	group  *lifecycle.Group
	logins *logins
	dirty  chan struct{}   // some session has events that are not stored yet
	rushed context.Context // ends when agents have no more time to end by themselves
	rush   context.CancelFunc

	mu       sync.Mutex
	live     map[string]*live
	starting int // places that are taken and have no session yet
	stopping bool
}

// New takes over what an earlier server left in db: a message that was not terminal ends
// as failed, its session as interrupted. ctx bounds everything the Service does; the caller
// must call Close.
func New(ctx context.Context, db *store.DB, o Options) (*Service, error) {
	s := &Service{db: db, cfg: o.Config, launch: o.Launcher, clock: o.Clock, log: o.Log, live: map[string]*live{}, dirty: make(chan struct{}, 1)}
	if s.clock == nil {
		s.clock = clock.System{}
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.logins = newLogins(o.Config.Authentication)
	s.rushed, s.rush = context.WithCancel(ctx)
	if err := s.recover(ctx); err != nil {
		s.rush()
		return nil, err
	}
	s.group = lifecycle.NewGroup(ctx)
	s.group.Go(s.flushLoop)
	s.group.Go(s.reapLoop)
	return s, nil
}

// Live counts the sessions that have an agent.
func (s *Service) Live() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.live)
}

// recover ends what cannot be continued, once, in one transaction per session.
func (s *Service) recover(ctx context.Context) error {
	var lost []harness.Session
	if err := s.db.View(ctx, func(tx *store.Tx) (err error) {
		lost, err = harnesssql.LiveSessions(tx)
		return err
	}); err != nil {
		return err
	}
	for _, rec := range lost {
		if err := s.db.Update(ctx, func(tx *store.Tx) error { return interrupt(tx, rec) }); err != nil {
			return err
		}
	}
	return nil
}

// interrupted is the end of a message whose server died.
var interrupted = harness.Problem{Code: harness.Interrupted, Message: "the server ended while the agent worked; what the agent did until then is not known"}

func interrupt(tx *store.Tx, rec harness.Session) error {
	unfinished, err := harnesssql.UnfinishedMessages(tx, rec.ID)
	if err != nil {
		return err
	}
	w := writer{tx: tx, rec: &rec}
	for _, m := range unfinished {
		if next, ok := m.Moved(harness.MessageBroken{Problem: interrupted, Orphaned: true}, tx.Now); ok {
			w.message(next)
			w.event(harness.EventSettled, m.ID, settledData(next))
		}
	}
	w.do(harnesssql.DropQuestions(tx, rec.ID))
	next, _ := rec.Moved(harness.SessionFound, nil, tx.Now)
	*w.rec = next
	w.event(harness.EventSessionState, "", stateData(next))
	w.session()
	return w.err
}

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

// after is a timer channel of the Service's clock; a zero or negative d never fires.
func (s *Service) after(d time.Duration) (<-chan time.Time, func()) {
	if d <= 0 {
		return nil, func() {}
	}
	return s.clock.NewTimer(d)
}
