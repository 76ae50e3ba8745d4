package dispatch_test

import (
	"context"
	"testing"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/discover"
	"github.com/agent-knock-knock/akk/internal/turn"
	"github.com/agent-knock-knock/akk/internal/turn/dispatch"
)

// serving is the rig's agent with a server that takes every request and answers with what
// it is told to.
type serving struct {
	*adapter
	answer agent.Submission
}

func (s serving) Submit(context.Context, agent.Ref, turn.Anchor, string, string) (agent.Submission, error) {
	return s.answer, nil
}

// A server that takes a request and does not name the native turn has proved nothing that
// an end could be matched with: the records have to.
func TestAnAcceptanceWithoutANativeTurnIsLeftToTheRecords(t *testing.T) {
	r := newRig(t)
	c := r.Service.Config
	c.Scanner = discover.New([]string{r.agent.rec.Server.Socket()}, serving{r.agent, agent.Submission{ThreadID: "thread-1"}})
	r.Service = dispatch.New(c)
	r.agent.onNative = func(n agent.Native) agent.Native { n.Channel = turn.ChannelCodexSocket; return n }
	got, err := r.send("do it")
	if err != nil || got.Turn.Stage != turn.EnterDispatched {
		t.Fatalf("%+v %v", got.Turn, err)
	}
	r.observe(got.Turn, turn.Observation{Kind: turn.ObsAccepted, NativeTurnID: "n", Source: "rollout"})
	r.observe(got.Turn, turn.Observation{Kind: turn.ObsCompleted, NativeTurnID: "n", Source: "rollout", Text: "done"})
	if all := deliveries(t, r); len(all) != 1 || string(all[0].Event.Body) != "done" {
		t.Errorf("%+v", all)
	}
}
