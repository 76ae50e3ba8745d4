// Package top shows Bridges, workers, Turns, Watches and callbacks live in a terminal.
//
// It reads the Store and asks running Bridges, and changes nothing. What it draws is a
// function of a [Snapshot], the size of the terminal and the time; package live owns the
// terminal.
package top

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agent-knock-knock/akk/internal/doctor"
	"github.com/agent-knock-knock/akk/internal/outbox"
	"github.com/agent-knock-knock/akk/internal/outbox/outboxsql"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/turn"
	"github.com/agent-knock-knock/akk/internal/turn/turnsql"
	"github.com/agent-knock-knock/akk/internal/watch"
	"github.com/agent-knock-knock/akk/internal/watch/watchsql"
)

// recent is how many Turns, Watches and callbacks that ended are read besides those that
// have not.
const recent = 20

// Snapshot is what is drawn.
type Snapshot struct {
	StoreDir string
	Bridges  []doctor.BridgeState
	Turns    []turn.Turn
	Watches  []watch.Watch
	Outbox   []outbox.Delivery // open and dead ones first
	Counts   map[outbox.Status]int
	// Damaged counts the records that cannot be read.
	Damaged int
	// Unasked says why running Bridges could not be asked, Unread why the Store, or a part of
	// it, could not be read; "" when it was.
	Unasked, Unread string
}

// problem is all that kept this Snapshot from being whole.
func (s Snapshot) problem() string {
	return strings.Join(slices.DeleteFunc([]string{s.Unread, s.Unasked}, func(p string) bool { return p == "" }), "; ")
}

// Read fills the parts of a Snapshot that are in the Store.
func (s *Snapshot) Read(tx *store.Tx) error {
	running, err := turnsql.Blocking(tx)
	if err != nil {
		return err
	}
	ended, err := turnsql.History(tx, recent)
	if err != nil {
		return err
	}
	for _, r := range append(running, ended...) {
		if r.Damaged != nil {
			s.Damaged++
			continue
		}
		s.Turns = append(s.Turns, r.Turn)
	}
	watches, err := watchsql.List(tx, "", recent)
	if err != nil {
		return err
	}
	for _, r := range watches {
		if r.Damaged != nil {
			s.Damaged++
			continue
		}
		s.Watches = append(s.Watches, r.Watch)
	}
	if s.Counts, err = outboxsql.Counts(tx, ""); err != nil {
		return err
	}
	for _, statuses := range [][]outbox.Status{{outbox.Delivering, outbox.Pending}, {outbox.Unproved, outbox.Failed, outbox.Exhausted}, {outbox.Delivered, outbox.Superseded, outbox.Discarded}} {
		rows, err := outboxsql.List(tx, statuses, recent)
		if err != nil {
			return err
		}
		for _, r := range rows {
			s.Outbox = append(s.Outbox, r.Delivery)
		}
	}
	return nil
}

// dead counts the callbacks that an operator must look at.
func (s Snapshot) dead() (n int) {
	for status, k := range s.Counts {
		if status.Dead() {
			n += k
		}
	}
	return n
}

// span is a duration in one unit, such as 42s, 7m, 3h, 9d.
func span(d time.Duration) string {
	switch {
	case d < 0:
		return "in " + span(-d)
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", d/time.Hour)
	}
	return fmt.Sprintf("%dd", d/(24*time.Hour))
}

// since is how long ago at was; "-" for never.
func since(now, at time.Time) string {
	if at.IsZero() {
		return "-"
	}
	return span(max(now.Sub(at), 0))
}
