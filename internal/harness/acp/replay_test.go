package acp_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/harness/acp"
	"github.com/agent-knock-knock/akk/internal/testkit/golden"
)

// The traces are what real agents and a client said to each other, in order: one line is
// what the client sent, what the agent sent, or a stray line of the agent. Long texts of
// the agents are cut. The client's part is done by a Conn, the agent's by the test.

type traceLine struct {
	Client, Agent json.RawMessage
	Stray         string
}

type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

func parse(raw []byte) message {
	var m message
	_ = json.Unmarshal(raw, &m)
	return m
}

func TestEveryTraceIsReadWhole(t *testing.T) {
	files, err := filepath.Glob("testdata/traces/*.jsonl")
	if err != nil || len(files) != 50 {
		t.Fatal(len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".jsonl")
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var report string
			synctest.Test(t, func(t *testing.T) { report = replay(t, text) })
			golden.Equal(t, filepath.Join("testdata", "golden", name+".txt"), report)
		})
	}
}

// stage is one replay.
type stage struct {
	*rig
	agent   *bufio.Reader // what the Conn sends
	toConn  io.Writer
	ids     map[string]json.RawMessage // the trace's id of a call → ours
	results map[string]chan called     // by the trace's id
	answers map[string]message         // by the agent's id: what the Conn answered
	open    map[string]string          // by session: label of the open turn
	byCall  map[string]string          // trace id of a prompt → session
	turns   []string
	refused map[string]bool // the agent's ids of requests that must not reach the Handler
}

type called struct {
	result json.RawMessage
	err    error
}

func replay(t *testing.T, text []byte) string {
	toAgent, fromConn := io.Pipe()
	toConn, fromAgent := io.Pipe()
	s := &stage{
		rig: newRig(t), toConn: fromAgent, ids: map[string]json.RawMessage{}, results: map[string]chan called{},
		answers: map[string]message{}, open: map[string]string{}, byCall: map[string]string{}, refused: map[string]bool{},
	}
	lines := make(chan []byte, 1000)
	go func() {
		defer close(lines)
		in := bufio.NewReader(toAgent)
		for {
			line, err := in.ReadBytes('\n')
			if err != nil {
				return
			}
			lines <- line
		}
	}()
	s.conn = acp.Open(t.Context(), toConn, fromConn, s.rig, acp.Options{})
	n := 0
	for _, raw := range bytes.Split(bytes.TrimSpace(text), []byte("\n")) {
		var line traceLine
		if err := json.Unmarshal(raw, &line); err != nil {
			t.Fatal(err)
		}
		n++
		switch {
		case line.Client != nil:
			s.client(parse(line.Client), lines)
		case line.Agent != nil:
			s.agentSays(line.Agent, parse(line.Agent))
		default:
			s.write([]byte(line.Stray))
			equal(t, "stray", last[*acp.Stray](s.rig).Text, strings.ToValidUTF8(line.Stray, ""))
		}
		s.drain(lines)
		if t.Failed() {
			t.Fatalf("at line %d: %s", n, raw)
		}
	}
	s.conn.Close()
	for range lines { // until the writer's end is closed
	}
	_ = fromAgent.Close()
	s.checkLast()
	return s.report()
}

func (s *stage) write(line []byte) {
	if _, err := s.toConn.Write(append(slices.Clone(line), '\n')); err != nil {
		s.t.Fatal(err)
	}
	synctest.Wait()
}

// drain takes what the Conn sent and remembers its answers.
func (s *stage) drain(lines <-chan []byte) (calls []message) {
	synctest.Wait()
	for {
		select {
		case line := <-lines:
			m := parse(line)
			switch {
			case m.Method == "":
				s.answers[string(m.ID)] = m
			default:
				calls = append(calls, m)
			}
		default:
			return calls
		}
	}
}

// client does what the trace's client did.
func (s *stage) client(m message, lines <-chan []byte) {
	if m.Method == "" {
		s.reply(m)
		return
	}
	if m.ID == nil {
		if m.Method == "session/cancel" {
			var p struct{ SessionID string }
			_ = json.Unmarshal(m.Params, &p)
			if _, err := s.conn.Cancel(p.SessionID); err != nil {
				s.t.Fatal(err)
			}
			calls := s.drain(lines)
			equal(s.t, "cancel", len(calls) == 1 && calls[0].Method == "session/cancel", true)
		}
		return
	}
	done := make(chan called, 1)
	s.results[string(m.ID)] = done
	s.call(m, done)
	calls := s.drain(lines)
	if len(calls) != 1 {
		s.t.Fatalf("%d lines were sent for %s", len(calls), m.Method)
	}
	sent := calls[0]
	equal(s.t, "method", sent.Method, m.Method)
	if m.Method != "initialize" { // the traces also ask for other versions
		sameJSON(s.t, "params of "+m.Method, sent.Params, m.Params)
	}
	s.ids[string(m.ID)] = sent.ID
}

// call uses the Conn's own method where the trace's parameters have its shape.
func (s *stage) call(m message, done chan called) {
	ctx := s.t.Context()
	var p struct {
		SessionID, ModeID, ModelID, ConfigID, MethodID string
		CWD                                            *string
		MCPServers                                     *[]json.RawMessage
		Value                                          any
		Prompt                                         []json.RawMessage
		Meta                                           json.RawMessage `json:"_meta"`
		ClientCapabilities                             struct {
			FS          struct{ ReadTextFile, WriteTextFile bool }
			Terminal    bool
			Elicitation map[string]json.RawMessage
			Auth        struct{ Terminal bool }
		}
	}
	_ = json.Unmarshal(m.Params, &p)
	finish := func(raw json.RawMessage, err error) { done <- called{raw, err} }
	params := acp.SessionParams{}
	if p.CWD != nil {
		params.CWD = *p.CWD
	}
	typed := p.CWD != nil && p.MCPServers != nil && len(*p.MCPServers) == 0 && p.Meta == nil
	switch {
	case m.Method == "initialize":
		caps := acp.ClientCaps{
			ReadFile: p.ClientCapabilities.FS.ReadTextFile, WriteFile: p.ClientCapabilities.FS.WriteTextFile,
			Terminal: p.ClientCapabilities.Terminal, TerminalAuth: p.ClientCapabilities.Auth.Terminal,
			ElicitForm: p.ClientCapabilities.Elicitation["form"] != nil, ElicitURL: p.ClientCapabilities.Elicitation["url"] != nil,
		}
		go func() {
			in, err := s.conn.Initialize(ctx, acp.Info{Name: "replay", Version: "1"}, caps)
			finish(in.Raw, err)
		}()
	case m.Method == "session/new" && typed:
		go func() {
			session, err := s.conn.NewSession(ctx, params)
			finish(session.Raw, err)
		}()
	case m.Method == "session/load" && typed:
		go func() {
			session, err := s.conn.LoadSession(ctx, p.SessionID, params)
			finish(session.Raw, err)
		}()
	case m.Method == "session/resume" && typed:
		go func() {
			session, err := s.conn.ResumeSession(ctx, p.SessionID, params)
			finish(session.Raw, err)
		}()
	case m.Method == "session/prompt":
		label := fmt.Sprintf("turn %d", len(s.turns)+1)
		turn, err := s.conn.StartPrompt(p.SessionID, label, p.Prompt)
		if fault.Is(err, acp.Busy) { // the probes did what we never do
			go func() { finish(s.conn.Call(ctx, m.Method, m.Params)) }()
			return
		}
		if err != nil {
			s.t.Fatal(err)
		}
		s.turns = append(s.turns, label)
		s.open[p.SessionID], s.byCall[string(m.ID)] = label, p.SessionID
		go func() {
			res, err := turn.Wait(ctx)
			finish(res.Raw, err)
		}()
	case m.Method == "session/set_mode":
		go func() { finish(json.RawMessage(`{}`), s.conn.SetMode(ctx, p.SessionID, p.ModeID)) }()
	case m.Method == "session/set_model":
		go func() { finish(json.RawMessage(`{}`), s.conn.SetModel(ctx, p.SessionID, p.ModelID)) }()
	case m.Method == "authenticate":
		go func() { finish(json.RawMessage(`{}`), s.conn.Authenticate(ctx, p.MethodID, p.Meta)) }()
	default:
		go func() { finish(s.conn.Call(ctx, m.Method, m.Params)) }()
	}
}

// reply gives the answer of the trace's client, unless the Conn has given it already.
func (s *stage) reply(want message) {
	if _, done := s.answers[string(want.ID)]; !done {
		var ref acp.Ref
		requests := all[*acp.Request](s.rig)
		for _, r := range requests {
			if slices.Contains(s.conn.Pending(r.SessionID), r.Ref) {
				ref = r.Ref
				break
			}
		}
		if _, err := s.conn.Reply(ref, answerOf(want)); err != nil {
			s.t.Fatal(err)
		}
	}
	synctest.Wait()
}

func answerOf(m message) acp.Answer {
	var r struct {
		Outcome struct{ Outcome, OptionID string }
		Action  string
		Content json.RawMessage
	}
	_ = json.Unmarshal(m.Result, &r)
	var e struct {
		Code    int
		Message string
	}
	switch {
	case m.Error != nil:
		_ = json.Unmarshal(m.Error, &e)
		return acp.Refuse(e.Code, e.Message)
	case r.Outcome.Outcome == "selected":
		return acp.Select(r.Outcome.OptionID)
	case r.Outcome.Outcome == "cancelled", r.Action == "cancel":
		return acp.Dismiss()
	case r.Action == "decline":
		return acp.Reject()
	case r.Action == "accept":
		return acp.Accept(r.Content)
	}
	return acp.Result(m.Result)
}

// agentSays sends a line of the agent, with our ids for its answers, and checks what
// becomes of it.
func (s *stage) agentSays(raw json.RawMessage, m message) {
	before := len(all[acp.Event](s.rig))
	switch {
	case m.Method != "":
		s.write(raw)
		s.checkEvent(m, all[acp.Event](s.rig)[before:])
	case string(m.ID) == "null" || s.ids[string(m.ID)] == nil:
		s.write(raw)
		equal(s.t, "odd", last[*acp.Odd](s.rig).Kind, acp.OddUnknownID)
	default:
		var full map[string]json.RawMessage
		_ = json.Unmarshal(raw, &full)
		full["id"] = s.ids[string(m.ID)]
		line, _ := json.Marshal(full)
		delete(s.ids, string(m.ID))
		delete(s.open, s.byCall[string(m.ID)])
		s.write(line)
		s.checkAnswer(m, <-s.results[string(m.ID)])
	}
}

func (s *stage) checkAnswer(m message, got called) {
	var rpc *acp.RPCError
	switch {
	case m.Error != nil:
		var want struct {
			Code    int
			Message string
			Data    json.RawMessage
		}
		_ = json.Unmarshal(m.Error, &want)
		if !errors.As(got.err, &rpc) || rpc.Code != want.Code || rpc.Message != want.Message {
			s.t.Errorf("got %v, want %s", got.err, m.Error)
			return
		}
		sameJSON(s.t, "data", rpc.Data, want.Data)
		equal(s.t, "login", fault.Is(got.err, acp.AuthRequired), want.Code == -32000)
	case fault.Is(got.err, acp.WrongVersion):
		if v := parseVersion(m.Result); v == 1 {
			s.t.Error("version 1 was refused")
		}
	case got.err != nil:
		s.t.Error(got.err)
	case string(got.result) != `{}`:
		sameJSON(s.t, "result", got.result, m.Result)
	}
}

func parseVersion(raw json.RawMessage) int {
	var r struct{ ProtocolVersion int }
	_ = json.Unmarshal(raw, &r)
	return r.ProtocolVersion
}

// checkEvent wants exactly one event for a request or notification, with everything in it.
func (s *stage) checkEvent(m message, events []acp.Event) {
	if len(events) != 1 {
		s.t.Errorf("%d events came of %s", len(events), m.Method)
		return
	}
	var p struct {
		SessionID string
		Update    json.RawMessage
	}
	_ = json.Unmarshal(m.Params, &p)
	switch e := events[0].(type) {
	case *acp.Update:
		equal(s.t, "method", m.Method, "session/update")
		equal(s.t, "session", e.SessionID, p.SessionID)
		equal(s.t, "turn", e.Turn, s.open[p.SessionID])
		sameJSON(s.t, "update", e.Raw, p.Update)
		s.checkView(e)
	case *acp.Request:
		sameJSON(s.t, "params", e.Params, m.Params)
		equal(s.t, "turn", e.Turn, s.open[p.SessionID])
	case *acp.Notification:
		equal(s.t, "method", e.Method, m.Method)
		if m.Params != nil || e.Params != nil {
			sameJSON(s.t, "params", e.Params, m.Params)
		}
	case *acp.Odd:
		equal(s.t, "refused", e.Kind, acp.OddRefused)
		equal(s.t, "method", e.Method, m.Method)
	case *acp.Withdrawn:
		equal(s.t, "method", m.Method, "$/cancel_request")
	default:
		s.t.Errorf("%s became %T", m.Method, e)
	}
}

// checkView compares the typed view with what is read here in another way.
func (s *stage) checkView(u *acp.Update) {
	var want map[string]any
	if err := json.Unmarshal(u.Raw, &want); err != nil {
		s.t.Fatal(err)
	}
	equal(s.t, "kind", string(u.Kind), fmt.Sprint(want["sessionUpdate"]))
	switch u.Kind {
	case acp.AgentMessage, acp.AgentThought, acp.UserMessage:
		content := want["content"].(map[string]any)
		id, _ := want["messageId"].(string)
		equal(s.t, "message id", u.Chunk.MessageID, id)
		if content["type"] == "text" {
			equal(s.t, "text", u.Chunk.Text, content["text"].(string))
		}
	case acp.ToolCall, acp.ToolCallUpdate:
		equal(s.t, "tool", u.Tool.ID, want["toolCallId"].(string))
		for key, got := range map[string]*string{"title": u.Tool.Title, "status": u.Tool.Status, "kind": u.Tool.Kind} {
			if text, there := want[key].(string); there != (got != nil) || there && text != *got {
				s.t.Errorf("%s of a tool: %v", key, want[key])
			}
		}
		if list, there := want["content"].([]any); there && len(list) != len(*u.Tool.Content) {
			s.t.Errorf("content: %v", list)
		}
	case acp.ConfigUpdate:
		equal(s.t, "options", len(u.Config), len(want["configOptions"].([]any)))
	case acp.CommandsUpdate:
		equal(s.t, "commands", len(u.Commands), len(want["availableCommands"].([]any)))
	case acp.UsageUpdate:
		equal(s.t, "used", float64(u.Usage.Used), want["used"].(float64))
	case acp.SessionInfo, acp.ModeUpdate, acp.PlanUpdate:
	case "notice", "state_update": // of the draft version 2: raw alone
		equal(s.t, "view", u.Chunk == nil && u.Tool == nil, true)
	default:
		s.t.Errorf("a kind without a view: %s", u.Kind)
	}
}

// report is the replay as a person reads it.
func (s *stage) report() string {
	var b strings.Builder
	for _, e := range all[acp.Event](s.rig) {
		switch e := e.(type) {
		case *acp.Request:
			fmt.Fprintf(&b, "question %s turn=%q answered=%t\n", e.Kind, e.Turn, e.Answered)
		case *acp.Settled:
			fmt.Fprintf(&b, "settled %s: %s %s\n", e.Turn, e.Result.StopReason, fault.CodeOf(e.Err))
		case *acp.Notification:
			fmt.Fprintf(&b, "notification %s\n", e.Method)
		case *acp.Odd:
			fmt.Fprintf(&b, "odd %s %s\n", e.Kind, e.Method)
		case *acp.Stray:
			fmt.Fprintf(&b, "stray %d bytes, pages %q\n", e.Bytes, acp.Pages(e.Text))
		case *acp.Update:
			if e.Turn == "" && e.Kind != acp.CommandsUpdate {
				fmt.Fprintf(&b, "outside a turn: %s replay=%t\n", e.Kind, e.Replay)
			}
		case *acp.Withdrawn:
			b.WriteString("withdrawn\n")
		}
	}
	for _, label := range s.turns {
		sum := s.transcript(label)
		fmt.Fprintf(&b, "%s\n  text %q\n  messages %q\n", label, sum.Text, texts(sum))
		for _, tool := range sum.Tools {
			fmt.Fprintf(&b, "  tool %q %s %s output %q\n", tool.Title, tool.Kind, tool.Status, tool.Output)
		}
		if len(sum.ChangedFiles) > 0 {
			fmt.Fprintf(&b, "  changed %q\n", sum.ChangedFiles)
		}
		if len(sum.Unsupported) > 0 {
			fmt.Fprintf(&b, "  unsupported %q\n", sum.Unsupported)
		}
	}
	return b.String()
}
