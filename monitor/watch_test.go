package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/turn"
	"github.com/agent-knock-knock/akk/internal/wire"
)

// watchOf makes a Watch of the thread of a Turn's spec: nothing was typed, and the task is
// whatever runs.
func watchOf(s wire.MonitorSpec) wire.MonitorSpec {
	s.TurnID, s.MessageID, s.Pasted, s.EnteredAt = "", "", "", time.Time{}
	s.WatchID, s.Mode = "terminal-watch-1", wire.WatchTask
	s.Anchor.RequestHash, s.Anchor.ClientID = "", ""
	s.Anchor.Extra = map[string]string{"home": s.Anchor.Extra["home"], "watch": "1"}
	return s
}

func TestAMonitorThatWasKilledIsReplacedByOneThatSeesTheSameTask(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	o, h := bridge(t, self)
	p, _ := liveAgent(t)
	spec, rollout := codexTurn(t, p)
	write(t, rollout, `{"timestamp":"2026-12-01T22:00:20.642Z","type":"event_msg","payload":{"type":"task_started","turn_id":"t1"}}`)
	first := startMonitor(t, o, h, watchOf(spec))
	if got := await(t, first, turn.ObsAccepted); got.NativeTurnID != "t1" {
		t.Fatalf("%+v", got)
	}
	first.Kill()
	write(t, rollout, `{"timestamp":"2026-12-01T22:00:21.642Z","type":"event_msg","payload":{"type":"task_complete","turn_id":"t1","last_agent_message":"`+strings.Repeat("x", 100)+`"}}`)
	second := startMonitor(t, o, h, watchOf(spec))
	if got := await(t, second, turn.ObsCompleted); got.NativeTurnID != "t1" || len(got.Text) != 100 {
		t.Errorf("%+v", got)
	}
}
