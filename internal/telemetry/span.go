package telemetry

import (
	"crypto/sha256"
	"strconv"
	"time"
)

// The names of spans.
const (
	SpanTurn     = "akk.turn"     // from the send to the last callback
	SpanRound    = "akk.round"    // the same of an answer that continues a task
	SpanSubmit   = "akk.submit"   // from the reservation to the acceptance
	SpanWork     = "akk.work"     // from the acceptance to the end, or to a decision that is needed
	SpanCallback = "akk.callback" // one attempt
)

// The keys of attributes.
const (
	KeyTurn       = "akk.turn.id"
	KeyAgent      = "akk.agent"
	KeyChannel    = "akk.channel"
	KeyRound      = "akk.round"
	KeyOutcome    = "akk.outcome"
	KeyCode       = "akk.error.code"
	KeyDelivery   = "akk.delivery.id"
	KeyAttempt    = "akk.attempt.id"
	KeyNumber     = "akk.attempt.number"
	KeyKind       = "akk.callback.kind"
	KeyWorker     = "akk.worker"
	OutcomeLate   = "accepted_late" // accepted after it was called refused
	outcomeAsked  = "needs_decision"
	outcomeAccept = "accepted"
	outcomeDone   = "completed"
)

// TraceID and SpanID are derived, never random: whoever tells a task's step again, a later
// Bridge too, tells the same span.
type (
	TraceID [16]byte
	SpanID  [8]byte
)

// Attr is one attribute: a word, or a number if Word is "".
type Attr struct {
	Key    string
	Word   string
	Number int64
}

// Span is one finished step.
type Span struct {
	Name       string
	ID, Parent SpanID // Parent is zero for the root
	Start, End time.Time
	Attrs      []Attr
	Failed     bool
}

// Trace is what a story tells: the root, whose End is zero while the task goes on, and the
// spans that ended, in the order of their ends' steps.
type Trace struct {
	ID    TraceID
	Root  Span
	Local bool // the task was sent through the Bridge that tells it
	Spans []Span
}

// TraceOf is the trace of a task.
func TraceOf(turnID string) (id TraceID) {
	copy(id[:], digest("trace", turnID))
	return id
}

func spanOf(turnID, step string) (id SpanID) {
	copy(id[:], digest("span", turnID, step))
	return id
}

func digest(parts ...string) []byte {
	h := sha256.New()
	h.Write([]byte("akk-telemetry/v1"))
	for _, p := range parts {
		h.Write([]byte{0})
		h.Write([]byte(p))
	}
	return h.Sum(nil)
}

// TraceOfTurn folds a story into its spans. The same story gives the same spans, and a
// longer one gives the same and more.
func TraceOfTurn(t Turn) Trace {
	f := fold{turn: t, out: Trace{ID: TraceOf(t.ID), Local: t.Local}}
	f.out.Root = Span{Name: SpanTurn, ID: spanOf(t.ID, "turn")}
	for i, s := range t.Steps {
		if s.Kind == Began {
			f.close(s.At)
			f.begin(s, nextBegin(t.Steps[i+1:]))
			continue
		}
		f.step(s)
	}
	f.close(time.Time{})
	return f.out
}

// nextBegin is when the next round begins; zero when none does.
func nextBegin(steps []Step) time.Time {
	for _, s := range steps {
		if s.Kind == Began {
			return s.At
		}
	}
	return time.Time{}
}

// fold walks through the rounds of a story.
type fold struct {
	turn Turn
	out  Trace

	open       bool
	round      int
	frame      Span // of this round
	began      time.Time
	until      time.Time // the next round's begin
	refused    bool
	accepted   bool
	working    bool
	since      time.Time // of this part of the work
	parts      int
	end        time.Time
	endCode    string
	failed     bool
	deliveries []Delivery
}

func (f *fold) begin(s Step, until time.Time) {
	*f = fold{turn: f.turn, out: f.out, open: true, round: s.Round, began: s.At, until: until}
	f.frame = f.out.Root
	if s.Round > 0 {
		f.frame = Span{Name: SpanRound, ID: spanOf(f.turn.ID, f.name("round")), Parent: f.out.Root.ID}
	}
	f.frame.Start = s.At
	for _, d := range f.turn.Deliveries {
		if !d.Queued.Before(s.At) && (until.IsZero() || d.Queued.Before(until)) {
			f.deliveries = append(f.deliveries, d)
		}
	}
	if s.Round == 0 {
		f.out.Root = f.frame
	} else if f.out.Root.Start.IsZero() { // the beginning is not in the story any more
		f.out.Root.Start = s.At
	}
}

func (f *fold) name(step string) string { return step + "/" + strconv.Itoa(f.round) }

func (f *fold) attrs(more ...Attr) []Attr {
	out := []Attr{{Key: KeyTurn, Word: f.turn.ID}, {Key: KeyAgent, Word: f.turn.Agent}, {Key: KeyChannel, Word: f.turn.Channel}}
	if f.round > 0 {
		out = append(out, Attr{Key: KeyRound, Number: int64(f.round)})
	}
	return append(out, more...)
}

func (f *fold) put(name, step string, start, end time.Time, failed bool, more ...Attr) {
	if end.Before(start) { // two clocks, or one that was set back
		end = start
	}
	f.out.Spans = append(f.out.Spans, Span{Name: name, ID: spanOf(f.turn.ID, step), Parent: f.frame.ID, Start: start, End: end, Attrs: f.attrs(more...), Failed: failed})
}

func (f *fold) step(s Step) {
	if !f.open {
		return
	}
	switch s.Kind {
	case Accepted:
		if f.accepted {
			return
		}
		if f.refused {
			f.put(SpanSubmit, f.name("submit-late"), f.began, s.At, false, Attr{Key: KeyOutcome, Word: OutcomeLate})
		} else {
			f.put(SpanSubmit, f.name("submit"), f.began, s.At, false, Attr{Key: KeyOutcome, Word: outcomeAccept})
		}
		f.accepted, f.working, f.since = true, true, s.At
	case Refused:
		f.refuse(s)
	case Waits:
		if s.Code == "gone" && !f.accepted {
			f.refuse(Step{At: s.At, Code: "uncertain"})
		}
		if f.working {
			f.work(s.At, outcomeAsked, s.Code != "question", Attr{Key: KeyCode, Word: s.Code})
			f.working, f.since = false, s.At
		}
	case Resumed:
		if f.accepted && !f.working {
			f.working, f.since = true, s.At
		}
	case Ended:
		if !f.accepted {
			f.refuse(s)
		} else if f.end.IsZero() && (f.working || s.Code != "closed") {
			// An end after a stall: the agent worked on, unseen.
			f.work(s.At, s.Code, s.Code != outcomeDone)
		}
		f.working = false
		if f.end.IsZero() { // what ended and is closed later was told with its end
			f.end, f.endCode, f.failed = s.At, s.Code, s.Code != outcomeDone && s.Code != "closed"
		}
	}
}

func (f *fold) refuse(s Step) {
	if f.accepted || f.refused {
		return
	}
	f.refused = true
	f.put(SpanSubmit, f.name("submit"), f.began, s.At, true, Attr{Key: KeyOutcome, Word: s.Code})
}

func (f *fold) work(end time.Time, outcome string, failed bool, more ...Attr) {
	f.put(SpanWork, f.name("work")+"/"+strconv.Itoa(f.parts), f.since, end, failed, append([]Attr{{Key: KeyOutcome, Word: outcome}}, more...)...)
	f.parts++
}

// close tells the attempts of this round and, when nothing of it is left to happen, its
// frame. next is when another round began; zero when none did.
func (f *fold) close(next time.Time) {
	if !f.open {
		return
	}
	f.open = false
	over := f.end
	pending := f.end.IsZero()
	for _, d := range f.deliveries {
		for _, a := range d.Attempts {
			more := []Attr{{Key: KeyOutcome, Word: a.Outcome}, {Key: KeyKind, Word: d.Kind}, {Key: KeyDelivery, Word: d.ID}, {Key: KeyAttempt, Word: a.ID}, {Key: KeyNumber, Number: int64(a.Number)}}
			if a.Code != "" {
				more = append(more, Attr{Key: KeyCode, Word: a.Code})
			}
			f.put(SpanCallback, "callback/"+a.ID, a.Began, a.Ended, a.Outcome != outcomeAccept, more...)
			over = later(over, a.Ended)
		}
		pending = pending || d.Settled.IsZero()
		over = later(over, d.Settled)
	}
	if pending {
		return
	}
	f.frame.End, f.frame.Failed = over, f.failed
	f.frame.Attrs = f.attrs(Attr{Key: KeyOutcome, Word: f.endCode})
	if f.round == 0 {
		f.out.Root = f.frame
		return
	}
	f.out.Spans = append(f.out.Spans, f.frame)
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
