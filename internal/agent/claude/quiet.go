package claude

import (
	"fmt"
	"strings"
	"time"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/agent/claude/known"
	"github.com/agent-knock-knock/akk/internal/agent/claude/transcript"
	"github.com/agent-knock-knock/akk/internal/turn"
)

// The code of a pane that shows another session before our request was accepted.
const codeThreadChanged = "thread_changed"

// statusView is what the status file said last.
type statusView struct {
	seen      bool
	last      status
	sawWork   bool      // it was busy or waiting since we are armed
	idleSince time.Time // zero while not idle
	told      map[string]bool
}

// scanStatus reads the status file and reports a change of it as activity. A file that is
// missing, torn or of another process says nothing.
func (f *follower) scanStatus() error {
	path := f.anchor.Extra[extraStatus]
	if path == "" {
		return nil
	}
	s, err := readStatus(path)
	if err != nil || s.foreign(f.ref.Process) != "" {
		f.status.idleSince = time.Time{}
		return nil
	}
	v := &f.status
	changed := !v.seen && s.Status == known.StatusWaiting ||
		v.seen && (s.Status != v.last.Status || s.WaitingFor != v.last.WaitingFor || s.SessionID != v.last.SessionID)
	v.seen, v.last = true, s
	switch s.activity() {
	case agent.ActivityIdle:
		if v.idleSince.IsZero() {
			v.idleSince = f.a.clock.Now()
		}
	case agent.ActivityWorking, agent.ActivityWaiting:
		v.sawWork, v.idleSince = true, time.Time{}
	default:
		v.idleSince = time.Time{}
	}
	if !changed {
		return nil
	}
	o := turn.Observation{Kind: turn.ObsActivity, Source: sourceStatus, ThreadID: s.SessionID, Code: transcript.OneLine(s.Status), Detail: transcript.OneLine(s.WaitingFor)}
	if f.anchor.ThreadID != "" && s.SessionID != f.anchor.ThreadID {
		o.Detail = "the pane shows another session now"
	}
	return f.send(o)
}

// quiet draws the conclusions that need silence: no record for a while, and an agent that
// says it is idle. The clock decides only when to look, never which turn a record is of.
func (f *follower) quiet(now time.Time) error {
	if !f.bound || len(f.streams) != 1 {
		return nil
	}
	c := f.streams[0].chain
	if !c.Open() {
		return nil
	}
	if c.Superseded() && now.Sub(f.lastGrow) >= known.SettleAfter {
		return f.sendAll(c.Settle())
	}
	if !c.Accepted() && f.status.seen && f.otherSession() {
		return f.tell(codeThreadChanged, "the pane shows another session, and the request is not in the anchored one")
	}
	idle := f.status.idleSince
	if idle.IsZero() || now.Sub(idle) < known.IdleGrace || now.Sub(f.lastGrow) < known.IdleGrace {
		return nil
	}
	if !c.Accepted() {
		if !f.status.sawWork {
			return nil
		}
		return f.tell(transcript.CodeIdleNoRecord, "the agent worked and is idle, and the request is not in its records; it may be in the composer")
	}
	if !f.endsByRecord() || c.EndsInError() {
		if end, ok := c.EndByAnswer(transcript.CodeDegradedEnd); ok {
			return f.send(end)
		}
	}
	return f.tell(transcript.CodeIdleNoEnd, "the agent is idle and wrote no end of the turn; the prompt may be back in the composer")
}

func (f *follower) otherSession() bool {
	return f.anchor.ThreadID != "" && f.status.last.SessionID != "" && f.status.last.SessionID != f.anchor.ThreadID
}

// endsByRecord reports whether this version is known to end every turn with a record.
func (f *follower) endsByRecord() bool {
	v := f.status.last.Version
	if v == "" {
		v = f.anchor.Extra[extraVersion]
	}
	for _, p := range known.TurnEndVersions {
		if strings.HasPrefix(v, p) {
			return true
		}
	}
	return false
}

// tell reports one kind of trouble once.
func (f *follower) tell(code, detail string) error {
	if f.status.told[code] {
		return nil
	}
	if f.status.told == nil {
		f.status.told = map[string]bool{}
	}
	f.status.told[code] = true
	o := f.streams[0].chain.Observe(turn.ObsTrouble, turn.LogMark{})
	o.Source, o.Code, o.Detail = sourceStatus, code, detail
	return f.send(o)
}

func (f *follower) sendAll(out []turn.Observation) error {
	for _, o := range out {
		if err := f.send(o); err != nil {
			return fmt.Errorf("emit %s: %w", o.Kind, err)
		}
	}
	return nil
}
