package codex

import (
	"context"
	"time"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/agent/codex/rollout"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/turn"
)

// Anchor notes where the thread's rollout ends now. A thread that was never prompted has
// none yet: Follow then takes the file of exactly this thread, or, for an old version
// whose thread has no id before its first prompt, the file that exactly this process
// opens later. When several threads are possible, all their files are candidates.
//
// With an empty text nothing of ours is looked for: the anchor is for watching, and the
// turn that runs now, or the next one, is meant.
func (a *Adapter) Anchor(ctx context.Context, ref agent.Ref, n agent.Native, text, clientID string) (turn.Anchor, error) {
	const op = "codex.anchor"
	anc := turn.Anchor{
		Agent: Kind, Channel: n.Channel, ThreadID: n.ThreadID, ClientID: clientID,
		RequestHash: ids.TextHash(text), Extra: map[string]string{extraHash: ids.TextHash(normalise(text))},
	}
	for k, v := range n.Extra {
		anc.Extra[k] = v
	}
	if anc.Extra[extraHome] == "" {
		return anc, fault.New(fault.Invalid, op, "the agent was not identified").WithHint("identify it first")
	}
	if text == "" {
		anc.Extra[extraWatch] = "1"
	}
	switch n.Thread {
	case agent.ThreadResolved:
		if n.LogPath == "" {
			break
		}
		mark, err := rollout.MarkNow(n.LogPath)
		if err != nil {
			return anc, err
		}
		if text == "" && mark != nil {
			born := rollout.ProcessStart(ref.Process)
			if n.Mode != ModeEmbedded {
				born = time.Time{} // a turn on a server may be older than the client that shows it
			}
			if last := rollout.LastActivity(n.LogPath, born); last.Activity == agent.ActivityWorking {
				mark.Offset = last.OpenAt
			}
		}
		anc.Log = mark
	case agent.ThreadAmbiguous:
		if err := a.candidates(ctx, ref, &anc); err != nil {
			return anc, err
		}
	case agent.ThreadVerifiedAbsent:
		anc.Extra[extraSince] = a.clock.Now().UTC().Format(time.RFC3339Nano)
	default:
		return anc, fault.New(fault.Unavailable, op, "the agent's thread is not known: %s", n.Reason)
	}
	return anc, nil
}

// candidates marks the rollouts of all threads that the pane may show. Exactly one may
// take the request. A server's never prompted threads have no file to follow.
func (a *Adapter) candidates(ctx context.Context, ref agent.Ref, anc *turn.Anchor) error {
	f, err := a.look(ctx, ref)
	if err != nil {
		return err
	}
	var paths []string
	for _, r := range f.rollouts {
		paths = append(paths, r.path)
	}
	if socket := anc.Extra[extraSocket]; socket != "" {
		for _, t := range a.servers.Look(ctx, a.clock.Now, socket).Threads {
			if realDir(t.Cwd) == realDir(ref.Cwd) {
				paths = append(paths, t.Path)
			}
		}
	}
	for _, p := range paths {
		mark, err := rollout.MarkNow(p)
		if err != nil {
			return err
		}
		if mark != nil {
			anc.Candidates = append(anc.Candidates, *mark)
		}
	}
	if len(anc.Candidates) == 0 {
		return fault.New(fault.Unavailable, "codex.anchor", "none of the possible threads has a rollout to follow").
			WithHint("send one prompt by hand first, or show the thread id in the pane title")
	}
	return nil
}
