package turn

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
)

// Defaults and limits of a Turn's clocks (spec part 2.0).
const (
	DefaultInactivity = 60 * time.Minute
	DefaultHard       = 720 * time.Minute
	// activityGrain bounds how often activity alone is written: the journal records that
	// the agent lives, not each of its lines.
	activityGrain = time.Minute
)

// Reserve starts a Turn: t holds its identity, target, request and clocks. Nothing has
// been typed.
func Reserve(t Turn, now time.Time) Plan {
	t.Status, t.Stage = Created, Reserved
	t.CreatedAt, t.UpdatedAt, t.LastActivityAt = now, now, now
	var p Plan
	p.add(Event{At: now, Kind: EvReserved, Turn: &t})
	return p
}

// Inject records that text may reach the agent from now on. It is committed before the
// first byte is sent; without it nothing may be sent.
func Inject(t Turn, now time.Time) (Plan, error) {
	if !t.Stage.MayType() {
		return Plan{}, fault.New(CodeNotAllowed, "turn.inject", "turn %s is %s; nothing is typed twice", t.ID, t.Stage)
	}
	if t.Status != Created { // the monitor was faster: the agent ended before the first byte
		return Plan{}, fault.New(CodeNotAllowed, "turn.inject", "turn %s is %s: %s", t.ID, t.Status, t.Reason).WithHint("call agent_knock_knock_list again")
	}
	p := Plan{Turn: t}
	p.add(Event{At: now, Kind: EvTextInjected})
	return p, nil
}

// Enter records that the submitting key or frame was sent. Acceptance may have been
// observed before the call returned; then the stage stays accepted.
func Enter(t Turn, now time.Time) (Plan, error) {
	switch t.Stage {
	case TextInjected:
	case Accepted:
		return Plan{Turn: t}, nil
	default:
		return Plan{}, fault.New(CodeNotAllowed, "turn.enter", "turn %s is %s, not text_injected", t.ID, t.Stage)
	}
	p := Plan{Turn: t}
	p.add(Event{At: now, Kind: EvEntered})
	return p, nil
}

// Abort records that it is proved that nothing reached the agent. The terminal is free
// again and the task may be sent anew as another Turn.
func Abort(t Turn, reason string, now time.Time) (Plan, error) {
	if t.Stage != Reserved && t.Stage != TextInjected {
		return Plan{}, fault.New(CodeNotAllowed, "turn.abort", "turn %s is %s; only a submission that never left can be aborted", t.ID, t.Stage)
	}
	p := Plan{Turn: t}
	p.add(Event{At: now, Kind: EvAborted, Reason: reason})
	return p, nil
}

// MarkUncertain records that input was possible and its effect is unknown. The Host hears
// of it. An acceptance that was observed meanwhile wins and nothing changes.
func MarkUncertain(t Turn, reason string, now time.Time) Plan {
	p := Plan{Turn: t}
	if (t.Stage != TextInjected && t.Stage != EnterDispatched) || !t.Status.Blocking() {
		return p // a person may have closed it meanwhile
	}
	p.stall(EvUncertain, reason, now)
	return p
}

// Recover decides what a Turn means whose submission was cut off, because its Bridge died
// or could not write (spec part 4.4): a reservation is aborted, a possible input is
// uncertain, a sent Enter goes on being observed.
func Recover(t Turn, now time.Time) Plan {
	switch t.Stage {
	case Reserved:
		if p, err := Abort(t, "the submission was cut off before anything was typed", now); err == nil {
			return p
		}
	case TextInjected:
		return MarkUncertain(t, "the submission was cut off while the request was being typed; look at the terminal before sending again", now)
	}
	return recoverAnswer(t, now)
}

// CheckDeadlines stalls a Turn whose time is over. The hard deadline is asked first.
func CheckDeadlines(t Turn, now time.Time) Plan {
	p := Plan{Turn: t}
	if t.Status != WaitingForAgent && t.Status != WaitingForController {
		return p
	}
	switch {
	case t.Hard > 0 && !now.Before(t.HardDeadline()):
		p.stall(EvStalled, fmt.Sprintf("hard limit of %s reached", t.Hard), now)
	case t.Inactivity > 0 && !now.Before(t.LastActivityAt.Add(t.Inactivity)):
		p.stall(EvStalled, fmt.Sprintf("no activity for %s", t.Inactivity), now)
	}
	return p
}

// message derives the id of a notice from the journal position that gives rise to it, so
// that deciding the same fact again, after a crash before the commit, gives the same id.
func (p *Plan) message(parts ...string) string {
	parts = append(parts, string(p.Turn.ID), string(p.Turn.MessageID), strconv.FormatInt(p.Turn.Seq+1, 10))
	return string(ids.DeriveMessage(parts...))
}

func (p *Plan) stall(kind EventKind, reason string, now time.Time) {
	id := p.message("stalled", reason)
	p.add(Event{At: now, Kind: kind, Reason: reason, Message: id})
	p.Notices = append(p.Notices, Notice{MessageID: id, Type: "error", Kind: "stalled", Body: stalledBody(p.Turn)})
}

// Observe folds what a monitor saw. Observations are evidence that may come twice, late
// or for a Turn that ended: whatever adds nothing gives an empty Plan.
func Observe(t Turn, o Observation, now time.Time) Plan {
	p := Plan{Turn: t}
	if !t.Status.Blocking() || t.Stage == Aborted {
		return p // late evidence never reopens a released Turn
	}
	switch o.Kind {
	case ObsAccepted:
		if t.Stage == Accepted || t.Stage == Reserved {
			return p
		}
		p.observe(o, "", now)
	case ObsActivity:
		if now.Sub(t.LastActivityAt) >= activityGrain || (t.Inactivity > 0 && now.Sub(t.LastActivityAt) >= t.Inactivity/2) {
			p.observe(o, "", now)
		}
	case ObsNotAccepted:
		if t.Stage == EnterDispatched {
			p.notAccepted(o, now)
		}
	case ObsPrompt:
		p.prompt(o, now)
	case ObsPromptCleared:
		if t.Prompt != nil || t.Answer.open() {
			p.observe(o, "", now)
		}
	case ObsTrouble:
		switch {
		case stopped(t, o):
			p.cancelled(o, now)
		case t.Trouble != o.Code+": "+o.Detail:
			p.observe(o, "", now)
		}
	case ObsCompleted, ObsFailed, ObsInterrupted:
		p.end(o, now)
	case ObsGone:
		p.gone(o, now)
	}
	return p
}

// observe appends the event. The answer's text goes to the outbox, not to the journal
// twice: the event keeps its length and digest.
func (p *Plan) observe(o Observation, message string, now time.Time) {
	if o.Kind.Final() {
		o.Detail = ids.TextHash(o.Text)
		if o.FullBytes == 0 {
			o.FullBytes = len(o.Text)
		}
		o.Text = ""
	}
	p.add(Event{At: now, Kind: EvObserved, Observation: &o, Message: message})
}

func (p *Plan) notAccepted(o Observation, now time.Time) {
	id := p.message("not_accepted")
	p.observe(o, id, now)
	p.Notices = append(p.Notices, Notice{MessageID: id, Type: "error", Kind: "stalled", Body: stalledBody(p.Turn)})
}

func (p *Plan) prompt(o Observation, now time.Time) {
	if !p.news(o) {
		return
	}
	if toldAlready(p.Turn, o.Prompt.Fingerprint, now) {
		p.observe(o, "", now)
		return
	}
	if a := p.Turn.Answer; a != nil && a.State == AnswerSent && a.Step != "" && o.Prompt.Step != nil && now.Sub(a.At) < nextStepGap {
		p.observe(o, "", now) // the answer's own result shows the next step; if it does not, a sweep tells it
		return
	}
	id := p.message("prompt", o.Prompt.Fingerprint)
	p.observe(o, id, now)
	p.Notices = append(p.Notices, promptNotice(p.Turn, id))
}

// nextStepGap is how long after a step of a questionnaire was answered the step that is
// seen then is left to that answer's result.
const nextStepGap = 10 * time.Second

// QuestionKinds are the kinds of notices that speak of an open prompt.
var QuestionKinds = []string{"approval", "interaction"}

// DropsQuestion reports whether what was asked before is pointless after the plan: the
// prompt is gone or another one, or the Turn is over. A close by a person erases nothing:
// what was on its way may still be delivered (spec case 35).
func (p Plan) DropsQuestion(before Turn) bool {
	switch {
	case p.Turn.Status == Closed:
		return false
	case before.Status.Blocking() && !p.Turn.Status.Blocking():
		return true
	case before.Prompt == nil:
		return false
	}
	return p.Turn.Prompt == nil || p.Turn.Prompt.Fingerprint != before.Prompt.Fingerprint
}

// Unheard adds that the question was withdrawn before the Host heard it, so that the same
// prompt is told anew should it come back: the screen may only have repainted.
func (p Plan) Unheard(now time.Time) Plan {
	if p.Turn.Prompt == nil && p.Turn.LastPrompt != "" && p.Turn.Status.Blocking() {
		p.add(Event{At: now, Kind: EvUnheard})
	}
	return p
}

// end settles the Turn. Only the native turn that was accepted can end it: the adapter
// proved the correlation, and an outcome without an acceptance is refused.
func (p *Plan) end(o Observation, now time.Time) {
	t := p.Turn
	if t.Stage != Accepted || (o.NativeTurnID != "" && o.NativeTurnID != t.NativeTurnID) {
		return
	}
	text := o.Text
	id := p.message("terminal", t.NativeTurnID, string(o.Kind), ids.TextHash(text))
	code, detail := o.Code, o.Detail
	p.observe(o, id, now)
	n := Notice{MessageID: id, Metadata: map[string]string{"evidence": o.Source}}
	switch o.Kind {
	case ObsCompleted:
		n.Type, n.Kind, n.Body = "done", "completion", completionBody(text, o)
	case ObsInterrupted:
		n.Type, n.Kind, n.Body = "error", "interrupted", interruptedBody(p.Turn, detail)
		if p.Turn.Status == Cancelled {
			n.Body = cancelledBody(p.Turn)
		}
	default:
		n.Type, n.Kind, n.Body = "error", "failure", failureBody(p.Turn, code, detail)
	}
	p.Notices = append(p.Notices, n)
}

// gone stalls the Turn: the process is verified dead and its records hold no end. The
// Host hears it once; of a mere reservation it hears by the answer of its own call.
func (p *Plan) gone(o Observation, now time.Time) {
	if p.Turn.ProcessGone {
		return
	}
	if p.Turn.Stage == Reserved {
		p.observe(o, "", now)
		return
	}
	id := p.message("gone")
	p.observe(o, id, now)
	p.Notices = append(p.Notices, Notice{MessageID: id, Type: "error", Kind: "stalled", Body: stalledBody(p.Turn)})
}

// Adopt records that another Bridge took the Turn over.
func Adopt(t Turn, from, to ids.BridgeID, now time.Time) Plan {
	p := Plan{Turn: t}
	p.add(Event{At: now, Kind: EvAdopted, Reason: fmt.Sprintf("taken over by %s; %s ended", to, from)})
	return p
}

// CheckText refuses a request that the agent would not read as a task (spec part 2.0).
func CheckText(text string) error {
	const op = "turn.text"
	if strings.TrimSpace(text) == "" {
		return fault.New(fault.Invalid, op, "the request is empty").WithHint("say what the agent should do")
	}
	if len(text) > MaxRequest {
		return fault.New(fault.Invalid, op, "the request has %d bytes, the limit is %d", len(text), MaxRequest).WithHint("put the material in a file and name it")
	}
	if first, _, _ := strings.Cut(text, "\n"); slashShaped(strings.TrimLeft(first, " \t")) {
		return fault.New(fault.Invalid, op, "the request begins with a slash command").WithHint("describe the task in words; commands of the agent have their own tools")
	}
	return nil
}

// MaxRequest is the limit of a request in bytes (1 MiB).
const MaxRequest = 1 << 20

// slashShaped reports "/" + lower-case letter + [a-z0-9_-]* followed by a blank or the end.
func slashShaped(line string) bool {
	if len(line) < 2 || line[0] != '/' || line[1] < 'a' || line[1] > 'z' {
		return false
	}
	for i := 2; i < len(line); i++ {
		c := line[i]
		switch {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '_', c == '-':
		case c == ' ', c == '\t':
			return true
		default:
			return false
		}
	}
	return true
}
