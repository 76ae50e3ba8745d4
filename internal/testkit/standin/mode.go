package standin

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Mode is the bad behaviour that a test asks for. The zero Mode is a good agent.
type Mode struct {
	DropInput     bool          // drop-input: reads and forgets everything
	IgnoreEnter   bool          // ignore-enter: takes the text, never submits
	SwallowEnter  bool          // swallow-enter: loses an Enter that comes right after a paste
	NoBracketed   bool          // no-bracketed-paste
	DeafAfterEsc  bool          // deaf-after-esc: ignores typed keys after an Escape; pastes work
	SlowStart     time.Duration // slow-start=2s: the process is there, reading starts later
	LateFlush     time.Duration // late-flush=600ms+400ms: the final record comes late ...
	LateRest      time.Duration // ... its first 60 bytes first, the rest this much later
	NeverFlush    bool          // late-flush=never: idle screen, no final record at all
	ForeignTurn   bool          // foreign-turn: the end of another turn is recorded before ours
	Sidechain     bool          // sidechain: a sub-agent's answer is recorded after ours
	BrokenRecord  bool          // broken-record: a complete but broken line before the final record
	TrustDialog   bool          // trust-dialog: asks at the start whether the folder is trusted
	Onboarding    bool          // onboarding: an unknown first screen that never goes away
	OtherGlyphs   bool          // other-glyphs: prompt and spinner look different
	DieAt         string        // die=start|submit|accepted|tool|answer|final|end: kills itself there
	QueuedForever bool          // queued-forever: a prompt is parked as queued and never run
}

var dieingPoints = []string{"start", "submit", "accepted", "tool", "answer", "final", "end"}

// ParseMode reads STANDIN_MODE: names of the fields' comments, separated by commas. A name
// that does not exist is an error, so that a test cannot misspell a behaviour away.
func ParseMode(s string) (Mode, error) {
	var m Mode
	flags := map[string]*bool{
		"drop-input": &m.DropInput, "ignore-enter": &m.IgnoreEnter, "swallow-enter": &m.SwallowEnter,
		"no-bracketed-paste": &m.NoBracketed, "deaf-after-esc": &m.DeafAfterEsc, "foreign-turn": &m.ForeignTurn,
		"sidechain": &m.Sidechain, "broken-record": &m.BrokenRecord, "trust-dialog": &m.TrustDialog,
		"onboarding": &m.Onboarding, "other-glyphs": &m.OtherGlyphs, "queued-forever": &m.QueuedForever,
	}
	for _, item := range strings.Split(s, ",") {
		name, value, valued := strings.Cut(strings.TrimSpace(item), "=")
		if p := flags[name]; p != nil && !valued {
			*p = true
			continue
		}
		if err := m.setValued(name, value); err != nil {
			return Mode{}, err
		}
	}
	return m, nil
}

func (m *Mode) setValued(name, value string) (err error) {
	switch name {
	case "":
	case "slow-start":
		m.SlowStart, err = time.ParseDuration(value)
	case "late-flush":
		if value == "never" {
			m.NeverFlush = true
			return nil
		}
		first, rest, split := strings.Cut(value, "+")
		if m.LateFlush, err = time.ParseDuration(first); err == nil && split {
			m.LateRest, err = time.ParseDuration(rest)
		}
	case "die":
		if !slices.Contains(dieingPoints, value) {
			return fmt.Errorf("standin: die=%q: want one of %v", value, dieingPoints)
		}
		m.DieAt = value
	default:
		return fmt.Errorf("standin: unknown mode %q", name)
	}
	if err != nil {
		return fmt.Errorf("standin: mode %s: %w", name, err)
	}
	return nil
}
