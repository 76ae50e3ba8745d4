package coord

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/agent-knock-knock/akk/internal/ledger"
	"github.com/agent-knock-knock/akk/internal/ledger/ledgersql"
	"github.com/agent-knock-knock/akk/internal/ledger/overview"
	"github.com/agent-knock-knock/akk/internal/store"
)

// The bounds of what a summary lists; its counters are exact.
const (
	activityMost = 100
	bucketMost   = 50
	briefMost    = 100
)

// summary reads one moment of a project.
func (s *Service) summary(ctx context.Context, projectID string, fn func(tx *store.Tx, projectID string, now time.Time) error) error {
	if err := requireIDs("project_id", &projectID); err != nil {
		return err
	}
	return s.view(ctx, func(tx *store.Tx) error {
		if err := needProject(tx, projectID); err != nil {
			return err
		}
		return fn(tx, projectID, s.now())
	})
}

// Activity tells what goes on in a project.
func (s *Service) Activity(ctx context.Context, projectID string) (a overview.Activity, err error) {
	err = s.summary(ctx, projectID, func(tx *store.Tx, id string, now time.Time) error { a, err = activity(tx, id, now); return err })
	return a, err
}

func activity(tx *store.Tx, id string, now time.Time) (a overview.Activity, err error) {
	t, err := ledgersql.ProjectTally(tx, id)
	if err != nil {
		return a, err
	}
	expired, err := ledgersql.CountExpired(tx, id, now)
	if err != nil {
		return a, err
	}
	recent, err := ledgersql.Assignments(tx, id, ledgersql.AssignmentFilter{}, ledgersql.Page{Limit: activityMost})
	if err != nil {
		return a, err
	}
	var lists [3][]ledger.Assignment
	for i, statuses := range [][]string{{ledger.Running, ledger.AwaitingReview},
		{ledger.Queued, ledger.AwaitingApproval, ledger.Failed, ledger.Cancelled}, {ledger.Completed}} {
		if lists[i], err = ledgersql.ByStatus(tx, id, statuses, false, bucketMost); err != nil {
			return a, err
		}
	}
	held, late, err := claims(tx, id, now, bucketMost)
	if err != nil {
		return a, err
	}
	lists[0], lists[1] = append(lists[0], held...), append(lists[1], late...)
	names, err := namer(tx, id, append([][]ledger.Assignment{recent}, lists[:]...)...)
	if err != nil {
		return a, err
	}
	items := func(list []ledger.Assignment, most int) []overview.ActivityItem {
		out := make([]overview.ActivityItem, 0, len(list))
		for _, x := range list {
			out = append(out, overview.ActivityItem{Bucket: overview.Bucket(x, now), AssignmentID: x.ID, WorkItemID: x.WorkItemID, WorkItemTitle: names.items[x.WorkItemID],
				RoleID: x.RoleID, RoleName: names.roles[x.RoleID], RootID: x.RootID, Status: x.Status, ExecutionMode: x.ExecutionMode,
				DesiredAgentKind: x.DesiredAgent.Kind, ExecutionRef: x.ExecutionRef, CreatedAt: x.CreatedAt, UpdatedAt: x.UpdatedAt})
		}
		slices.SortFunc(out, func(a, b overview.ActivityItem) int {
			if c := b.UpdatedAt.Compare(a.UpdatedAt); c != 0 {
				return c
			}
			if c := b.CreatedAt.Compare(a.CreatedAt); c != 0 {
				return c
			}
			return strings.Compare(a.AssignmentID, b.AssignmentID)
		})
		return out[:min(len(out), most)]
	}
	a = overview.Activity{ProjectID: id, Counts: overview.CountActivity(t, expired), Items: items(recent, activityMost), CreatedAt: now}
	a.Buckets = overview.Buckets{Active: items(lists[0], bucketMost), Blocked: items(lists[1], bucketMost), Completed: items(lists[2], bucketMost),
		Other: []overview.ActivityItem{}, Recent: a.Items[:min(len(a.Items), bucketMost)]}
	a.Omitted = a.Counts.Assignments - len(a.Items)
	return a, nil
}

// claims lists claimed work, what is held and what has run out.
func claims(tx *store.Tx, id string, now time.Time, most int) (held, late []ledger.Assignment, err error) {
	if held, err = ledgersql.Held(tx, id, now, most); err != nil {
		return nil, nil, err
	}
	late, err = ledgersql.Expired(tx, id, now, most)
	return held, late, err
}

type names struct{ items, roles map[string]string }

func namer(tx *store.Tx, id string, lists ...[]ledger.Assignment) (n names, err error) {
	var items, roles []string
	for _, l := range lists {
		for _, a := range l {
			items, roles = append(items, a.WorkItemID), append(roles, a.RoleID)
		}
	}
	n.items, n.roles, err = ledgersql.Titles(tx, id, items, roles)
	return n, err
}

// OperationsBrief tells what to do next.
func (s *Service) OperationsBrief(ctx context.Context, projectID string) (b overview.Brief, err error) {
	err = s.summary(ctx, projectID, func(tx *store.Tx, id string, now time.Time) error {
		b, _, err = brief(tx, id, now, briefMost)
		return err
	})
	return b, err
}

// brief also returns how many open items have no assignment.
func brief(tx *store.Tx, id string, now time.Time, most int) (b overview.Brief, idle int, err error) {
	t, err := ledgersql.ProjectTally(tx, id)
	if err != nil {
		return b, 0, err
	}
	expired, err := ledgersql.CountExpired(tx, id, now)
	if err != nil {
		return b, 0, err
	}
	waiting, err := ledgersql.CountCandidates(tx, id)
	if err != nil {
		return b, 0, err
	}
	live, err := briefAssignments(tx, id, now, most)
	if err != nil {
		return b, 0, err
	}
	unproved, err := ledgersql.UnprovedAssignments(tx, id, most)
	if err != nil {
		return b, 0, err
	}
	n, err := namer(tx, id, live, unproved)
	if err != nil {
		return b, 0, err
	}
	items := []overview.BriefItem{}
	for _, a := range live {
		if i, ok := overview.AssignmentItem(a, n.items[a.WorkItemID], now); ok {
			items = append(items, i)
		}
	}
	for _, a := range unproved {
		items = append(items, overview.MissingEvidenceItem(a, n.items[a.WorkItemID]))
	}
	if items, err = collabItems(tx, id, most, items); err != nil {
		return b, 0, err
	}
	return overview.MakeBrief(id, overview.CountBrief(t, expired, waiting[ledger.Pending]), t.Idle, items, most, now), t.Idle, nil
}

// briefAssignments lists the assignments that a brief tells of. The most recent of each kind
// are enough: the brief is cut to most in the end.
func briefAssignments(tx *store.Tx, id string, now time.Time, most int) ([]ledger.Assignment, error) {
	told, err := ledgersql.ByStatus(tx, id, overview.ToldAlways, false, most)
	if err != nil {
		return nil, err
	}
	open, err := ledgersql.ByStatus(tx, id, overview.ToldOfOpen, true, most)
	if err != nil {
		return nil, err
	}
	held, late, err := claims(tx, id, now, most)
	return slices.Concat(told, open, held, late), err
}

func collabItems(tx *store.Tx, id string, most int, items []overview.BriefItem) ([]overview.BriefItem, error) {
	reviews, err := ledgersql.UnresolvedReviews(tx, id, most)
	if err != nil {
		return nil, err
	}
	for _, r := range reviews {
		items = append(items, overview.FollowUpItem(r))
	}
	handoffs, err := ledgersql.OpenHandoffs(tx, id, most)
	if err != nil {
		return nil, err
	}
	for _, h := range handoffs {
		items = append(items, overview.HandoffItem(h))
	}
	candidates, err := ledgersql.Candidates(tx, id, ledger.Pending, ledgersql.Page{Limit: most})
	if err != nil {
		return nil, err
	}
	for _, c := range candidates {
		items = append(items, overview.CandidateItem(c))
	}
	ready, err := ledgersql.ReadyItems(tx, id, most)
	if err != nil {
		return nil, err
	}
	for _, w := range ready {
		items = append(items, overview.ReadyItem(w.ID, w.Title, w.UpdatedAt))
	}
	idle, err := ledgersql.IdleItems(tx, id, most)
	if err != nil {
		return nil, err
	}
	for _, w := range idle {
		items = append(items, overview.IdleItem(w.ID, w.Title, w.UpdatedAt))
	}
	return items, nil
}

// SetupReadiness says whether a project is ready for its first work.
func (s *Service) SetupReadiness(ctx context.Context, projectID string) (out overview.Setup, err error) {
	err = s.summary(ctx, projectID, func(tx *store.Tx, id string, now time.Time) error {
		f, err := setupFacts(tx, id)
		out = overview.JudgeSetup(f, now)
		return err
	})
	return out, err
}

// Health is the overview of a project.
func (s *Service) Health(ctx context.Context, projectID string) (out overview.Health, err error) {
	err = s.summary(ctx, projectID, func(tx *store.Tx, id string, now time.Time) error {
		f, err := setupFacts(tx, id)
		if err != nil {
			return err
		}
		b, idle, err := brief(tx, id, now, overview.AttentionLimit)
		out = overview.JudgeHealth(f, b, idle, now)
		return err
	})
	return out, err
}

func setupFacts(tx *store.Tx, id string) (f overview.SetupFacts, err error) {
	if f.Project, err = project(tx, id); err != nil {
		return f, err
	}
	t, err := ledgersql.ProjectTally(tx, id)
	if err != nil {
		return f, err
	}
	f.Items = t.Items
	f.Sources = len(f.Project.ContextSources)
	for _, src := range f.Project.ContextSources {
		if src.Enabled {
			f.EnabledSources++
		}
	}
	for _, r := range f.Project.Roots {
		f.ActiveRoot = f.ActiveRoot || r.Active
	}
	if f.SavedMemory, f.EnabledMemory, err = ledgersql.CountMemory(tx, id); err != nil {
		return f, err
	}
	if f.Candidates, err = ledgersql.CountCandidates(tx, id); err != nil {
		return f, err
	}
	if f.Handoffs, err = ledgersql.CountHandoffs(tx, id); err != nil {
		return f, err
	}
	if f.Reviews, err = ledgersql.CountReviews(tx, id); err != nil {
		return f, err
	}
	return f, skillFacts(tx, id, &f)
}

// skillFacts counts the skills that roles or assignments name and that are of no use.
func skillFacts(tx *store.Tx, id string, f *overview.SetupFacts) error {
	roles, err := ledgersql.Roles(tx, id, ledgersql.Page{})
	if err != nil {
		return err
	}
	skills, err := ledgersql.Skills(tx, id, ledgersql.Page{})
	if err != nil {
		return err
	}
	asked, err := ledgersql.AskedSkills(tx, id)
	if err != nil {
		return err
	}
	for _, r := range roles {
		asked = append(asked, ledger.AskedSkills(r.DefaultSkillIDs)...)
	}
	f.Roles, f.Skills = len(roles), len(skills)
	usable := map[string]bool{}
	for _, k := range skills {
		usable[k.ID] = k.Usable()
	}
	for _, a := range ledger.List(asked) {
		if !usable[a] {
			f.SkillIssues++
		}
	}
	return nil
}
