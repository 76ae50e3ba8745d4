// Package coord is the use cases of the coordination ledger. Each method is one
// transaction: it reads what a rule of package ledger needs, applies the rule, and writes
// its outcome, or nothing.
//
// Errors carry the codes not_found, invalid, already_exists and conflict; a Store that
// fails keeps its own codes. A patch is read and written in one transaction, so no edit
// is lost. Nothing here launches work, opens a locator or grants a permission.
package coord

import (
	"context"
	"time"

	"github.com/agent-knock-knock/akk/internal/clock"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ledger"
	"github.com/agent-knock-knock/akk/internal/ledger/ledgersql"
	"github.com/agent-knock-knock/akk/internal/store"
)

// Service is the ledger in one Store. Its methods are safe for concurrent use, also with
// other processes on the same file.
type Service struct {
	db    *store.DB
	clock clock.Clock
	lease time.Duration
}

// Option changes a Service.
type Option func(*Service)

// WithAssignmentClaimLeaseTTL sets the term of new and renewed claims. It is rounded up
// to whole seconds; zero and less keep the default of five minutes.
func WithAssignmentClaimLeaseTTL(ttl time.Duration) Option {
	return func(s *Service) { s.lease = ledger.Lease(ttl) }
}

// WithClock replaces the system clock; for tests.
func WithClock(c clock.Clock) Option { return func(s *Service) { s.clock = c } }

// New returns the ledger of a Store that carries [ledgersql.Tables].
func New(db *store.DB, options ...Option) *Service {
	s := &Service{db: db, clock: clock.System{}, lease: ledger.DefaultLease}
	for _, o := range options {
		o(s)
	}
	return s
}

// Lease is the effective term of a claim.
func (s *Service) Lease() time.Duration { return s.lease }

// Close closes the Store.
func (s *Service) Close() error { return s.db.Close() }

func (s *Service) now() time.Time { return s.clock.Now().UTC().Round(0) }

// change runs fn in the write transaction. now is taken inside, so that it follows the
// time of every earlier transaction of a clock that does not go back.
func (s *Service) change(ctx context.Context, fn func(tx *store.Tx, now time.Time) error) error {
	return s.db.Update(ctx, func(tx *store.Tx) error { return fn(tx, s.now()) })
}

func (s *Service) view(ctx context.Context, fn func(tx *store.Tx) error) error {
	return s.db.View(ctx, fn)
}

// Page is a piece of a list. Next is the offset of what follows, 0 at the end.
type Page[T any] struct {
	Items []T
	Next  int
}

// Span asks for a piece of a list. Limit 0 means all.
type Span struct{ Limit, Offset int }

// page reads one more than asked to learn whether more follows.
func page[T any](span Span, read func(ledgersql.Page) ([]T, error)) (Page[T], error) {
	p := ledgersql.Page{Limit: span.Limit, Offset: span.Offset}
	if p.Limit > 0 {
		p.Limit++
	}
	got, err := read(p)
	if err != nil {
		return Page[T]{}, err
	}
	out := Page[T]{Items: got}
	if span.Limit > 0 && len(got) > span.Limit {
		out.Items, out.Next = got[:span.Limit], span.Offset+span.Limit
	}
	return out, nil
}

// requireIDs trims ids and refuses missing ones; it takes pairs of a name and a value.
func requireIDs(pairs ...any) error {
	for i := 0; i < len(pairs); i += 2 {
		p := pairs[i+1].(*string)
		*p = ledger.Trim(*p)
		if err := ledger.Required(pairs[i].(string), *p); err != nil {
			return err
		}
	}
	return nil
}

// must turns "there is none" into a refusal.
func must[T any](kind, id string) func(v T, ok bool, err error) (T, error) {
	return func(v T, ok bool, err error) (T, error) {
		if err == nil && !ok {
			err = ledger.Missing(kind, id)
		}
		return v, err
	}
}

func needProject(tx *store.Tx, id string) error {
	ok, err := ledgersql.ProjectExists(tx, id)
	if err == nil && !ok {
		err = ledger.Missing("project", id)
	}
	return err
}

func project(tx *store.Tx, id string) (ledger.Project, error) {
	p, ok, err := ledgersql.Project(tx, id)
	return must[ledger.Project]("project", id)(p, ok, err)
}

func role(tx *store.Tx, projectID, id string) (ledger.Role, error) {
	r, ok, err := ledgersql.Role(tx, projectID, id)
	return must[ledger.Role]("role", id)(r, ok, err)
}

func item(tx *store.Tx, projectID, id string) (ledger.WorkItem, error) {
	w, ok, err := ledgersql.WorkItem(tx, projectID, id)
	return must[ledger.WorkItem]("work item", id)(w, ok, err)
}

// itemOf reads a work item and blames the project when that is what is missing.
func itemOf(tx *store.Tx, projectID, id string) (ledger.WorkItem, error) {
	w, ok, err := ledgersql.WorkItem(tx, projectID, id)
	if err == nil && !ok {
		if err := needProject(tx, projectID); err != nil {
			return w, err
		}
	}
	return must[ledger.WorkItem]("work item", id)(w, ok, err)
}

func assignment(tx *store.Tx, projectID, id string) (ledger.Assignment, error) {
	a, ok, err := ledgersql.Assignment(tx, projectID, id)
	if err == nil && !ok {
		if err := needProject(tx, projectID); err != nil {
			return a, err
		}
	}
	return must[ledger.Assignment]("assignment", id)(a, ok, err)
}

// rootOf refuses a root that the project does not have; "" is no root.
func rootOf(tx *store.Tx, projectID, id string) error {
	if id == "" {
		return nil
	}
	p, err := project(tx, projectID)
	if err == nil && !p.HasRoot(id) {
		err = ledger.Missing("root", id)
	}
	return err
}

// roleOf refuses a role that the project does not have; "" is no role.
func roleOf(tx *store.Tx, projectID, id string) error {
	if id == "" {
		return nil
	}
	_, err := role(tx, projectID, id)
	return err
}

// free refuses a chosen id that is taken and mints one when none is chosen.
func free(kind ledger.Kind, what string, id *string, taken func(id string) (bool, error)) error {
	*id = ledger.Trim(*id)
	if *id == "" {
		*id = ledger.NewID(kind)
		return nil
	}
	if err := ledger.CheckNewID(what, *id); err != nil {
		return err
	}
	there, err := taken(*id)
	if err == nil && there {
		err = ledger.Exists(what, *id)
	}
	return err
}

// found adapts a reading to the question whether an id is taken.
func found[T any](read func(id string) (T, bool, error)) func(string) (bool, error) {
	return func(id string) (bool, error) { _, ok, err := read(id); return ok, err }
}

// Classify gives the one of five codes that a failure has outside: "" for nil, internal
// for everything that is not the caller's.
func Classify(err error) fault.Code {
	switch code := fault.CodeOf(err); code {
	case "", fault.NotFound, fault.Invalid, fault.AlreadyExists, fault.Conflict:
		return code
	default:
		return fault.Internal
	}
}

// Retryable reports whether the call failed for a reason that passes, with nothing
// stored: it may simply be repeated.
func Retryable(err error) bool { return fault.Is(err, store.CodeBusy) }
