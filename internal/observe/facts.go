package observe

import (
	"strings"
	"time"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/tmux"
	"github.com/agent-knock-knock/akk/internal/turn"
)

// sourceScreen marks observations of the screen, sourceStatus those of an agent's word about
// itself.
const sourceScreen, sourceStatus, sourceSocket = "screen", "status_file", "socket"

// closingGap is how long the dialog of a request may stay on the screen after the agent's
// server said that the request was answered.
const closingGap = 2 * time.Second

// serverGrace is how long an approval that the screen shows is left to the agent's server:
// whichever of both comes second would be another prompt, told a second time.
const serverGrace = 1500 * time.Millisecond

// facts is what one watch knows so far. Its methods are the rules: values in, values out,
// no clock and no effect.
type facts struct {
	pasted    string
	served    bool // a server tells the agent's requests too
	enteredAt time.Time

	armed       bool
	accepted    bool
	notAccepted bool
	final       bool

	unended turn.Observation // the agent says that it is idle and wrote no end; zero: it did not

	prompt       string // fingerprint of the open prompt, "" for none
	promptSource string
	answeredAt   time.Time // when the agent's server said last that its request was answered
	takenPrompt  string    // the prompt that somebody answered and saw gone last
	takenAt      time.Time // when that was heard
	held         string    // fingerprint of an approval that is left to the server for a moment
	heldAt       time.Time // since when
	glimpse      string    // fingerprint of an unknown dialog that one look has shown
	asked        string    // title of the question that the screen told last and the server did not

	activity   turn.Observation // the last one of records that was passed on
	screenAt   time.Time        // the last one of the screen
	screenSeen string           // digest of the last screen
	blind      int              // looks that failed since the last one that did not
}

// admit says whether o is news, and remembers it if so.
func (f *facts) admit(o turn.Observation) bool {
	if f.final {
		return false // one native turn has one end
	}
	switch o.Kind {
	case turn.ObsArmed:
		if f.armed {
			return false
		}
		f.armed = true
	case turn.ObsAccepted:
		f.accepted = true
	case turn.ObsNotAccepted:
		if f.accepted || f.notAccepted {
			return false
		}
		f.notAccepted = true
	case turn.ObsTrouble:
		if o.Code == agent.CodeIdleNoEnd {
			f.unended = o
		}
	case turn.ObsActivity:
		return f.admitActivity(o)
	case turn.ObsPrompt:
		return f.admitPrompt(o)
	case turn.ObsPromptCleared:
		if f.prompt == "" || (o.Source == sourceScreen && f.promptSource != sourceScreen && f.promptSource != "") {
			return false // what the agent itself reported, the agent itself ends
		}
		if o.Source == sourceSocket {
			f.answeredAt = o.At
		}
		f.prompt, f.promptSource = "", ""
	}
	f.final = o.Kind.Final()
	return true
}

func (f *facts) admitActivity(o turn.Observation) bool {
	if o.Source == sourceScreen {
		if o.At.Sub(f.screenAt) < screenGap {
			return false
		}
		f.screenAt = o.At
		return true
	}
	same := o.Code == f.activity.Code && o.Detail == f.activity.Detail
	if same && o.At.Sub(f.activity.At) < activityGap {
		return false
	}
	f.activity = o
	return true
}

// admitPrompt passes each open prompt on once. A dialog that the agent itself reported is
// not reported again from the screen, where it has another fingerprint.
func (f *facts) admitPrompt(o turn.Observation) bool {
	switch {
	case o.Prompt == nil || o.Prompt.Fingerprint == "" || o.Prompt.Fingerprint == f.prompt:
		return false
	case o.Source == sourceScreen && f.prompt != "" && f.promptSource != sourceScreen && f.promptSource != "":
		return false
	case o.Source == sourceScreen && !f.answeredAt.IsZero() && o.At.Sub(f.answeredAt) < closingGap:
		return false // the dialog of the answered request is being closed
	case o.Source == sourceScreen && f.served && o.Prompt.Kind == turn.PromptApproval && !f.waited(o):
		return false // its server is about to tell it
	case o.Source == sourceScreen && o.Prompt.Kind == turn.PromptDialog && f.glimpse != o.Prompt.Fingerprint:
		f.glimpse = o.Prompt.Fingerprint
		return false // a screen that is being drawn looks like an unknown dialog; the next look tells
	}
	f.prompt, f.promptSource = o.Prompt.Fingerprint, o.Source
	if p := o.Prompt; o.Source == sourceScreen && p.Kind == turn.PromptQuestion && (p.Step == nil || p.Step.Index <= 1) {
		f.asked = p.Title
	}
	return true
}

// reported takes a question that the agent's server told, and says whether the screen has
// told it already. A person may answer in the terminal before the server is heard, and then
// no look finds it there any more.
func (f *facts) reported(title string) bool {
	told := title != "" && f.asked == title
	if told {
		f.asked = ""
	}
	return told
}

// waited reports whether the server had its time to tell an approval that the screen shows.
func (f *facts) waited(o turn.Observation) bool {
	if f.held != o.Prompt.Fingerprint {
		f.held, f.heldAt = o.Prompt.Fingerprint, o.At
	}
	return o.At.Sub(f.heldAt) >= serverGrace
}

// taken notes that a prompt was answered and is gone: the same one again is news.
func (f *facts) taken(fingerprint string, now time.Time) {
	f.takenPrompt, f.takenAt = fingerprint, now
	if f.prompt == fingerprint {
		f.prompt, f.promptSource = "", ""
	}
}

// outdated reports whether a look that began at the given time may show an answered prompt
// as it was before the answer.
func (f *facts) outdated(p *turn.Prompt, begun time.Time) bool {
	return p != nil && p.Fingerprint == f.takenPrompt && !begun.After(f.takenAt)
}

// watched reports whether the screen may say anything now. Before Enter the pane belongs
// to whoever types, and a look would only disturb.
func (f facts) watched() bool {
	return f.armed && !f.final && (f.accepted || f.pasted == "" || !f.enteredAt.IsZero())
}

// awaitsAcceptance is true between Enter and what proves its effect.
func (f facts) awaitsAcceptance() bool {
	return f.pasted != "" && !f.enteredAt.IsZero() && !f.accepted && !f.notAccepted && !f.final
}

// draftDue reports whether a draft on the screen would prove now that the request was not
// taken.
func (f facts) draftDue(now time.Time) bool {
	return f.awaitsAcceptance() && now.Sub(f.enteredAt) >= acceptWait
}

// givenBack reports whether the request in the composer would prove now that a person
// interrupted it before the first word: some agents give it back and write no end.
func (f facts) givenBack() bool {
	return f.pasted != "" && f.accepted && f.unended.Kind != "" && !f.final
}

// seen returns what a classified screen says that is not known yet. An unknown screen
// says nothing: it neither opens nor clears a prompt.
func (f *facts) seen(s agent.Screen, digest string, now time.Time) []turn.Observation {
	var out []turn.Observation
	add := func(o turn.Observation) {
		o.At, o.Source = now, sourceScreen
		out = append(out, o)
	}
	if s.Prompt == nil || s.Prompt.Fingerprint != f.held {
		f.held = ""
	}
	if s.Prompt == nil || s.Prompt.Fingerprint != f.glimpse {
		f.glimpse = ""
	}
	switch s.State {
	case agent.ScreenApproval, agent.ScreenDialog:
		if s.Prompt != nil && s.Prompt.Fingerprint != f.prompt {
			p := *s.Prompt
			add(turn.Observation{Kind: turn.ObsPrompt, Prompt: &p})
		}
	case agent.ScreenIdle, agent.ScreenWorking:
		if f.prompt != "" {
			add(turn.Observation{Kind: turn.ObsPromptCleared})
		}
	}
	changed := f.screenSeen != "" && digest != f.screenSeen // the first screen is no change
	f.screenSeen = digest
	if s.State == agent.ScreenWorking || changed {
		add(turn.Observation{Kind: turn.ObsActivity})
	}
	return out
}

// digest stands for what a capture shows.
func digest(c tmux.Capture) string { return ids.TextHash(strings.Join(c.Lines, "\n")) }
