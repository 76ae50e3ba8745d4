package torture

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/outbox"
	"github.com/agent-knock-knock/akk/internal/outbox/outboxsql"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/testkit/fakehost"
	"github.com/agent-knock-knock/akk/internal/turn"
	"github.com/agent-knock-knock/akk/internal/turn/turnsql"
)

// told is one Turn with its callbacks.
type told struct {
	turn.Turn
	sent []outbox.Delivery
}

func (w *world) view(f func(*store.Tx) error) {
	w.tb.Helper()
	db, err := store.Open(w.tb.Context(), w.host.Store, store.Options{ReadOnly: true})
	if err != nil {
		w.tb.Fatal(err)
	}
	defer db.Close()
	if err := db.View(w.tb.Context(), f); err != nil {
		w.tb.Fatal(err)
	}
}

// records reads every Turn.
func (w *world) records() (out []told) {
	w.tb.Helper()
	w.view(func(tx *store.Tx) error {
		rows, err := turnsql.List(tx, "", 1000)
		for _, row := range rows {
			if row.Damaged != nil {
				return row.Damaged
			}
			sent, err := outboxsql.BySource(tx, outbox.SourceTurn, string(row.Turn.ID))
			if err != nil {
				return err
			}
			out = append(out, told{row.Turn, sent})
		}
		return err
	})
	return out
}

// checkStore fails unless the file is whole.
func (w *world) checkStore() {
	w.tb.Helper()
	w.view(func(tx *store.Tx) error {
		var verdict string
		if err := tx.QueryRow("PRAGMA integrity_check").Scan(&verdict); err != nil {
			return err
		}
		if verdict != "ok" {
			w.tb.Errorf("integrity_check: %s", verdict)
		}
		var orphans int
		if err := tx.QueryRow("SELECT count(*) FROM pragma_foreign_key_check").Scan(&orphans); err != nil {
			return err
		}
		if orphans > 0 {
			w.tb.Errorf("foreign_key_check: %d rows without their parent", orphans)
		}
		return nil
	})
}

// open lists what is still under way.
func (w *world) open() (open []string, all []told) {
	w.tb.Helper()
	all = w.records()
	for _, t := range all {
		if t.Status.Blocking() && t.Status != turn.Stalled {
			open = append(open, fmt.Sprintf("%s %s %s %s", t.ID, t.Status, t.Stage, t.Trouble))
		}
		for _, d := range t.sent {
			if d.Status.Open() {
				open = append(open, fmt.Sprintf("%s %s %s attempt %d, next %s", t.ID, d.Event.Kind, d.Status, d.Attempts, d.NextAttemptAt))
			}
		}
	}
	return open, all
}

// settle waits until nothing is under way any more.
func (w *world) settle() {
	w.tb.Helper()
	var open []string
	end := time.Now().Add(restLimit)
	for {
		if open, _ = w.open(); len(open) == 0 {
			return
		}
		if time.Now().After(end) {
			w.tb.Fatalf("still open %v after the strike:\n%s\n%s", restLimit, strings.Join(open, "\n"), w.c.Stderr())
		}
		<-time.After(5 * pause)
	}
}

// settleLate waits for what an agent that lives says of a task whose submission was called
// uncertain: its Turn is followed on, and its end is told after all.
func (r *round) settleLate() {
	r.tb.Helper()
	if r.agentHurt || r.pane.Input(r.tb).Enters == 0 {
		return
	}
	uncertain := func() bool {
		return slices.ContainsFunc(r.records(), func(t told) bool { return t.RequestHash == ids.TextHash(r.text) && t.Stage == turn.Uncertain })
	}
	for end := time.Now().Add(patience); uncertain() && time.Now().Before(end); <-time.After(5 * pause) {
	} // check names one that stays so
	r.settle()
}

// check proves what must hold at the end, and names the end of the task.
func (r *round) check(got reply) string {
	tb := r.tb
	tb.Helper()
	in := r.pane.Input(tb)
	pastes := 0
	for _, p := range in.Pastes {
		if strings.ReplaceAll(p, "\r", "\n") == r.text {
			pastes++
		} else {
			tb.Errorf("the agent read a paste that nobody sent: %q", p)
		}
	}
	if pastes > 1 || in.Enters > 1 || in.Enters > pastes || in.Typed != "" {
		tb.Errorf("the agent read %d pastes, %d Enters and %q", pastes, in.Enters, in.Typed)
	}
	all := r.records()
	r.checkCallbacks(all)
	of := func(t told) bool { return t.RequestHash == ids.TextHash(r.text) }
	// A refused send was sent again: what counts is the one that was not aborted.
	i := slices.IndexFunc(all, func(t told) bool { return of(t) && t.Stage != turn.Aborted })
	if i < 0 {
		i = slices.IndexFunc(all, of)
	}
	if i < 0 {
		if len(in.Raw) > 0 || got.turn != "" {
			tb.Errorf("there is no Turn; the Host was told %+v and the agent read %q", got, in.Raw)
		}
		return "no Turn"
	}
	t := all[i]
	if got.turn != "" && got.turn != string(t.ID) {
		tb.Errorf("the Host was told of %s, the Store has %s", got.turn, t.ID)
	}
	r.checkEnd(t, got, len(in.Raw) > 0, in.Enters > 0)
	end := fmt.Sprintf("%s/%s", t.Status, t.Stage)
	for _, d := range t.sent {
		end += fmt.Sprintf(" %s:%s", d.Event.Kind, d.Status)
	}
	return end
}

// checkEnd proves that the end of the Turn is what the pane shows, and that it was told.
func (r *round) checkEnd(t told, got reply, touched, entered bool) {
	tb := r.tb
	tb.Helper()
	if t.Stage == turn.Aborted {
		if touched || got.turn != "" {
			tb.Errorf("%s is aborted; the Host was told %+v and the agent was touched: %v", t.ID, got, touched)
		}
		return
	}
	// A call whose time is over is left to finish; it says then that nobody may repeat it
	// unseen.
	if got.code != "" && touched && !strings.Contains(got.said, `"retry":"check_first"`) {
		tb.Errorf("refused with %s, and yet typed: %s", got.code, got.said)
	}
	if len(t.sent) == 0 {
		tb.Errorf("%s ended as %s/%s (%s) in silence", t.ID, t.Status, t.Stage, t.Reason)
		return
	}
	last := t.sent[len(t.sent)-1]
	want := map[turn.Status]string{turn.Idle: "completion", turn.Failed: "failure", turn.Stalled: "stalled"}[t.Status]
	if last.Event.Kind != want {
		tb.Errorf("%s is %s (%s) and was told as %s", t.ID, t.Status, t.Reason, last.Event.Kind)
	}
	switch {
	case t.Status == turn.Idle && (string(last.Event.Body) != r.answer || !entered):
		tb.Errorf("%s was told %q, its answer is %q, Enter was pressed: %v", t.ID, last.Event.Body, r.answer, entered)
	case t.Status != turn.Idle && entered && !r.agentHurt:
		tb.Errorf("%s ended as %s/%s (%s) though its agent got the task and lives", t.ID, t.Status, t.Stage, t.Reason)
	}
}

// checkCallbacks proves that no event was accepted twice and that none is called accepted
// that was not.
func (r *round) checkCallbacks(all []told) {
	tb := r.tb
	tb.Helper()
	accepted := map[string]int{}
	log := r.host.Deliveries()
	for _, d := range log {
		if d.Mode == fakehost.Accept || d.Mode == fakehost.Held {
			accepted[d.Delivery]++
		}
	}
	known := map[string]outbox.Delivery{}
	for _, t := range all {
		for _, d := range t.sent {
			known[string(d.DeliveryID)] = d
			n := accepted[string(d.DeliveryID)]
			switch {
			case n > 1:
				tb.Errorf("the Host accepted %s of %s %d times", d.Event.Kind, t.ID, n)
			case n == 0 && d.Status == outbox.Delivered:
				tb.Errorf("%s of %s is called delivered; the Host never accepted it", d.Event.Kind, t.ID)
			case n == 1 && d.Status != outbox.Delivered && d.Status != outbox.Unproved:
				tb.Errorf("the Host accepted %s of %s, which is called %s (%s)", d.Event.Kind, t.ID, d.Status, d.LastError)
			}
		}
	}
	for _, d := range log {
		if k, ok := known[d.Delivery]; !ok || string(k.Event.Body) != d.Body {
			tb.Errorf("the Host heard %q, the Store says %q", d.Body, k.Event.Body)
		}
	}
}
