package telemetry

import "time"

// The names of metrics.
const (
	MetricSends       = "akk.sends"
	MetricCallbacks   = "akk.callbacks"
	MetricAccept      = "akk.send.accept.duration"
	MetricDelivery    = "akk.callback.duration"
	MetricRestarts    = "akk.worker.restarts"
	MetricDropped     = "akk.telemetry.dropped"
	MetricOpenTurns   = "akk.turns.open"
	MetricBacklog     = "akk.outbox.backlog"
	MetricDeadLetters = "akk.outbox.dead_letters"
)

// recent is how old the end of a step may be when it is told: a story is told soon after
// each step, so what is older was told before. It bounds how much [Once] must remember.
const recent = 10 * time.Minute

// Count is one thing that happened, with the words that tell it apart; Seconds is how long
// it took, for a histogram, and then the thing itself is not counted.
type Count struct {
	Metric  string
	Attrs   []Attr
	Seconds float64
	Timed   bool
}

// Window is what a teller has to tell: what ended at or after Spans is told, and what ended
// at or after Counts is counted. A teller that replaces another one tells the last steps
// again, because the other one may have died before they left it; the span is the same. It
// counts nothing again.
type Window struct{ Spans, Counts time.Time }

// News is what a fact has that is new.
type News struct {
	Trace  *Trace // its spans are those to be told; nil when there are none
	Over   bool   // the root is among the new
	Counts []Count
	Levels *Levels
}

// Read returns what a fact has that is in the window and was not told once before.
func Read(f Fact, w Window, once *Once) News {
	n := News{Levels: f.Levels}
	oldest := later(w.Spans, f.At.Add(-recent))
	isNew := func(id SpanID, end time.Time) bool {
		return !end.IsZero() && !end.Before(oldest) && once.first(id)
	}
	counted := func(end time.Time) bool { return !end.Before(w.Counts) }
	if t := f.Turn; t != nil {
		trace := TraceOfTurn(*t)
		all := trace.Spans
		trace.Spans = nil
		for _, s := range all {
			if !isNew(s.ID, s.End) {
				continue
			}
			trace.Spans = append(trace.Spans, s)
			if counted(s.End) && s.Name == SpanSubmit {
				n.Counts = append(n.Counts, countSubmit(s)...)
			}
		}
		n.Over = isNew(trace.Root.ID, trace.Root.End)
		if len(trace.Spans) > 0 || n.Over {
			n.Trace = &trace
		}
		n.Counts = append(n.Counts, countCallbacks(t.Deliveries, trace.Spans, counted)...)
	}
	if f.Watch != nil {
		var told []Span
		for _, d := range f.Watch.Deliveries {
			for _, a := range d.Attempts {
				if id := spanOf(f.Watch.ID, "callback/"+a.ID); isNew(id, a.Ended) {
					told = append(told, Span{Name: SpanCallback, End: a.Ended, Attrs: []Attr{{Key: KeyAttempt, Word: a.ID}}})
				}
			}
		}
		n.Counts = append(n.Counts, countCallbacks(f.Watch.Deliveries, told, counted)...)
	}
	return n
}

func countSubmit(s Span) []Count {
	attrs := pick(s.Attrs, KeyOutcome, KeyAgent, KeyChannel)
	out := []Count{{Metric: MetricSends, Attrs: attrs}}
	if word(s.Attrs, KeyOutcome) == outcomeAccept {
		out = append(out, Count{Metric: MetricAccept, Attrs: pick(s.Attrs, KeyAgent, KeyChannel), Seconds: s.End.Sub(s.Start).Seconds(), Timed: true})
	}
	return out
}

// countCallbacks counts the attempts that are told now.
func countCallbacks(all []Delivery, told []Span, counted func(time.Time) bool) (out []Count) {
	is := make(map[string]bool, len(told))
	for _, s := range told {
		if s.Name == SpanCallback && counted(s.End) {
			is[word(s.Attrs, KeyAttempt)] = true
		}
	}
	for _, d := range all {
		for _, a := range d.Attempts {
			if !is[a.ID] {
				continue
			}
			kind := Attr{Key: KeyKind, Word: d.Kind}
			out = append(out, Count{Metric: MetricCallbacks, Attrs: []Attr{{Key: KeyOutcome, Word: a.Outcome}, kind}})
			if a.Outcome == outcomeAccept {
				out = append(out, Count{Metric: MetricDelivery, Attrs: []Attr{kind}, Seconds: max(0, a.Ended.Sub(d.Queued).Seconds()), Timed: true})
			}
		}
	}
	return out
}

func word(attrs []Attr, key string) string {
	for _, a := range attrs {
		if a.Key == key {
			return a.Word
		}
	}
	return ""
}

func pick(attrs []Attr, keys ...string) (out []Attr) {
	for _, k := range keys {
		out = append(out, Attr{Key: k, Word: word(attrs, k)})
	}
	return out
}

// Once remembers which spans were told, the newest of them. The zero value is ready.
type Once struct {
	told  map[SpanID]struct{}
	order []SpanID
	next  int
}

// remembered is far above the number of steps that can end within [recent].
const remembered = 16 << 10

func (o *Once) first(id SpanID) bool {
	if _, ok := o.told[id]; ok {
		return false
	}
	if o.told == nil {
		o.told = map[SpanID]struct{}{}
	}
	if len(o.order) < remembered {
		o.order = append(o.order, id)
	} else {
		delete(o.told, o.order[o.next])
		o.order[o.next] = id
		o.next = (o.next + 1) % remembered
	}
	o.told[id] = struct{}{}
	return true
}
