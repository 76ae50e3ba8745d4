package observe

import "time"

// The pace of looks at the screen. A look runs a tmux client, which costs some
// milliseconds of CPU; with a hundred silent Turns that is what limits the pace. What an
// agent asks follows an event of its own (the call of a tool, a word in its status file, a
// request of its server), and such an event has the screen looked at several times at once.
const (
	lookSoon  = 50 * time.Millisecond  // the first look after such an event; the next ones come at doubling distances
	lookClose = 250 * time.Millisecond // the widest distance of close looks: Codex paints some questions a second after their event
	lookMin   = time.Second            // after other news, and while a request is not accepted yet
	lookOpen  = 10 * time.Second       // at most, while a prompt is open
	lookMax   = time.Minute            // at most, when nothing has changed for a while
	soonMost  = 8                      // looks closer than lookMin that an agent may cause at once
	soonAgain = time.Second            // until it may cause one more
)

// pace says when the screen is looked at next. It is values only: it has no clock.
type pace struct {
	due  time.Time
	gap  time.Duration // between the last look and the next, doubled by every look
	last time.Time     // the last look
	debt time.Time     // when all close looks are paid for: never more than soonMost ahead of now
}

func newPace(now time.Time) pace { return pace{due: now.Add(lookMin), gap: lookMin, last: now} }

// soon asks for looks at once. Many events in a row get no more than one look a second.
func (p *pace) soon(now time.Time) {
	if !p.pay(now, false) {
		p.news()
		return
	}
	p.gap = lookSoon
	if at := now.Add(lookSoon); at.Before(p.due) || !p.due.After(now) {
		p.due = at
	}
}

// news asks for a look within lookMin of the last one.
func (p *pace) news() {
	if p.gap > lookMin {
		p.gap = lookMin
	}
	if at := p.last.Add(max(p.gap, lookMin)); at.Before(p.due) {
		p.due = at
	}
}

// looked says that the screen was looked at. watchful is true when something changed, or is
// about to; open while a prompt is open.
func (p *pace) looked(now time.Time, watchful, open bool) {
	most := lookMax
	if open {
		most = lookOpen
	}
	switch {
	case watchful:
		p.gap = lookMin
	case p.gap < lookMin:
		p.gap = min(2*p.gap, lookClose)
	default:
		p.gap = min(2*p.gap, most)
	}
	if p.gap < lookMin && !p.pay(now, true) {
		p.gap = lookMin
	}
	p.last, p.due = now, now.Add(p.gap)
}

// pay reports whether one more close look may be afforded, and takes it when told to.
func (p *pace) pay(now time.Time, take bool) bool {
	debt := p.debt
	if debt.Before(now) {
		debt = now
	}
	if debt = debt.Add(soonAgain); debt.Sub(now) > soonMost*soonAgain {
		return false
	}
	if take {
		p.debt = debt
	}
	return true
}
