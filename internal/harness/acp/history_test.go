package acp_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/harness/acp"
)

// Case 72, as Gemini does it: the history comes after the answer, and is no part of the
// next turn.
func TestHistoryThatComesAfterTheAnswerIsMarkedToo(t *testing.T) {
	byHand(t, func(r *rig, agent *hand) {
		loaded := make(chan error, 1)
		go func() {
			_, err := r.conn.LoadSession(r.t.Context(), r.sid, acp.SessionParams{CWD: "/proj"})
			loaded <- err
		}()
		said := func(text string) {
			agent.say(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"` + text + `"}}}}`)
		}
		agent.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{}}`, agent.next().ID))
		const chunks = 5
		for i := range chunks {
			<-time.After(100 * time.Millisecond)
			said("old")
			u := await[*acp.Update](r, i)
			equal(t, "history", fmt.Sprint(u.Replay, u.Turn), "true")
		}
		if err := <-loaded; err != nil {
			t.Fatal(err)
		}
		turn := r.start("msg-1", "hello")
		id := agent.next().ID
		said("new")
		u := await[*acp.Update](r, chunks)
		equal(t, "new", fmt.Sprint(u.Replay, u.Turn), "falsemsg-1")
		agent.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"end_turn"}}`, id))
		if _, err := r.wait(turn); err != nil {
			t.Error(err)
		}
	})
}

// The quiet of one session is not the end of another one's history.
func TestTheHistoryOfEachSessionEndsByItself(t *testing.T) {
	byHand(t, func(r *rig, agent *hand) {
		loaded := make(chan string, 2)
		load := func(id string) {
			go func() {
				_, err := r.conn.LoadSession(r.t.Context(), id, acp.SessionParams{CWD: "/proj"})
				equal(t, "load of "+id, err, nil)
				loaded <- id
			}()
			agent.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{}}`, agent.next().ID))
		}
		load("quiet")
		load("busy")
		for range 4 {
			<-time.After(150 * time.Millisecond)
			agent.say(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"busy","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"old"}}}}`)
		}
		equal(t, "first", <-loaded, "quiet")
		select {
		case id := <-loaded:
			t.Errorf("%s is open while its history comes", id)
		default:
		}
		equal(t, "then", <-loaded, "busy")
	})
}

// An agent that writes without an end holds nobody up for ever.
func TestHistoryWithoutAnEndIsWaitedForOnlySoLong(t *testing.T) {
	byHand(t, func(r *rig, agent *hand) {
		loaded := make(chan error, 1)
		began := time.Now()
		go func() {
			_, err := r.conn.LoadSession(r.t.Context(), r.sid, acp.SessionParams{CWD: "/proj"})
			loaded <- err
		}()
		agent.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{}}`, agent.next().ID))
		for {
			select {
			case err := <-loaded:
				equal(t, "load", err, nil)
				equal(t, "after", time.Since(began), 5*time.Second)
				return
			case <-time.After(150 * time.Millisecond):
				agent.say(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"x"}}}}`)
			}
		}
	})
}

// A session that could not be loaded has no history: its updates are what they are.
func TestARefusedLoadMarksNothing(t *testing.T) {
	byHand(t, func(r *rig, agent *hand) {
		loaded := make(chan error, 1)
		go func() {
			_, err := r.conn.LoadSession(r.t.Context(), r.sid, acp.SessionParams{CWD: "/proj"})
			loaded <- err
		}()
		agent.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32002,"message":"no"}}`, agent.next().ID))
		if err := <-loaded; !fault.Is(err, acp.RPCFailed) {
			t.Fatal(err)
		}
		agent.say(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"x"}}}}`)
		equal(t, "replay", await[*acp.Update](r, 0).Replay, false)
	})
}
