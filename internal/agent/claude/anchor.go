package claude

import (
	"context"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/agent/claude/known"
	"github.com/agent-knock-knock/akk/internal/agent/claude/transcript"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/turn"
)

// Anchor notes the end of the thread's transcript, or that it does not exist yet. When the
// thread could not be told, every transcript of the project directory is a candidate, and
// the request's own text will tell which one it is.
func (a *Adapter) Anchor(ctx context.Context, ref agent.Ref, n agent.Native, text, clientID string) (turn.Anchor, error) {
	const op = "claude.anchor"
	if err := ctx.Err(); err != nil {
		return turn.Anchor{}, fault.Wrap(err, fault.Timeout, op, "the time for the agent's files is over")
	}
	an := turn.Anchor{
		Agent: known.Kind, Channel: turn.ChannelKeyboard, ThreadID: n.ThreadID,
		RequestHash: ids.TextHash(text), ClientID: clientID,
		Extra: map[string]string{extraCanonical: ids.TextHash(transcript.Canonical(text)), extraVersion: n.Version},
	}
	for _, k := range []string{extraConfigDir, extraStatus, extraTranscript, extraProjectDir, extraEvents} {
		if v := n.Extra[k]; v != "" {
			an.Extra[k] = v
		}
	}
	if an.Extra[extraProjectDir] == "" {
		return turn.Anchor{}, fault.New(fault.Invalid, op, "the agent's files are not known").
			WithHint("identify the agent again")
	}
	if n.Thread == agent.ThreadResolved {
		return a.anchorThread(an, n)
	}
	for _, p := range candidates(an.Extra[extraProjectDir]) {
		m, err := transcript.Mark(p)
		if err != nil {
			return turn.Anchor{}, err
		}
		an.Candidates = append(an.Candidates, m)
	}
	return an, nil
}

func (a *Adapter) anchorThread(an turn.Anchor, n agent.Native) (turn.Anchor, error) {
	path := n.LogPath
	if path == "" {
		path = an.Extra[extraTranscript]
	}
	if path == "" {
		return turn.Anchor{}, fault.New(fault.Invalid, "claude.anchor", "the transcript of the thread is not known").
			WithHint("identify the agent again")
	}
	an.Extra[extraTranscript] = path
	m, err := transcript.Mark(path)
	if fault.Is(err, fault.NotFound) {
		return an, nil // a virgin session: everything in the file will be ours to read
	}
	if err != nil {
		return turn.Anchor{}, err
	}
	an.Log = &m
	return an, nil
}
