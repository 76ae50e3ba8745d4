package e2e

import (
	"os"
	"strings"
	"testing"

	"github.com/agent-knock-knock/akk/internal/testkit/faketmux"
	"github.com/agent-knock-knock/akk/internal/testkit/standin"
)

// An administrator who changes the Profile while a task runs stops its callback too: the
// program that it names now is not the one that was admitted, and neither is the old one.
func TestAProfileThatChangedWhileATaskRanRunsNoCallback(t *testing.T) { // C05, spec case 19
	w := newWorld(t, nil)
	p := w.agent(standin.Codex)
	c := w.start()
	got := working(t, w, c, "for the admitted program")
	doc, err := os.ReadFile(w.host.Profile)
	if err != nil {
		t.Fatal(err)
	}
	write := func(text string) {
		if err := os.WriteFile(w.host.Profile, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(strings.Replace(string(doc), `"revision": "1"`, `"revision": "2"`, 1))
	p.Release(t, "go")
	var s status
	faketmux.Wait(t, "the held callback", func() bool {
		s = statusOf(t, c, got.TurnID)
		return len(s.Callbacks) == 1 && s.Callbacks[0].LastError == "callback_profile_drift"
	}, func() string { return dump(s) })
	if s.Turn.Status != "idle" || s.Callbacks[0].Status != "pending" || s.Callbacks[0].Attempts != 0 || len(w.host.Deliveries()) != 0 {
		t.Errorf("%s, %d deliveries", dump(s), len(w.host.Deliveries()))
	}
	write(string(doc)) // it is what was admitted again
	waitCallback(t, c, got.TurnID, "delivered")
	if d := w.host.Deliveries(); len(d) != 1 || d[0].Body != "for the admitted program" {
		t.Errorf("%+v", d)
	}
}
