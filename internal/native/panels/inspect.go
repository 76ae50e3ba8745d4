package panels

import (
	"context"
	"regexp"
	"strings"
	"sync"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/redact"
)

// Limits of what is shown of a status panel.
const (
	MaxFields  = 24
	MaxValue   = 512  // bytes, also of a name
	MaxExcerpt = 4000 // bytes
)

// InspectStatus is the only inspection there is.
const InspectStatus = "status"

// Subject names the terminal of a result.
type Subject struct {
	TerminalID ids.TerminalID `json:"terminal_id"`
	Agent      string         `json:"agent"`
	Version    string         `json:"agent_version"`
	Profile    string         `json:"behavior_profile"`
}

func (ses *session) subject() Subject {
	return Subject{ses.term.ID, ses.term.Adapter.Kind(), ses.term.Native.Version, ses.profile}
}

// Inspection is what an inspection saw. With Trouble it saw nothing that is proved.
type Inspection struct {
	Status     string `json:"status"` // observed, or uncertain
	Inspection string `json:"inspection"`
	Subject
	ThreadID   string        `json:"native_thread_id,omitempty"`
	Native     *NativeStatus `json:"native_status,omitempty"`
	Submission Submission    `json:"terminal_submission"`
	Dismissal  *Dismissal    `json:"terminal_dismissal,omitempty"`
	*Trouble
	DoNotRetry bool `json:"do_not_retry,omitempty"`
	// Nothing of these is ever made by an inspection.
	StoreMutation bool `json:"store_mutation"`
	SessionMade   bool `json:"session_created"`
	TurnMade      bool `json:"turn_created"`
	ReceiptMade   bool `json:"receipt_created"`
	MonitorMade   bool `json:"monitor_created"`
	CallbackMade  bool `json:"callback_created"`
}

// NativeStatus is the panel.
type NativeStatus struct {
	Kind    string        `json:"kind"`
	Fields  []agent.Field `json:"fields"`
	Excerpt string        `json:"excerpt"`
}

// Submission is what was typed.
type Submission struct {
	Command         string `json:"command"`
	Enters          int    `json:"enter_count"`
	Materialization string `json:"materialization"` // exact: the composer showed the command and nothing else
}

// Dismissal is how a modal panel was left.
type Dismissal struct {
	Keys         []string `json:"keys"`
	Count        int      `json:"dismiss_count"`
	RestoredIdle bool     `json:"restored_idle"`
}

// Inspect opens the agent's status panel once, reads it and leaves it. An error proves
// that nothing was typed.
func (s *Service) Inspect(ctx context.Context, id ids.TerminalID, inspection string) (Inspection, error) {
	if inspection != InspectStatus {
		return Inspection{}, fault.New(fault.Invalid, "panels.inspect", "there is no inspection of that name").WithHint("inspection must be status")
	}
	ses, err := s.begin(ctx, id, "native_inspect", anyThread)
	if err != nil {
		return Inspection{}, err
	}
	defer ses.release()
	return s.inspect(ctx, ses)
}

func (s *Service) inspect(ctx context.Context, ses *session) (Inspection, error) {
	p := ses.panels.ReadStatus()
	d, err := s.drive(ctx, ses, p, s.Budget)
	if err != nil {
		return Inspection{}, err
	}
	out := Inspection{Status: "observed", Inspection: InspectStatus, Subject: ses.subject(),
		Submission: Submission{Command: p.Command(), Enters: d.enters, Materialization: "exact"}}
	panel := p.Status()
	if panel.Dismissals > 0 {
		out.Dismissal = &Dismissal{Keys: []string{"Escape"}, Count: panel.Dismissals, RestoredIdle: d.trouble == nil}
	}
	if d.trouble != nil {
		out.Status, out.Trouble, out.DoNotRetry = "uncertain", d.trouble, true
		if d.trouble.Stage == TextInjected {
			out.Submission.Materialization = "unproven"
		}
		return out, nil
	}
	out.ThreadID, out.Native = panel.ThreadID, shown(panel.Fields)
	return out, nil
}

// accountField are the fields whose value says who pays; they are shown without it. It is
// compiled at its first use: a start pays for nothing that it does not do.
var accountField = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b(account|e-?mail|organi[sz]ation|login|auth|api key|user|plan|token source)\b`)
})

var address = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[^\s@<>()]+@[^\s@<>()]+\.[^\s@<>()]+`) })

// shown is the panel as a Host may see it.
func shown(fields []agent.Field) *NativeStatus {
	out := &NativeStatus{Kind: "native_status", Fields: []agent.Field{}}
	var text strings.Builder
	for _, f := range fields[:min(len(fields), MaxFields)] {
		name, value := redact.Line(f.Name, MaxValue), redact.Line(address().ReplaceAllString(f.Value, redact.Mask), MaxValue)
		if accountField().MatchString(name) && !strings.HasPrefix(value, "<none") && value != "none" {
			value = redact.Mask
		}
		out.Fields = append(out.Fields, agent.Field{Name: name, Value: value})
		text.WriteString(name + ": " + value + "\n")
	}
	out.Excerpt = text.String()
	for len(out.Excerpt) > MaxExcerpt {
		cut := strings.LastIndexByte(out.Excerpt[:len(out.Excerpt)-1], '\n')
		out.Excerpt = out.Excerpt[:cut+1]
	}
	return out
}
