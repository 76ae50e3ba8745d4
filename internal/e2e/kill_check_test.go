package e2e

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/outbox"
	"github.com/agent-knock-knock/akk/internal/outbox/outboxsql"
	"github.com/agent-knock-knock/akk/internal/procinfo"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/testkit/fakehost"
	"github.com/agent-knock-knock/akk/internal/turn"
	"github.com/agent-knock-knock/akk/internal/turn/turnsql"
)

// restLimit bounds the wait for the last callbacks: a retry comes after 5 s, a frozen
// monitor is replaced within 10 s.
const restLimit = 90 * time.Second

// records is what the Store holds of the storm.
type records struct {
	turns      []turn.Turn
	deliveries map[ids.TurnID][]outbox.Delivery
}

func (s *storm) read() records {
	s.t.Helper()
	db, err := store.Open(s.t.Context(), s.w.host.Store, store.Options{ReadOnly: true})
	if err != nil {
		s.t.Fatal(err)
	}
	defer db.Close()
	r := records{deliveries: map[ids.TurnID][]outbox.Delivery{}}
	err = db.View(s.t.Context(), func(tx *store.Tx) error {
		rows, err := turnsql.List(tx, "", 10_000)
		if err != nil {
			return err
		}
		for _, row := range rows {
			if row.Damaged != nil {
				return row.Damaged
			}
			r.turns = append(r.turns, row.Turn)
			if r.deliveries[row.Turn.ID], err = outboxsql.BySource(tx, outbox.SourceTurn, string(row.Turn.ID)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

// checkStore fails unless the file is whole.
func (s *storm) checkStore() {
	s.t.Helper()
	db, err := store.Open(s.t.Context(), s.w.host.Store, store.Options{ReadOnly: true})
	if err != nil {
		s.t.Fatal(err)
	}
	defer db.Close()
	err = db.View(s.t.Context(), func(tx *store.Tx) error {
		var verdict string
		if err := tx.QueryRow("PRAGMA integrity_check").Scan(&verdict); err != nil {
			return err
		}
		if verdict != "ok" {
			s.t.Errorf("integrity_check: %s", verdict)
		}
		rows, err := tx.Query("PRAGMA foreign_key_check")
		if err != nil {
			return err
		}
		defer rows.Close()
		if rows.Next() {
			s.t.Error("foreign_key_check found a row without its parent")
		}
		return rows.Err()
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

// checkTyping proves on the bytes that the agents read: no text twice, no Enter twice, no
// key that nobody pressed.
func (s *storm) checkTyping() {
	s.t.Helper()
	s.mu.Lock()
	panes := slices.Clone(s.panes)
	s.mu.Unlock()
	seen := map[string]bool{}
	for _, p := range panes {
		in := p.Input(s.t)
		for _, text := range in.Pastes {
			text = lf(text)
			if seen[text] {
				s.t.Errorf("pasted twice: %q", text)
			}
			seen[text] = true
		}
		for i, n := range presses(in.Raw) {
			if n > 1 {
				s.t.Errorf("%s got %d Enters after paste %d", p.ID, n, i)
			}
		}
		if strings.Trim(in.Typed, "y1") != "" {
			s.t.Errorf("%s got %q outside of a paste", p.ID, in.Typed)
		}
	}
}

// lf undoes what tmux makes of a newline in a paste.
func lf(text string) string { return strings.ReplaceAll(text, "\r", "\n") }

// settle waits until nothing is under way any more.
func (s *storm) settle() {
	s.t.Helper()
	var open []string
	for end := time.Now().Add(restLimit); ; <-time.After(look) {
		r := s.read()
		open = nil
		for _, t := range r.turns {
			if t.Status.Blocking() && t.Status != turn.Stalled {
				open = append(open, fmt.Sprintf("%s %s %s %s", t.ID, t.Status, t.Stage, t.Trouble))
			}
			for _, d := range r.deliveries[t.ID] {
				if d.Status.Open() {
					open = append(open, fmt.Sprintf("%s %s %s attempt %d, next %s", t.ID, d.Event.Kind, d.Status, d.Attempts, d.NextAttemptAt))
				}
			}
		}
		if len(open) == 0 {
			return
		}
		if time.Now().After(end) {
			s.t.Fatalf("still open %v after the storm:\n%s", restLimit, strings.Join(open, "\n"))
		}
	}
}

// check proves what must hold at the end, and tells what happened.
func (s *storm) check() {
	s.t.Helper()
	if code := s.down().Close(settle); code != 0 {
		s.t.Errorf("the last Bridge ended with %d", code)
	}
	s.nobodyLeft()
	s.checkTyping()
	s.checkStore()
	r := s.read()
	accepted := s.checkCallbacks(r)
	s.checkAgents()
	byHash := map[string]turn.Turn{}
	ends, outcomes := map[string]int{}, map[string]int{}
	heard := map[string]bool{}
	for _, d := range s.w.host.Deliveries() {
		heard[d.Delivery] = true
	}
	for _, t := range r.turns {
		if had, ok := byHash[t.RequestHash]; !ok || had.Stage == turn.Aborted {
			byHash[t.RequestHash] = t // an aborted one may have been sent again
		}
		end := fmt.Sprintf("%s/%s", t.Status, t.Stage)
		for _, d := range r.deliveries[t.ID] {
			end += fmt.Sprintf(" %s:%s", d.Event.Kind, d.Status)
			outcomes[fmt.Sprintf("%s %s, heard: %v", d.Status, d.LastError, heard[string(d.DeliveryID)])]++
		}
		ends[end]++
	}
	replies := map[string]int{}
	for _, m := range s.sent {
		replies[s.checkSending(m, byHash, r)]++
	}
	s.t.Logf("%d Turns, %d callbacks accepted", len(r.turns), accepted)
	for what, counts := range map[string]map[string]int{"sends": replies, "strikes": s.kills, "a person": s.person, "Turns": ends, "callbacks": outcomes} {
		for _, name := range sorted(counts) {
			s.t.Logf("%s: %3d × %s", what, counts[name], name)
		}
	}
}

// checkCallbacks proves that no event was accepted twice and that each body belongs to
// its Turn. It returns how many the Host accepted.
func (s *storm) checkCallbacks(r records) int {
	s.t.Helper()
	log := s.w.host.Deliveries()
	acceptedBy := map[string]int{}
	for _, d := range log {
		if d.Mode == fakehost.Accept || d.Mode == fakehost.Slow {
			acceptedBy[d.Delivery]++
		}
	}
	known := map[string]outbox.Delivery{}
	for _, ds := range r.deliveries {
		for _, d := range ds {
			known[string(d.DeliveryID)] = d
			if n := acceptedBy[string(d.DeliveryID)]; n > 1 {
				s.t.Errorf("the Host accepted %s of %s %d times", d.Event.Kind, d.Source.ID, n)
			} else if n == 0 && d.Status == outbox.Delivered {
				s.t.Errorf("%s of %s is called delivered; the Host never accepted it", d.Event.Kind, d.Source.ID)
			}
		}
	}
	for _, d := range log {
		if k, ok := known[d.Delivery]; !ok || string(k.Event.Body) != d.Body {
			s.t.Errorf("the Host heard %q, the Store says %q", d.Body, k.Event.Body)
		}
	}
	return len(acceptedBy)
}

// checkAgents proves that the human's agents are the ones that were there before.
func (s *storm) checkAgents() {
	s.t.Helper()
	for _, p := range s.panes {
		for _, e := range p.EventLog(s.t) {
			if e.Ev == "steer" || e.Ev == "queue" || e.Ev == "interrupt" || e.Ev == "shell" {
				s.t.Errorf("%s saw %s %q", p.ID, e.Ev, e.Text)
			}
		}
		if s.closed[p] {
			continue
		}
		proc, err := procinfo.Read(p.PID)
		if err != nil || proc.Zombie() || p.EventLog(s.t)[0].PID != p.PID {
			s.t.Errorf("the agent of %s is not the one that was started: %v", p.ID, err)
		}
	}
}

// checkSending proves that one order ended as the Host was told, and names its end.
func (s *storm) checkSending(m *sending, byHash map[string]turn.Turn, r records) string {
	s.t.Helper()
	pasted := slices.ContainsFunc(m.pane.Input(s.t).Pastes, func(p string) bool { return lf(p) == m.text })
	t, ok := byHash[ids.TextHash(m.text)]
	switch {
	case m.code != "":
		// A refused order is sent again; only when that made no other Turn is the paste proof.
		if pasted && (!ok || t.Stage == turn.Aborted) {
			s.t.Errorf("refused with %s, and yet typed: %q", m.code, m.text)
		}
		return "refused: " + m.code
	case !ok:
		if pasted || !m.lost {
			s.t.Errorf("no Turn for %q (typed: %v, reply lost: %v)", m.text, pasted, m.lost)
		}
		return "no reply, no Turn"
	case !m.lost && string(t.ID) != m.turn:
		s.t.Errorf("the Host was told of %s, the Store has %s", m.turn, t.ID)
	}
	if t.Stage == turn.Aborted {
		if pasted {
			s.t.Errorf("%s is aborted, and yet typed", t.ID)
		}
		return "no reply, aborted"
	}
	s.checkTold(m, t, r.deliveries[t.ID])
	if m.lost {
		return "no reply, told"
	}
	return "answered"
}

// checkTold proves that a Turn that may have reached its agent was told, with its own
// answer and nothing after it.
func (s *storm) checkTold(m *sending, t turn.Turn, ds []outbox.Delivery) {
	s.t.Helper()
	if len(ds) == 0 {
		s.t.Errorf("%s ended as %s/%s in silence", t.ID, t.Status, t.Stage)
		return
	}
	last := ds[len(ds)-1]
	want := map[turn.Status]string{turn.Idle: "completion", turn.Failed: "failure", turn.Stalled: "stalled"}[t.Status]
	if last.Event.Kind != want {
		s.t.Errorf("%s is %s (%s) and was told as %s", t.ID, t.Status, t.Reason, last.Event.Kind)
	}
	if (t.Status == turn.Idle) == m.fails && t.Status != turn.Stalled {
		s.t.Errorf("%s (%q) ended as %s", t.ID, m.text, t.Status)
	}
	if t.Status == turn.Idle && string(last.Event.Body) != m.answer {
		s.t.Errorf("%s was told %q, its answer is %q", t.ID, last.Event.Body, m.answer)
	}
	if t.Status == turn.Stalled && !s.closed[m.pane] {
		s.t.Errorf("%s stalled (%s) though its agent lives", t.ID, t.Reason)
	}
}

func sorted(m map[string]int) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
