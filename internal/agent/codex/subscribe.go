package codex

import (
	"context"
	"encoding/json"
	"time"

	"github.com/agent-knock-knock/akk/internal/agent/codex/appserver"
	"github.com/agent-knock-knock/akk/internal/agent/codex/known"
	"github.com/agent-knock-knock/akk/internal/agent/codex/rollout"
	"github.com/agent-knock-knock/akk/internal/turn"
)

const (
	// reconnectMin and reconnectMax bound the pause before the server is dialled again.
	reconnectMin, reconnectMax = 500 * time.Millisecond, 10 * time.Second
	// resumeRetry is the pause before a thread without rollout is subscribed to again.
	resumeRetry = time.Second
	// maxEarly bounds the messages that wait for the acceptance.
	maxEarly = 64
)

// serverEvent is one thing that the subscription saw.
type serverEvent struct {
	connected, lost bool
	status          appserver.Status
	msg             appserver.Message
}

// subscribe keeps one connection to the server, subscribed to the thread, until ctx ends.
// It never answers a request of the server: the human's terminal is asked too, and a
// client that stays silent blocks nobody (seen on 0.171).
func (a *Adapter) subscribe(ctx context.Context, socket, thread string, out chan<- serverEvent) {
	pause := reconnectMin
	for ctx.Err() == nil {
		start := a.clock.Now()
		a.connectAndRead(ctx, socket, thread, out)
		if a.clock.Now().Sub(start) > reconnectMax {
			pause = reconnectMin
		}
		c, stop := a.clock.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-c:
		}
		stop()
		pause = min(2*pause, reconnectMax)
	}
}

func (a *Adapter) connectAndRead(ctx context.Context, socket, thread string, out chan<- serverEvent) {
	put := func(e serverEvent) {
		select {
		case out <- e:
		case <-ctx.Done():
		}
	}
	dctx, cancel := context.WithTimeout(ctx, appserver.ConnectTimeout)
	s, err := appserver.Dial(dctx, socket)
	cancel()
	if err != nil {
		return
	}
	defer s.Close()
	s.Other = func(m appserver.Message) { put(serverEvent{msg: m}) }
	info, err := s.ReadThread(ctx, thread)
	if err != nil {
		if rpc := (*appserver.Error)(nil); !asRPC(err, &rpc) {
			return
		}
		info.Status.Type = known.StatusNotLoaded
	}
	put(serverEvent{connected: true, status: info.Status})
	defer put(serverEvent{lost: true})
	// A thread that was never prompted cannot be subscribed to; its status changes are
	// broadcast, and its first one is the time to try again.
	ok := false
	var tried time.Time
	for {
		if now := a.clock.Now(); !ok && now.Sub(tried) >= resumeRetry {
			tried = now
			var got appserver.ThreadAnswer
			err := s.Call(ctx, known.MThreadResume, map[string]any{"threadId": thread, "excludeTurns": true}, &got)
			if rpc := (*appserver.Error)(nil); err != nil && !asRPC(err, &rpc) {
				return
			}
			if ok = err == nil; ok {
				put(serverEvent{connected: true, status: got.Thread.Status})
			}
		}
		m, err := s.Recv(ctx)
		if err != nil {
			return
		}
		put(serverEvent{msg: m})
		if p := (params{}); m.Method == known.NStatusChanged && json.Unmarshal(m.Params, &p) == nil && p.ThreadID == thread {
			tried = time.Time{} // it may have its first turn now, or ask something
		}
	}
}

// server takes one event of the subscription.
func (f *follower) server(e serverEvent) {
	switch {
	case e.lost:
		f.connected = false
		f.asked = nil // what is still open is told again by the next connection
		if f.t.acc != nil && !f.gone {
			o := f.observation(turn.ObsTrouble, sourceSocket)
			o.Code, o.Detail = string(CodeServerLost), "the connection to the agent's server ended; its rollout is followed on"
			f.t.out = append(f.t.out, o)
		}
	case e.connected:
		f.connected, f.status, f.ticks = true, e.status.Type, 0
	default:
		f.notice(e.msg)
	}
}

// params holds what is read of a notification or request of the server.
type params struct {
	ThreadID  string           `json:"threadId"`
	TurnID    string           `json:"turnId"`
	RequestID json.RawMessage  `json:"requestId"`
	ItemID    string           `json:"itemId"`
	Status    appserver.Status `json:"status"`
	Item      serverItem       `json:"item"`
	Turn      struct {
		ID     string       `json:"id"`
		Status string       `json:"status"`
		Items  []serverItem `json:"items"`
		Error  *struct {
			Message string          `json:"message"`
			Info    json.RawMessage `json:"codexErrorInfo"`
		} `json:"error"`
	} `json:"turn"`
}

type serverItem struct {
	ID       string          `json:"id"`
	Type     string          `json:"type"`
	Changes  []fileChange    `json:"changes"`
	ClientID string          `json:"clientId"`
	Text     string          `json:"text"`
	Phase    string          `json:"phase"`
	Content  json.RawMessage `json:"content"`
}

// notice folds one appserver.Message of the server. Messages of other threads (the title thread,
// sub-agents, other panes) are not ours.
func (f *follower) notice(m appserver.Message) {
	var p params
	if json.Unmarshal(m.Params, &p) != nil || p.ThreadID != f.anc.ThreadID {
		return
	}
	t := f.t
	f.heard = true
	if m.Method == known.NItemStarted && p.Item.Type == "fileChange" {
		f.edits.note(p.Item)
	}
	if t.acc == nil && (len(m.ID) > 0 || m.Method == known.NResolved || m.Method == known.NTurnCompleted) {
		// It may be of our turn, whose acceptance the file is about to show.
		if len(f.early) < maxEarly {
			f.early = append(f.early, m)
		}
		return
	}
	if len(m.ID) > 0 {
		if req, ok := known.ServerRequests[m.Method]; ok && p.TurnID == t.acc.turnID {
			prompt := requestPrompt(f.ref.Endpoint, m, req)
			if req.Edits && !f.edits.describe(p.ItemID, prompt) && !f.gone {
				return // the terminal shows what the server did not tell here
			}
			if f.asked.open(prompt) {
				f.tell(prompt)
			}
		}
		return
	}
	switch m.Method {
	case known.NStatusChanged:
		f.status = p.Status.Type
	case known.NResolved:
		told, next := f.asked.resolve(string(p.RequestID))
		if !told {
			break
		}
		o := f.observation(turn.ObsPromptCleared, sourceSocket)
		o.Detail = "request " + string(p.RequestID) + " was answered"
		t.out = append(t.out, o)
		if next != nil {
			f.tell(next)
		}
	case known.NItemStarted, known.NItemCompleted:
		t.serverItem(p)
	case known.NTurnCompleted:
		t.serverEnd(p)
	}
}

// tell reports a request of the server as the open prompt.
func (f *follower) tell(p *turn.Prompt) {
	o := f.observation(turn.ObsPrompt, sourceSocket)
	o.Prompt = p
	f.t.out = append(f.t.out, o)
}

// serverItem takes a prompt as acceptance and remembers texts for the end.
func (t *tracker) serverItem(p params) {
	switch it := p.Item; it.Type {
	case "userMessage":
		text := rollout.ContentText(it.Content)
		if t.acc == nil && !t.watch && t.matches(it.ClientID, text, p.ThreadID) {
			t.accept(claim{file: noFile, turnID: p.TurnID, thread: p.ThreadID}, sourceSocket, nil, "")
		}
	case "agentMessage":
		if t.acc != nil && t.acc.turnID == p.TurnID && it.Text != "" {
			t.socketText = it.Text
		}
	case "plan":
		if t.acc != nil && t.acc.turnID == p.TurnID {
			t.socketPlan = it.Text
		}
	}
}

// serverEnd takes the end of our turn. A well-ended turn without text waits one tick for
// the file, which may have it.
func (t *tracker) serverEnd(p params) {
	if t.acc == nil || p.Turn.ID != t.acc.turnID || t.end != nil {
		return
	}
	o := turn.Observation{}
	t.stamp(&o, sourceSocket, nil)
	text := ""
	for _, it := range p.Turn.Items {
		switch {
		case it.Type == "agentMessage" && it.Text != "":
			text = it.Text
		case it.Type == "plan" && text == "":
			text = it.Text
		}
	}
	for _, s := range []string{t.socketPlan, t.socketText} {
		if text == "" {
			text = s
		}
	}
	switch p.Turn.Status {
	case "completed":
		o.Kind = turn.ObsCompleted
	case "failed":
		o.Kind, o.Code = turn.ObsFailed, "agent_error"
		if e := p.Turn.Error; e != nil {
			o.Code, o.Detail = snake(rollout.ErrorCode(e.Info)), rollout.OneLine(e.Message)
		}
	case "interrupted":
		o.Kind, o.Code, o.Detail = turn.ObsInterrupted, "interrupted", "the turn was aborted: interrupted"
	default:
		return
	}
	rollout.SetText(&o, text)
	if o.Kind == turn.ObsCompleted && text == "" {
		t.bare = &o
		return
	}
	if !t.clash {
		t.end = &o
	}
}

// snake writes a server's camelCase error word as the rollout does.
func snake(s string) string {
	var b []byte
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= 'A' && c <= 'Z' {
			if i > 0 {
				b = append(b, '_')
			}
			c += 'a' - 'A'
		}
		b = append(b, c)
	}
	return string(b)
}
