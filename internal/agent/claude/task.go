package claude

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/agent/claude/known"
	"github.com/agent-knock-knock/akk/internal/agent/claude/transcript"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/turn"
)

var _ agent.TaskFinder = (*Adapter)(nil)

// extraTask is the key of the uuid of the prompt that is watched, in Anchor.Extra. With
// it no text is looked for.
const extraTask = "task_prompt"

// CurrentTask finds the last prompt of a person in the thread's transcript whose turn has
// no end. What the program runs for a command of its own has no such prompt.
//
// A prompt may reach the transcript seconds after the agent took it (seen on 2.1.197, on a
// busy machine). Until then the list of what was submitted names it, and Follow finds its
// record by its text.
func (a *Adapter) CurrentTask(ctx context.Context, ref agent.Ref, n agent.Native) (agent.Task, error) {
	const op = "claude.task"
	if n.Thread != agent.ThreadResolved {
		return agent.Task{}, fault.New(fault.Unavailable, op, "the agent's thread is not known: %s", n.Reason)
	}
	anc, err := a.Anchor(ctx, ref, n, "", "")
	if err != nil {
		return agent.Task{}, err
	}
	var t transcript.Task
	if anc.Log != nil {
		ok := false
		if t, ok, err = transcript.OpenTask(ctx, anc.Log.Path, n.ThreadID); err != nil {
			return agent.Task{}, err
		}
		if ok {
			anc.Log, anc.RequestHash = &t.Mark, t.Hash
			delete(anc.Extra, extraCanonical)
			anc.Extra[extraTask] = t.Prompt
			return agent.Task{Anchor: anc, Key: strings.Join([]string{known.Kind, n.ThreadID, t.Prompt}, "|")}, nil
		}
	}
	s, ok := lastSubmitted(anc.Extra[extraConfigDir], n.ThreadID)
	busy := n.Activity == agent.ActivityWorking || n.Activity == agent.ActivityWaiting
	if !ok || !busy || ids.TextHash(s.Display) == t.Hash {
		return agent.Task{}, fault.New(agent.CodeNoTask, op, "the records show no prompt of a person whose turn runs now")
	}
	anc.RequestHash = ids.TextHash(s.Display)
	anc.Extra[extraCanonical] = ids.TextHash(transcript.Canonical(s.Display))
	return agent.Task{Anchor: anc, Key: fmt.Sprintf("%s|%s|submitted %d", known.Kind, n.ThreadID, s.At)}, nil
}

const (
	submittedFile = "history.jsonl" // in the configuration directory; one line for each prompt, at once
	submittedTail = 256 << 10       // how much of its end is read
)

// submitted is one line of the list of prompts.
type submitted struct {
	Display string                     `json:"display"` // the text, but for what was pasted
	Pasted  map[string]json.RawMessage `json:"pastedContents"`
	At      int64                      `json:"timestamp"`
	Session string                     `json:"sessionId"`
}

// lastSubmitted returns the newest prompt of a session. A command, and a prompt whose
// text is not whole, is none.
func lastSubmitted(configDir, session string) (submitted, bool) {
	f, err := os.Open(filepath.Join(configDir, submittedFile))
	if err != nil {
		return submitted{}, false
	}
	defer f.Close()
	if st, err := f.Stat(); err == nil && st.Size() > submittedTail {
		if _, err := f.Seek(-submittedTail, io.SeekEnd); err != nil {
			return submitted{}, false
		}
	}
	b, err := io.ReadAll(io.LimitReader(f, 2*submittedTail))
	if err != nil {
		return submitted{}, false
	}
	lines := bytes.Split(b, []byte("\n"))
	for _, line := range slices.Backward(lines) {
		var s submitted
		if json.Unmarshal(line, &s) != nil || s.Session != session {
			continue // also the rest of a line at the beginning
		}
		text := strings.TrimSpace(s.Display)
		return s, text != "" && len(s.Pasted) == 0 && !strings.ContainsAny(text[:1], known.CommandGlyphs+"#")
	}
	return submitted{}, false
}

// wantedOf says which request the anchor means.
func wantedOf(an turn.Anchor) transcript.Wanted {
	if id := an.Extra[extraTask]; id != "" {
		return transcript.Wanted{Thread: an.ThreadID, Prompt: id}
	}
	return transcript.Wanted{Thread: an.ThreadID, Exact: an.RequestHash, Canonical: an.Extra[extraCanonical]}
}
