package wire

import (
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/turn"
	monitorv1 "github.com/agent-knock-knock/akk/proto/akk/monitor/v1"
)

// checkObservation is made on both sides: a worker is trusted no more than its bytes.
func checkObservation(o turn.Observation) error {
	const op = "wire.observation"
	if o.Kind == "" {
		return fault.New(fault.Invalid, op, "an observation needs a kind")
	}
	if len(o.Text) > turn.MaxText {
		return fault.New(fault.Invalid, op, "the text has %d bytes, allowed are %d", len(o.Text), turn.MaxText)
	}
	if o.Prompt != nil && len(o.Prompt.Options) > maxEntries {
		return fault.New(fault.Invalid, op, "the prompt has %d options, allowed are %d", len(o.Prompt.Options), maxEntries)
	}
	return nil
}

func observationToProto(o turn.Observation) *monitorv1.Observation {
	return &monitorv1.Observation{
		Kind: string(o.Kind), At: timeToProto(o.At), Source: shown(o.Source), ThreadId: shown(o.ThreadID),
		NativeTurnId: shown(o.NativeTurnID), Log: markToProto(o.Log), Text: []byte(o.Text), Truncated: o.Truncated,
		FullBytes: int64(o.FullBytes), Code: shown(o.Code), Detail: shown(o.Detail), Prompt: promptToProto(o.Prompt),
	}
}

func observationFromProto(p *monitorv1.Observation) turn.Observation {
	return turn.Observation{
		Kind: turn.ObservationKind(p.GetKind()), At: timeFromProto(p.GetAt()), Source: p.GetSource(), ThreadID: p.GetThreadId(),
		NativeTurnID: p.GetNativeTurnId(), Log: markFromProto(p.GetLog()), Text: string(p.GetText()), Truncated: p.GetTruncated(),
		FullBytes: int(p.GetFullBytes()), Code: p.GetCode(), Detail: p.GetDetail(), Prompt: promptFromProto(p.GetPrompt()),
	}
}

func promptToProto(p *turn.Prompt) *monitorv1.Prompt {
	if p == nil {
		return nil
	}
	out := &monitorv1.Prompt{
		Kind: string(p.Kind), Fingerprint: shown(p.Fingerprint), Title: shown(p.Title), Detail: shown(p.Detail),
		Approvable: p.Approvable, Reason: shown(p.Reason), RequestId: shown(p.RequestID), Excerpt: shown(p.Excerpt), Manual: shown(p.Manual),
	}
	for _, o := range p.Options {
		out.Options = append(out.Options, &monitorv1.PromptOption{
			Label: shown(o.Label), Key: shown(o.Key), OneTime: o.OneTime, Reject: o.Reject,
			Id: shown(o.ID), Description: shown(o.Description), FreeText: o.FreeText, Keys: allShown(o.Keys),
		})
	}
	if st := p.Step; st != nil {
		out.Step = &monitorv1.QuestionStep{Id: shown(st.ID), Header: shown(st.Header), Text: shown(st.Text), Kind: string(st.Kind),
			Index: int32(st.Index), Total: int32(st.Total)}
	}
	return out
}

func promptFromProto(p *monitorv1.Prompt) *turn.Prompt {
	if p == nil {
		return nil
	}
	out := &turn.Prompt{
		Kind: turn.PromptKind(p.Kind), Fingerprint: p.Fingerprint, Title: p.Title, Detail: p.Detail,
		Approvable: p.Approvable, Reason: p.Reason, RequestID: p.RequestId, Excerpt: p.Excerpt, Manual: p.Manual,
	}
	for _, o := range p.Options {
		out.Options = append(out.Options, turn.PromptOption{Label: o.GetLabel(), Key: o.GetKey(), OneTime: o.GetOneTime(), Reject: o.GetReject(),
			ID: o.GetId(), Description: o.GetDescription(), FreeText: o.GetFreeText(), Keys: o.GetKeys()})
	}
	if st := p.Step; st != nil {
		out.Step = &turn.QuestionStep{ID: st.Id, Header: st.Header, Text: st.Text, Kind: turn.StepKind(st.Kind), Index: int(st.Index), Total: int(st.Total)}
	}
	return out
}

func allShown(list []string) []string {
	var out []string
	for _, s := range list {
		out = append(out, shown(s))
	}
	return out
}
