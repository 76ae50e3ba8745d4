package wire

import (
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/turn"
	monitorv1 "github.com/agent-knock-knock/akk/proto/akk/monitor/v1"
)

// WatchMode says how the task of a Terminal Watch is followed.
type WatchMode string

// The modes of a Terminal Watch.
const (
	WatchTask     WatchMode = "exact_task"        // by the records of one native task
	WatchActivity WatchMode = "terminal_activity" // by what screen and records say of the terminal
)

// MonitorSpec is everything a monitor needs to serve one Turn or one Terminal Watch. It is
// kept as long as that is watched, so that a monitor that died is replaced by one that
// sees the same.
type MonitorSpec struct {
	TurnID    ids.TurnID    // "" for a Watch
	WatchID   ids.WatchID   // "" for a Turn
	Mode      WatchMode     // of a Watch; "" for a Turn
	MessageID ids.MessageID // the request; another one is another watch
	Ref       agent.Ref
	Anchor    turn.Anchor
	// Pasted is the text as typed, to prove that it is still a draft. "" on a machine
	// channel, where no such proof exists.
	Pasted string
	// EnteredAt is when Enter was pressed; zero before that.
	EnteredAt time.Time
	// Accepted says that the acceptance is stored already; of a Watch by activity, that
	// activity was seen.
	Accepted bool
	// OpenPrompt is the fingerprint of the prompt that is stored as open, if any.
	OpenPrompt string
}

// Subject is the Turn or Watch that the monitor serves.
func (s MonitorSpec) Subject() ids.SubjectID {
	if s.WatchID != "" {
		return ids.SubjectID(s.WatchID)
	}
	return ids.SubjectID(s.TurnID)
}

func (s MonitorSpec) check() error {
	const op = "wire.monitor_spec"
	if (s.TurnID == "") == (s.WatchID == "") || s.Anchor.Agent == "" {
		return fault.New(fault.Invalid, op, "a monitor needs a turn id or a watch id, and an anchor with its agent")
	}
	if known := s.Mode == WatchTask || s.Mode == WatchActivity; known != (s.WatchID != "") {
		return fault.New(fault.Invalid, op, "%q is no mode of what is watched", shown(string(s.Mode)))
	}
	if s.WatchID != "" && (s.Pasted != "" || !s.EnteredAt.IsZero()) {
		return fault.New(fault.Invalid, op, "nothing was typed for a Watch")
	}
	if s.Ref.Process.PID <= 0 || s.Ref.Endpoint.PaneID == "" {
		return fault.New(fault.Invalid, op, "a monitor needs the agent's process and pane")
	}
	if len(s.Pasted) > maxPasted {
		return fault.New(fault.Invalid, op, "the request has %d bytes, allowed are %d", len(s.Pasted), maxPasted)
	}
	if !utf8.ValidString(s.Pasted) {
		return fault.New(fault.Invalid, op, "the request is not UTF-8 text")
	}
	if len(s.Anchor.Candidates) > maxEntries || len(s.Anchor.Extra) > maxEntries {
		return fault.New(fault.Invalid, op, "the anchor has more than %d entries", maxEntries)
	}
	text := map[string]string{
		"turn_id": string(s.TurnID), "watch_id": string(s.WatchID), "message_id": string(s.MessageID), "pane_id": s.Ref.Endpoint.PaneID,
		"pane_birth": s.Ref.Endpoint.PaneBirth, "birth": s.Ref.Process.Birth, "agent": s.Anchor.Agent,
		"channel": string(s.Anchor.Channel), "thread_id": s.Anchor.ThreadID, "request_hash": s.Anchor.RequestHash,
		"client_id": s.Anchor.ClientID, "open_prompt": s.OpenPrompt,
	}
	for k, v := range s.Anchor.Extra {
		text["extra."+k] = v
	}
	return checkText(op, text)
}

// shown makes text that only people read fit for proto3.
func shown(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

func specToProto(s MonitorSpec) *monitorv1.WatchRequest {
	return &monitorv1.WatchRequest{
		TurnId: string(s.TurnID), MessageId: string(s.MessageID),
		Ref: &monitorv1.AgentRef{
			Endpoint: &monitorv1.Endpoint{
				Socket: []byte(s.Ref.Endpoint.Socket), PaneId: s.Ref.Endpoint.PaneID, PanePid: int64(s.Ref.Endpoint.PanePID),
				PaneBirth: s.Ref.Endpoint.PaneBirth, Target: shown(s.Ref.Endpoint.Target),
			},
			Process: &monitorv1.Incarnation{Pid: int64(s.Ref.Process.PID), Birth: s.Ref.Process.Birth},
			Cwd:     []byte(s.Ref.Cwd), Title: shown(s.Ref.Title),
		},
		Anchor: anchorToProto(s.Anchor), Pasted: s.Pasted, EnteredAt: timeToProto(s.EnteredAt),
		Accepted: s.Accepted, OpenPrompt: s.OpenPrompt, WatchId: string(s.WatchID), WatchMode: string(s.Mode),
	}
}

func specFromProto(p *monitorv1.WatchRequest) MonitorSpec {
	e := p.GetRef().GetEndpoint()
	return MonitorSpec{
		TurnID: ids.TurnID(p.GetTurnId()), MessageID: ids.MessageID(p.GetMessageId()),
		Ref: agent.Ref{
			Endpoint: turn.Endpoint{
				Socket: string(e.GetSocket()), PaneID: e.GetPaneId(), PanePID: int(e.GetPanePid()),
				PaneBirth: e.GetPaneBirth(), Target: e.GetTarget(),
			},
			Process: turn.Incarnation{PID: int(p.GetRef().GetProcess().GetPid()), Birth: p.GetRef().GetProcess().GetBirth()},
			Cwd:     string(p.GetRef().GetCwd()), Title: p.GetRef().GetTitle(),
		},
		Anchor: anchorFromProto(p.GetAnchor()), Pasted: p.GetPasted(), EnteredAt: timeFromProto(p.GetEnteredAt()),
		Accepted: p.GetAccepted(), OpenPrompt: p.GetOpenPrompt(), WatchID: ids.WatchID(p.GetWatchId()), Mode: WatchMode(p.GetWatchMode()),
	}
}

func anchorToProto(a turn.Anchor) *monitorv1.Anchor {
	p := &monitorv1.Anchor{
		Agent: a.Agent, Channel: string(a.Channel), ThreadId: a.ThreadID, Log: markToProto(a.Log),
		RequestHash: a.RequestHash, ClientId: a.ClientID, Extra: a.Extra,
	}
	for i := range a.Candidates {
		p.Candidates = append(p.Candidates, markToProto(&a.Candidates[i]))
	}
	return p
}

func anchorFromProto(p *monitorv1.Anchor) turn.Anchor {
	a := turn.Anchor{
		Agent: p.GetAgent(), Channel: turn.Channel(p.GetChannel()), ThreadID: p.GetThreadId(), Log: markFromProto(p.GetLog()),
		RequestHash: p.GetRequestHash(), ClientID: p.GetClientId(), Extra: p.GetExtra(),
	}
	for _, m := range p.GetCandidates() {
		a.Candidates = append(a.Candidates, *markFromProto(m))
	}
	return a
}

func markToProto(m *turn.LogMark) *monitorv1.LogMark {
	if m == nil {
		return nil
	}
	return &monitorv1.LogMark{Path: []byte(m.Path), Device: m.Device, Inode: m.Inode, Offset: m.Offset}
}

func markFromProto(p *monitorv1.LogMark) *turn.LogMark {
	if p == nil {
		return nil
	}
	return &turn.LogMark{Path: string(p.Path), Device: p.Device, Inode: p.Inode, Offset: p.Offset}
}

func timeToProto(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

func timeFromProto(p *timestamppb.Timestamp) time.Time {
	if p == nil {
		return time.Time{}
	}
	return p.AsTime()
}
