package panels

import (
	"context"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/turn"
	"github.com/agent-knock-knock/akk/internal/turn/dispatch"
)

// Identity is which native thread a terminal shows, by the agent's own status panel. It
// is a diagnosis: it gives nobody the right to type.
type Identity struct {
	Status string `json:"status"` // identified, or uncertain
	Subject
	ThreadID string `json:"native_thread_id,omitempty"`
	// Records is what the agent's records say of the same: resolved, ambiguous, …
	Records      string     `json:"native_identity_state"`
	Agrees       *bool      `json:"agrees_with_records,omitempty"` // null when the records name no thread
	IdentifiedAt *time.Time `json:"identified_at,omitempty"`
	ExpiresAt    *time.Time `json:"expires_at,omitempty"`
	*Trouble
	DoNotRetry bool `json:"do_not_retry,omitempty"`
}

// IdentifyForeground looks at the status panel once. An error proves that nothing was
// typed.
func (s *Service) IdentifyForeground(ctx context.Context, id ids.TerminalID) (Identity, error) {
	ses, err := s.begin(ctx, id, "identify_foreground", anyThread)
	if err != nil {
		return Identity{}, err
	}
	defer ses.release()
	return s.identify(ctx, ses)
}

// Identified returns the proof of [Service.IdentifyForeground] while it holds.
func (s *Service) Identified(terminalKey string) (Identity, bool) {
	got, _, ok := s.proofs.Get(terminalKey)
	return got, ok
}

func (s *Service) identify(ctx context.Context, ses *session) (Identity, error) {
	s.proofs.Void(ses.term.Key())
	seen, err := s.inspect(ctx, ses)
	if err != nil {
		return Identity{}, err
	}
	out := Identity{Status: "identified", Subject: seen.Subject, ThreadID: seen.ThreadID, Records: string(ses.term.Native.Thread), Trouble: seen.Trouble}
	if out.Trouble == nil && out.ThreadID == "" {
		out.Trouble = trouble(EnterUncertain, IdentityUnverified, "the status panel names no thread")
	}
	if out.Trouble != nil {
		out.Status, out.ThreadID, out.DoNotRetry = Uncertain, "", true
		return out, nil
	}
	if known := ses.term.Native.ThreadID; known != "" {
		same := known == out.ThreadID
		out.Agrees = &same
	}
	now := s.Clock.Now()
	until := now.Add(ProofLife)
	out.IdentifiedAt, out.ExpiresAt = &now, &until
	s.proofs.Put(ses.term.Key(), out)
	return out, nil
}

// IdentifiedSend is an identification and, when that was proved, the task that followed.
type IdentifiedSend struct {
	Identity Identity
	Sent     *dispatch.SendResult // nil when nothing was sent because of Identity.Trouble
}

// IdentifyAndSend identifies the thread and sends the task to exactly that, without
// letting another of us type in between. in names the terminal by id. An error proves that
// no task was typed; after an uncertain identification none is typed either.
func (s *Service) IdentifyAndSend(ctx context.Context, in dispatch.SendInput) (IdentifiedSend, error) {
	const op = "panels.identify_and_send"
	if s.Sender == nil {
		return IdentifiedSend{}, fault.New(CapabilityUnavailable, op, "this Bridge sends no tasks")
	}
	if err := turn.CheckText(in.Request); err != nil {
		return IdentifiedSend{}, err
	}
	if r, ok, err := s.Sender.Replay(ctx, in.CallID, in.Request); err != nil || ok {
		if err != nil {
			return IdentifiedSend{}, err
		}
		return IdentifiedSend{Sent: &r}, nil
	}
	ses, err := s.begin(ctx, in.TerminalID, "identify_and_send", anyThread)
	if err != nil {
		return IdentifiedSend{}, err
	}
	defer ses.release()
	who, err := s.identify(ctx, ses)
	if err != nil || who.Trouble != nil {
		return IdentifiedSend{Identity: who}, err
	}
	if who.Agrees != nil && !*who.Agrees {
		return IdentifiedSend{}, fault.New(IdentityUnverified, op, "the status panel of %s shows another thread than the agent's records", in.TerminalID).
			WithHint("no task was typed; look at the pane")
	}
	in.Thread, in.Locked = who.ThreadID, true
	r, err := s.Sender.Send(ctx, in)
	if err != nil {
		return IdentifiedSend{}, err
	}
	return IdentifiedSend{Identity: who, Sent: &r}, nil
}
