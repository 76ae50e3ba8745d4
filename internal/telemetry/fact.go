package telemetry

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
)

const (
	// Version of the lines. A reader of another version refuses them.
	Version = 1
	// MaxLine bounds a line, in bytes, its end included.
	MaxLine = 64 << 10
	// The most entries of one fact; the newest are kept.
	maxSteps      = 200
	maxDeliveries = 50
	maxAttempts   = 20
	maxCode       = 64
	maxID         = 128
)

// Fact is one line: what is known of one task or Terminal Watch now, or the levels.
type Fact struct {
	V      int       `json:"v"`
	At     time.Time `json:"at"` // when it was read
	Turn   *Turn     `json:"turn,omitempty"`
	Watch  *Watch    `json:"watch,omitempty"`
	Levels *Levels   `json:"levels,omitempty"`
}

// Turn is the whole story of one task so far. It is told again, longer, after each step.
type Turn struct {
	ID         string     `json:"id"`
	Agent      string     `json:"agent"`
	Channel    string     `json:"channel"`
	Local      bool       `json:"local,omitempty"` // made by the Bridge that tells it
	Steps      []Step     `json:"steps"`
	Deliveries []Delivery `json:"deliveries,omitempty"`
}

// Watch is the callbacks of one Terminal Watch. They are counted and make no trace.
type Watch struct {
	ID         string     `json:"id"`
	Deliveries []Delivery `json:"deliveries"`
}

// StepKind is one kind of step.
type StepKind string

const (
	Began    StepKind = "began"    // a submission was reserved; Round says which
	Accepted StepKind = "accepted" // the agent's own record shows it
	Refused  StepKind = "refused"  // it ended without acceptance: aborted, not_accepted, uncertain
	Waits    StepKind = "waits"    // a decision is needed: question, stalled, gone
	Resumed  StepKind = "resumed"  // the agent works again
	Ended    StepKind = "ended"    // completed, failed, interrupted, cancelled, aborted, closed
)

// Step is one step with its stored time.
type Step struct {
	Kind  StepKind  `json:"kind"`
	At    time.Time `json:"at"`
	Code  string    `json:"code,omitempty"`
	Round int       `json:"round,omitempty"`
}

// Delivery is one callback.
type Delivery struct {
	ID       string    `json:"id"`
	Kind     string    `json:"kind"`
	Status   string    `json:"status"`
	Queued   time.Time `json:"queued"`
	Settled  time.Time `json:"settled,omitzero"` // zero while it is on its way
	Attempts []Attempt `json:"attempts,omitempty"`
}

// Attempt is one attempt of a callback that began and ended.
type Attempt struct {
	ID      string    `json:"id"`
	Number  int       `json:"number"`
	Began   time.Time `json:"began"`
	Ended   time.Time `json:"ended"`
	Outcome string    `json:"outcome"`
	Code    string    `json:"code,omitempty"`
}

// Levels is what is measured, not counted: the whole Store's open Turns, callbacks on their
// way and dead letters; and this Bridge's totals since its start.
type Levels struct {
	OpenTurns   int64            `json:"open_turns"`
	Backlog     int64            `json:"backlog"`
	DeadLetters int64            `json:"dead_letters"`
	Dropped     int64            `json:"dropped"`
	Restarts    map[string]int64 `json:"restarts,omitempty"` // by the worker's name
}

// Encode makes the line of a fact, its end included. A story that is too long loses its
// oldest parts.
func Encode(f Fact) ([]byte, error) {
	f.V = Version
	if t := f.Turn; t != nil {
		short := *t
		short.Steps, short.Deliveries = newest(t.Steps, maxSteps), newest(t.Deliveries, maxDeliveries)
		f.Turn = &short
	}
	if w := f.Watch; w != nil {
		f.Watch = &Watch{ID: w.ID, Deliveries: newest(w.Deliveries, maxDeliveries)}
	}
	if err := f.check(); err != nil {
		return nil, err
	}
	for {
		line, err := json.Marshal(f)
		if err != nil {
			return nil, fmt.Errorf("telemetry.encode: %w", err)
		}
		if len(line) < MaxLine {
			return append(line, '\n'), nil
		}
		if !f.halve() {
			return nil, fault.New(fault.Invalid, "telemetry.encode", "a fact of %d bytes is too long", len(line))
		}
	}
}

// halve drops the older half of the longest list; false when nothing is left to drop.
func (f *Fact) halve() bool {
	switch {
	case f.Turn != nil && len(f.Turn.Deliveries) > 1:
		f.Turn.Deliveries = newest(f.Turn.Deliveries, len(f.Turn.Deliveries)/2)
	case f.Turn != nil && len(f.Turn.Steps) > 1:
		f.Turn.Steps = newest(f.Turn.Steps, len(f.Turn.Steps)/2)
	case f.Watch != nil && len(f.Watch.Deliveries) > 1:
		f.Watch.Deliveries = newest(f.Watch.Deliveries, len(f.Watch.Deliveries)/2)
	default:
		return false
	}
	return true
}

func newest[T any](all []T, n int) []T { return all[max(0, len(all)-n):] }

// Decode reads a line that Encode made. It refuses another version, unknown fields, and
// values that do not look like ids and codes.
func Decode(line []byte) (Fact, error) {
	const op = "telemetry.decode"
	var f Fact
	if len(line) > MaxLine {
		return f, fault.New(fault.Invalid, op, "a line of %d bytes is too long", len(line))
	}
	var head struct {
		V int `json:"v"`
	}
	if err := json.Unmarshal(line, &head); err != nil {
		return f, fault.New(fault.Invalid, op, "a line is not JSON")
	}
	if head.V != Version {
		return f, fault.New(fault.Invalid, op, "a line has version %d, this program reads %d", head.V, Version)
	}
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		return f, fault.New(fault.Invalid, op, "a line is not a fact")
	}
	return f, f.check()
}

// check refuses values that may be somebody's words.
func (f Fact) check() error {
	c := checker{}
	if t := f.Turn; t != nil {
		c.id(t.ID)
		c.codes(t.Agent, t.Channel)
		c.most(len(t.Steps), maxSteps)
		for _, s := range t.Steps {
			c.codes(string(s.Kind), s.Code)
		}
		c.deliveries(t.Deliveries)
	}
	if w := f.Watch; w != nil {
		c.id(w.ID)
		c.deliveries(w.Deliveries)
	}
	if l := f.Levels; l != nil {
		for name := range l.Restarts {
			c.codes(name)
		}
		c.most(len(l.Restarts), maxAttempts)
	}
	return c.err
}

type checker struct{ err error }

func (c *checker) fail(what string) {
	if c.err == nil { // the value itself is not said: it is what must not be told
		c.err = fault.New(fault.Invalid, "telemetry.check", "a fact holds a value that is no %s", what)
	}
}

func (c *checker) most(n, limit int) {
	if n > limit {
		c.fail("short list")
	}
}

func (c *checker) deliveries(all []Delivery) {
	c.most(len(all), maxDeliveries)
	for _, d := range all {
		c.id(d.ID)
		c.codes(d.Kind, d.Status)
		c.most(len(d.Attempts), maxAttempts)
		for _, a := range d.Attempts {
			c.id(a.ID)
			c.codes(a.Outcome, a.Code)
		}
	}
}

func (c *checker) id(s string) {
	if s == "" || len(s) > maxID || !isWord(s) {
		c.fail("id")
	}
}

func (c *checker) codes(all ...string) {
	for _, s := range all {
		if len(s) > maxCode || !isWord(s) {
			c.fail("code")
		}
	}
}

func isWord(s string) bool {
	for i := range len(s) {
		switch b := s[i]; {
		case b >= 'a' && b <= 'z', b >= 'A' && b <= 'Z', b >= '0' && b <= '9', b == '_', b == '-':
		default:
			return false
		}
	}
	return true
}

// otherCode stands for a word that is no code.
const otherCode = "other"

// Code keeps s if it is one, so that one odd word does not silence a whole story.
func Code(s string) string {
	if len(s) > maxCode || !isWord(s) {
		return otherCode
	}
	return s
}
