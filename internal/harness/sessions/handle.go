package sessions

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"sync"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/harness"
	"github.com/agent-knock-knock/akk/internal/harness/acp"
	"github.com/agent-knock-knock/akk/internal/redact"
)

// maxEventData bounds what one event keeps of an update as the agent sent it. The texts of
// a turn are kept whole elsewhere.
const maxEventData = 64 << 10

// Handle takes every event of the agent in the order of the wire. It stores what matters
// before it returns; the stream of words is stored a moment later.
func (l *live) Handle(e acp.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch e := e.(type) {
	case *acp.Update:
		l.update(e)
	case *acp.Request:
		l.request(e)
	case *acp.Withdrawn:
		if a := l.byRef(e.Ref); a != nil {
			l.endQuestion(a, harness.QuestionWithdrawn, "", harness.EventWithdrawn)
			_ = l.flush() // retried by the loop
		}
	case *acp.Completed:
		for _, a := range l.asked {
			if a.Kind == harness.AskURL && a.Elicitation == e.ElicitationID {
				if a.ref != 0 {
					_, _ = l.conn.Reply(a.ref, acp.Accept(nil)) // it may be answered already
				}
				l.endQuestion(a, harness.QuestionAnswered, harness.RoutedAccept, harness.EventAnswered)
				break
			}
		}
		_ = l.flush()
	case *acp.Settled:
		l.settled(e)
	case *acp.Notification:
		l.unsupported("notification "+e.Method, map[string]any{"method": e.Method, "params": clip(e.Params)})
		l.loginNotified(e.Params)
	case *acp.Odd:
		l.unsupported(string(e.Kind), map[string]any{"kind": e.Kind, "method": e.Method})
	case *acp.Stray:
		l.event(harness.EventStray, l.current(), map[string]any{"text": redact.Strict(e.Text), "bytes": e.Bytes}, false)
		l.loginSees(e.Text)
	case *acp.Closed:
		if !l.ending {
			problem := problemOf(e.Err)
			l.svc.group.Go(func(ctx context.Context) {
				l.awaitStart(ctx)
				l.lose(ctx, problem)
			})
		}
	}
}

// current is the message that something without a label belongs to in the log.
func (l *live) current() string {
	if l.turn == nil {
		return ""
	}
	return l.turn.msg.ID
}

func (l *live) byRef(ref acp.Ref) *asked {
	for _, a := range l.asked {
		if a.ref == ref && ref != 0 {
			return a
		}
	}
	return nil
}

func (l *live) unsupported(kind string, data any) {
	if t := l.turn; t != nil && !t.msg.State.Terminal() {
		t.transcript.Note(kind)
	}
	l.event(harness.EventOther, l.current(), data, false)
}

// update logs one update, and adds it to the turn that it belongs to.
func (l *live) update(u *acp.Update) {
	if u.Replay || u.SessionID != l.rec.AgentSessionID && l.rec.AgentSessionID != "" {
		if !u.Replay {
			l.unsupported("update of another session", map[string]any{"kind": u.Kind})
		}
		return
	}
	switch {
	case u.Config != nil:
		l.open.Config = u.Config
		l.refresh()
	case u.ModeID != "" && l.open.Modes != nil:
		l.open.Modes.Current = u.ModeID
	}
	t := l.turn
	ours := t != nil && t.msg.ID == u.Turn && !t.msg.State.Terminal()
	if t != nil && t.late && u.Turn == "" && u.Kind == acp.AgentMessage { // it waits for exactly this
		ours = true
	}
	kind, data := eventOf(u)
	if !ours && (u.Chunk != nil || u.Tool != nil || u.Plan != nil) {
		l.logged(harness.EventLate, "", data)
		return
	}
	message := ""
	if ours {
		message = t.msg.ID
		if err := t.transcript.Update(u); err != nil {
			l.logged(kind, message, data)
			l.finish(t, harness.MessageBroken{Problem: *problemOf(err)})
			l.cancelTurn(t, "", "")
			return
		}
	}
	l.logged(kind, message, data)
}

// logged appends an update to the log, words in as many events as they need.
func (l *live) logged(kind harness.EventKind, message string, data any) {
	d, words := data.(delta)
	for words && len(d.Delta) > maxDelta {
		var head string
		head, d.Delta = cut(d.Delta, maxDelta)
		l.event(kind, message, delta{d.ID, head}, false)
		data = d
	}
	l.event(kind, message, data, false)
}

// delta is words in the log.
type delta struct {
	ID    string `json:"message_id,omitempty"`
	Delta string `json:"delta"`
}

func eventOf(u *acp.Update) (harness.EventKind, any) {
	kind := harness.EventText
	if u.Kind == acp.AgentThought {
		kind = harness.EventThought
	}
	words := u.Kind == acp.AgentMessage || u.Kind == acp.AgentThought
	if words && u.Chunk != nil && u.Chunk.ContentType == "text" { // by far the most
		return kind, delta{u.Chunk.MessageID, u.Chunk.Text}
	}
	raw := map[string]any{"kind": u.Kind, "update": clip(u.Raw)}
	switch u.Kind {
	case acp.AgentMessage, acp.AgentThought:
		return kind, raw
	case acp.ToolCall, acp.ToolCallUpdate:
		return harness.EventTool, raw
	case acp.PlanUpdate:
		return harness.EventPlan, raw
	case acp.UsageUpdate:
		return harness.EventUsage, raw
	case acp.CommandsUpdate:
		return harness.EventCommands, raw
	case acp.ModeUpdate:
		return harness.EventMode, raw
	case acp.ConfigUpdate:
		return harness.EventOptions, raw
	case acp.SessionInfo:
		return harness.EventNotice, raw
	}
	return harness.EventOther, raw
}

// clip keeps raw JSON whole but for its secrets, or says how long it was.
func clip(raw json.RawMessage) any {
	if len(raw) == 0 {
		return nil
	}
	if len(raw) > maxEventData {
		return map[string]any{"truncated": true, "bytes": len(raw)}
	}
	return json.RawMessage(redact.JSON(raw))
}

// request is a question of the agent. It is stored before anybody can see it.
func (l *live) request(r *acp.Request) {
	if r.Answered {
		return // its turn is being cancelled
	}
	q := harness.Question{Style: harness.StyleElicitation, Kind: harness.AskInformation}
	t := l.turn
	ours := t != nil && t.msg.ID == r.Turn && !t.msg.State.Terminal()
	if ours {
		q.MessageID = t.msg.ID
	}
	switch r.Kind {
	case acp.KindPermission:
		q = permission(q, r.Permission)
		if ours { // some agents name the tool here and nowhere else
			t.transcript.Tool(r.Permission.Tool)
		}
	case acp.KindForm, acp.KindURL:
		q.Message, q.Schema = r.Elicitation.Message, r.Elicitation.Schema
		q.Title = "The agent asks for information"
		if r.Kind == acp.KindURL {
			q.Kind, q.URL, q.Elicitation, q.Schema = harness.AskURL, r.Elicitation.URL, r.Elicitation.ID, harness.OpenedSchema
			q.Title = "The agent asks you to open a page"
		}
	case acp.KindInformation:
		q.Style, q.Title, q.Message, q.Schema = harness.StylePlain, r.Information.Title, r.Information.Message, r.Information.Schema
	default: // nothing else was announced
		_, _ = l.conn.Reply(r.Ref, acp.Refuse(acp.CodeNoMethod, "not supported"))
		return
	}
	if !ours && (l.login == nil || !l.login.state.InFlight()) {
		// Nobody waits for an answer outside a turn and a login: an agent must not hang on it.
		_, _ = l.conn.Reply(r.Ref, acp.Dismiss())
		l.event(harness.EventOther, "", map[string]any{"method": r.Method, "dismissed": true}, false)
		return
	}
	l.newQuestion(q, r.Ref)
	if ours {
		t.move(l, harness.MessageAsked{})
		t.poke()
	} else {
		l.login.to(l, harness.AuthAsked)
	}
	_ = l.flush() // retried by the loop; until then nobody sees the question
}

func permission(q harness.Question, p *acp.Permission) harness.Question {
	q.Kind, q.Style, q.Permission = harness.AskPermission, harness.StylePermission, true
	q.Title = "The agent asks for permission"
	for _, o := range p.Options {
		q.Options = append(q.Options, harness.Option{ID: o.ID, Name: o.Name, Kind: o.Kind})
	}
	text := func(s *string) string {
		if s == nil {
			return ""
		}
		return *s
	}
	state := acp.ToolState{ID: p.Tool.ID, Title: text(p.Tool.Title), Kind: text(p.Tool.Kind), Status: text(p.Tool.Status)}
	if p.Tool.Locations != nil {
		state.Locations = *p.Tool.Locations
	}
	if p.Tool.Content != nil {
		state.Content = *p.Tool.Content
	}
	tool := toolOf(state)
	q.Message = tool.Title
	q.RawInput = p.Tool.RawInput
	q.Tool = &tool
	return q
}

// problemOf makes a storable problem of an agent's failure. The agent's words are redacted.
func problemOf(err error) *harness.Problem {
	p := harness.ProblemOf(err)
	p.Detail = harness.Detail{}
	for k, v := range harness.DetailOf(err) {
		p.Detail[k] = v
	}
	var rpc *acp.RPCError
	if errors.As(err, &rpc) {
		words := map[string]any{"code": rpc.Code, "message": redact.StrictLine(rpc.Message, 2048)}
		if len(rpc.Data) > 0 && len(rpc.Data) <= maxEventData {
			words["data"] = json.RawMessage(redact.JSON(rpc.Data))
		}
		p.Detail["acp"], p.Detail["retryable"] = words, rpc.Code == acp.CodeInternal
	}
	return p
}

var (
	urlForm    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`https?://[^\s"'<>\\\x00-\x1f\x7f]+`) })
	escapeForm = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile("\x1b\\[[0-9;?]*[A-Za-z]|\x1b\\][^\x07\x1b]*(?:\x07|\x1b\\\\)")
	})
)

// pageIn finds a page's address in what an agent prints, without the terminal's codes.
func pageIn(text string) string {
	return strings.TrimRight(urlForm().FindString(escapeForm().ReplaceAllString(text, "")), ".,;:)]}")
}

// exists reports that a record is there already.
func exists(err error) bool { return fault.Is(err, fault.AlreadyExists) }
