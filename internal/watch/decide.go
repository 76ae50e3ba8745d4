package watch

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/redact"
	"github.com/agent-knock-knock/akk/internal/turn"
)

// activityGrain bounds how often activity alone is written.
const activityGrain = time.Minute

// detailLength bounds a detail that is kept, in bytes.
const detailLength = 300

// Create starts a Watch: w holds its identity, target, anchor, route and deadline.
func Create(w Watch, now time.Time) Plan {
	w.Status = Active
	w.CreatedAt, w.UpdatedAt, w.LastActivityAt = now, now, now
	if w.DeadlineAt.IsZero() {
		w.DeadlineAt = now.Add(DefaultHard)
	}
	var p Plan
	p.add(Event{At: now, Kind: EvCreated, Watch: &w})
	return p
}

// Adopt records that another Bridge took the Watch over.
func Adopt(w Watch, from, to ids.BridgeID, now time.Time) Plan {
	p := Plan{Watch: w}
	if w.Status == Active {
		p.add(Event{At: now, Kind: EvAdopted, Reason: fmt.Sprintf("taken over by %s; %s ended", to, from)})
	}
	return p
}

// Unwatch ends a Watch on request. A Watch that has ended stays as it is.
func Unwatch(w Watch, now time.Time) Plan {
	p := Plan{Watch: w}
	if w.Status == Active {
		p.settle(Settlement{Kind: Cancelled, Reason: ReasonCancelled, ObservedAt: now}, "", now)
	}
	return p
}

// CheckDeadline ends a Watch whose time is over. It is asked before any evidence.
func CheckDeadline(w Watch, now time.Time) Plan {
	p := Plan{Watch: w}
	if w.Status == Active && !now.Before(w.DeadlineAt) {
		p.settle(Settlement{Kind: TimedOut, Reason: ReasonDeadline, ObservedAt: now}, "", now)
	}
	return p
}

// Observe folds what a monitor saw (spec part 10.4). Observations are evidence that may
// come twice, late, or for a Watch that ended: whatever adds nothing gives an empty Plan.
func Observe(w Watch, o turn.Observation, now time.Time) Plan {
	p := CheckDeadline(w, now)
	if w.Status != Active || len(p.Events) > 0 {
		return p
	}
	switch o.Kind {
	case turn.ObsAccepted:
		if !w.Seen {
			p.observe(o, now)
		}
	case turn.ObsActivity:
		if w.Problem != nil || now.Sub(w.LastActivityAt) >= activityGrain {
			p.observe(o, now)
		}
	case turn.ObsPrompt:
		p.prompt(o, now)
	case turn.ObsPromptCleared:
		if w.OpenPrompt != "" {
			p.observe(o, now)
		}
	case turn.ObsTrouble:
		p.trouble(o, now)
	case turn.ObsCompleted, turn.ObsFailed, turn.ObsInterrupted, turn.ObsGone:
		p.end(o, now)
	}
	return p
}

// observe appends the event. The words of the agent go to the outbox or nowhere.
func (p *Plan) observe(o turn.Observation, now time.Time) {
	p.add(Event{At: now, Kind: EvObserved, Observation: wordless(o)})
}

// wordless keeps what a journal needs of an observation.
func wordless(o turn.Observation) *turn.Observation {
	if o.FullBytes == 0 {
		o.FullBytes = len(o.Text)
	}
	o.Text, o.Detail = "", line(o.Detail)
	if o.Prompt != nil {
		o.Prompt = &turn.Prompt{Kind: o.Prompt.Kind, Fingerprint: o.Prompt.Fingerprint}
	}
	return &o
}

// prompt tells the Host once of each prompt that waits for a person's decision.
func (p *Plan) prompt(o turn.Observation, now time.Time) {
	if o.Prompt == nil || o.Prompt.Fingerprint == "" || o.Prompt.Fingerprint == p.Watch.OpenPrompt {
		return
	}
	told := p.Watch.told(o.Prompt.Fingerprint) || o.Prompt.Kind == turn.PromptDialog
	if told { // a dialog that a person opened is nothing to decide
		p.observe(o, now)
		return
	}
	n := promptNotice(p.Watch, *o.Prompt)
	p.add(Event{At: now, Kind: EvObserved, Observation: wordless(o), Message: n.MessageID})
	p.Notices = append(p.Notices, n)
}

func (p *Plan) trouble(o turn.Observation, now time.Time) {
	problem := ProblemProvider
	switch troubles[o.Code] {
	case anchor:
		p.settle(settlement(Invalidated, ReasonAnchor, o), "", now)
		return
	case identity:
		p.settle(settlement(Invalidated, ReasonIdentity, o), "", now)
		return
	case screen:
		problem = ProblemTerminal
	case given:
		p.Rearm = true
	}
	detail := line(joined(o.Code, o.Detail))
	if had := p.Watch.Problem; had == nil || had.Code != problem || had.Detail != detail {
		p.add(Event{At: now, Kind: EvObserved, Observation: wordless(o), Problem: &Problem{Code: problem, Detail: detail, At: now}})
	}
}

func (p *Plan) end(o turn.Observation, now time.Time) {
	var s Settlement
	switch {
	case o.Kind == turn.ObsGone:
		s = settlement(Invalidated, ReasonProcess, o)
	case o.Kind == turn.ObsInterrupted && o.Code == codeSuperseded:
		s = settlement(Invalidated, ReasonAnchor, o)
	case o.Kind != turn.ObsCompleted:
		s = settlement(Failed, ReasonFailed, o)
	case p.Watch.Mode == ModeActivity:
		s = settlement(Completed, ReasonIdle, o)
	default:
		s = settlement(Completed, ReasonCompleted, o)
	}
	text := ""
	if o.Kind == turn.ObsCompleted {
		text = o.Text
		s.TextBytes = max(o.FullBytes, len(o.Text))
		s.Text = clip(redact.String(text), MaxSettlementText)
	}
	p.settle(s, text, now)
}

func settlement(kind Status, reason string, o turn.Observation) Settlement {
	log := ""
	if o.Log != nil {
		log = fmt.Sprintf("%d:%d:%d", o.Log.Device, o.Log.Inode, o.Log.Offset)
	}
	return Settlement{Kind: kind, Reason: reason, Detail: line(joined(o.Code, o.Detail)), Source: o.Source, ObservedAt: o.At,
		Fingerprint: ids.TextHash(strings.Join([]string{string(o.Kind), o.Code, o.Source, o.ThreadID, o.NativeTurnID, log, ids.TextHash(o.Text)}, "\n"))}
}

// settle ends the Watch, tells the Host once, and supersedes what it did not hear yet.
// text is the agent's last message, which goes to the Host whole.
func (p *Plan) settle(s Settlement, text string, now time.Time) {
	if s.ObservedAt.IsZero() {
		s.ObservedAt = now
	}
	s.Message = notification(p.Watch.ID, "settlement")
	p.add(Event{At: now, Kind: EvSettled, Settlement: &s, Message: s.Message})
	p.Notices = append(p.Notices, settlementNotice(p.Watch, text))
	p.Supersedes = true
}

// notification derives the id of a notice from what it is about, so that deciding the
// same fact again, after a crash before the commit, gives the same id.
func notification(id ids.WatchID, parts ...string) string {
	return ids.Derive("terminal-watch-notification", append([]string{string(id)}, parts...)...)
}

func line(s string) string { return redact.Line(redact.String(s), detailLength) }

func joined(parts ...string) string {
	var kept []string
	for _, p := range parts {
		if p != "" {
			kept = append(kept, p)
		}
	}
	return strings.Join(kept, ": ")
}

// clip cuts s after limit characters.
func clip(s string, limit int) string {
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	n := 0
	for i := range s {
		if n++; n > limit {
			return s[:i]
		}
	}
	return s
}
