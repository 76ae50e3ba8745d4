package codex

import (
	"github.com/agent-knock-knock/akk/internal/agent/codex/known"
	"github.com/agent-knock-knock/akk/internal/agent/codex/rollout"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/turn"
)

// Sources of observations, and the codes of trouble and failure.
const (
	sourceRollout = "rollout"
	sourceSocket  = "socket"
	sourceProcess = "process"

	CodeTwoMatches     fault.Code = "multiple_request_matches" // the request was found twice
	CodeTwoEndings     fault.Code = "duplicate_completion"     // two endings that differ
	CodeTurnLeftOpen   fault.Code = "turn_left_open"           // a later turn began, ours has no end
	CodeNoAnswer       fault.Code = "no_answer"                // an old version's way to record a failure
	CodeServerLost     fault.Code = "server_lost"              // the app server went away while a turn ran
	CodeTurnLost       fault.Code = "turn_lost"                // the server is back and the turn is not
	CodeInputUncertain fault.Code = "input_uncertain"          // the request may have reached the agent
)

// noFile stands for the socket where a file's number is expected.
const noFile = -1

// claim is the native turn that took our request.
type claim struct {
	file   int
	turnID string // "" for 0.98, which has none
	thread string
	closed bool // 0.98: a later prompt came, what follows may be its answer
}

// fileState is what was read of one rollout since the anchor.
type fileState struct {
	open     string // native turn that began last
	users    int    // prompts in it
	answer   string // its last final answer
	anyText  string // its last text of any phase
	plan     string
	items    bool // the file has records of the form that came with the error field
	weak     *claim
	poisoned bool // evidence of this file is not used any more
}

// tracker folds records and socket events into observations. It is pure: it reads
// nothing and knows no time.
type tracker struct {
	bySocket bool
	watch    bool   // no request of ours: the first native turn after the anchor is meant
	clientID string // of a socket submission
	hash     string // of the normalised request
	thread   string

	files map[int]*fileState
	acc   *claim
	end   *turn.Observation
	clash bool // two endings that differ: none is believed
	out   []turn.Observation

	// of the socket
	socketText, socketPlan string
	bare                   *turn.Observation // an ending by socket that has no text yet
}

func newTracker(a turn.Anchor) *tracker {
	t := &tracker{
		bySocket: a.Channel == turn.ChannelCodexSocket, clientID: a.ClientID, thread: a.ThreadID,
		hash: a.Extra[extraHash], watch: a.Extra[extraWatch] != "", files: map[int]*fileState{},
	}
	if t.hash == "" {
		t.hash = a.RequestHash
	}
	return t
}

func (t *tracker) file(n int) *fileState {
	f := t.files[n]
	if f == nil {
		f = &fileState{}
		t.files[n] = f
	}
	return f
}

func (t *tracker) matches(clientID, text, thread string) bool {
	if t.watch || t.thread != "" && thread != "" && thread != t.thread {
		return false
	}
	if t.bySocket && clientID != "" {
		return clientID == t.clientID
	}
	return ids.TextHash(normalise(text)) == t.hash
}

// feed takes the next record of a file. mark is where it begins.
func (t *tracker) feed(n int, r rollout.Record, mark turn.LogMark) {
	f := t.file(n)
	if f.poisoned || t.thread != "" && r.Thread != "" && r.Thread != t.thread {
		return
	}
	f.items = f.items || r.Items
	id := r.TurnID
	if id == "" {
		id = f.open
	}
	switch r.Kind {
	case rollout.Started:
		t.started(n, f, r, mark)
	case rollout.User:
		f.users++
		t.user(claim{file: n, turnID: id, thread: r.Thread}, f, r, mark)
	case rollout.UserWeak:
		if t.acc == nil && t.matches("", r.Text, r.Thread) {
			f.weak = &claim{file: n, turnID: id, thread: r.Thread}
		}
	case rollout.Answer:
		t.answered(n, f, id, r, mark)
	case rollout.Plan:
		if id == f.open || f.open == "" {
			f.plan = r.Text
		}
	case rollout.Complete:
		if t.acc == nil && f.weak != nil && f.weak.turnID == id {
			t.accept(*f.weak, sourceRollout, &mark, "")
		}
		if t.ours(n, id) {
			t.conclude(f.ending(r), r, mark)
		}
	case rollout.Aborted:
		if t.acc == nil && f.weak != nil && f.weak.turnID == id {
			t.accept(*f.weak, sourceRollout, &mark, "")
		}
		if t.ours(n, id) {
			t.conclude(turn.Observation{Kind: turn.ObsInterrupted, Code: r.Code, Detail: "the turn was aborted: " + r.Code}, r, mark)
		}
	}
}

func (t *tracker) ours(n int, id string) bool {
	return t.acc != nil && !t.acc.closed && t.acc.turnID == id && (t.acc.file == n || t.acc.file == noFile)
}

func (t *tracker) started(n int, f *fileState, r rollout.Record, mark turn.LogMark) {
	if t.acc != nil && t.end == nil && t.acc.file == n && t.acc.turnID != r.TurnID && t.acc.turnID == f.open {
		t.trouble(CodeTurnLeftOpen, "a later turn began in the thread and ours has no end", &mark)
	}
	items := f.items
	*f = fileState{open: r.TurnID, items: items}
	if t.watch && t.acc == nil {
		t.accept(claim{file: n, turnID: r.TurnID, thread: r.Thread}, sourceRollout, &mark, "")
	}
}

func (t *tracker) user(c claim, f *fileState, r rollout.Record, mark turn.LogMark) {
	hit := t.matches(r.ClientID, r.Text, r.Thread)
	if t.acc != nil && t.acc.turnID == "" && t.acc.file == c.file {
		t.acc.closed = true
	}
	switch {
	case !hit:
	case t.acc == nil:
		detail := ""
		if f.users > 1 {
			detail = "the request joined a turn that was already running"
		}
		t.accept(c, sourceRollout, &mark, detail)
	case t.acc.turnID == c.turnID && (t.acc.file == noFile || t.acc.file == c.file && f.users == 1):
		t.acc.file = c.file // the same prompt, seen on the socket before
	case t.end == nil || t.bySocket:
		t.trouble(CodeTwoMatches, "the same request was recorded twice after the anchor", &mark)
	}
}

func (t *tracker) answered(n int, f *fileState, id string, r rollout.Record, mark turn.LogMark) {
	if id != f.open && f.open != "" {
		return
	}
	f.anyText = r.Text
	if !r.Final {
		return
	}
	f.answer = r.Text
	// 0.98 has no record of a turn's end; its final answer is the last thing it writes.
	if id == "" && t.ours(n, "") {
		r.HasText = true
		t.conclude(f.ending(r), r, mark)
	}
}

// ending makes the observation of a turn's end record. A turn of a version that records
// errors and has neither error nor text ended well without words; before those versions
// it is how a failure looks.
func (f *fileState) ending(r rollout.Record) turn.Observation {
	text := r.Text
	for _, s := range []string{f.plan, f.answer, f.anyText} {
		if text == "" && !r.HasText {
			text = s
		}
	}
	o := turn.Observation{Kind: turn.ObsCompleted}
	switch {
	case r.Failed:
		o.Kind, o.Code, o.Detail = turn.ObsFailed, r.Code, r.Detail
	case text == "" && !r.HasText && !f.items:
		o.Kind, o.Code = turn.ObsFailed, string(CodeNoAnswer)
		o.Detail = "the turn ended without an answer; Codex before " + known.ErrorFieldSince + " records a failure only so"
	}
	rollout.SetText(&o, text)
	return o
}

// conclude notes the end that a file proves. It waits for the rest of the file: a second,
// different ending makes both worthless.
func (t *tracker) conclude(o turn.Observation, r rollout.Record, mark turn.LogMark) {
	t.stamp(&o, sourceRollout, &mark)
	o.At = r.At
	switch {
	case t.clash:
	case t.end == nil || t.end.Source == sourceSocket:
		t.end = &o
	case t.end.Kind != o.Kind || t.end.Text != o.Text || t.end.FullBytes != o.FullBytes:
		t.clash, t.end = true, nil
		t.trouble(CodeTwoEndings, "the turn has two endings that differ", &mark)
	}
}

func (t *tracker) accept(c claim, source string, mark *turn.LogMark, detail string) {
	t.acc = &c
	o := turn.Observation{Kind: turn.ObsAccepted, Detail: detail}
	t.stamp(&o, source, mark)
	t.out = append(t.out, o)
}

func (t *tracker) trouble(code fault.Code, detail string, mark *turn.LogMark) {
	o := turn.Observation{Kind: turn.ObsTrouble, Code: string(code), Detail: detail}
	t.stamp(&o, sourceRollout, mark)
	t.out = append(t.out, o)
}

// distrust reports trouble with a file and uses it no more.
func (t *tracker) distrust(n int, code fault.Code, detail string, mark *turn.LogMark) {
	if f := t.file(n); !f.poisoned {
		f.poisoned = true
		t.trouble(code, detail, mark)
	}
}

func (t *tracker) stamp(o *turn.Observation, source string, mark *turn.LogMark) {
	o.Source, o.Log, o.ThreadID = source, mark, t.thread
	if t.acc != nil {
		o.NativeTurnID = t.acc.turnID
		if o.ThreadID == "" {
			o.ThreadID = t.acc.thread
		}
	}
}
