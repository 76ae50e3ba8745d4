package watch

import (
	"fmt"
	"strings"

	"github.com/agent-knock-knock/akk/internal/turn"
)

// The bodies of notifications. Each names the Watch and the terminal, because the reader
// did not start the task and may watch several.

func promptNotice(w Watch, p turn.Prompt) Notice {
	var b strings.Builder
	kind := "approval"
	if p.Kind == turn.PromptApproval {
		fmt.Fprintf(&b, "A task that you watch waits: %s asks for approval: %s", w.Agent, p.Title)
	} else {
		kind = "interaction"
		fmt.Fprintf(&b, "A task that you watch waits: %s asks: %s", w.Agent, p.Title)
	}
	if p.Detail != "" {
		fmt.Fprintf(&b, "\n\n%s", p.Detail)
	}
	for i, o := range p.Options {
		if i == 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "\n%d. %s", i+1, o.Label)
	}
	b.WriteString("\n\nThe person at the terminal started this task and decides. A Watch only looks: you may not approve or answer through it.\n" + w.where())
	return Notice{MessageID: notification(w.ID, "approval_required", p.Fingerprint), Type: "approval_required", Kind: kind, Body: b.String(),
		Metadata: w.metadata(ReasonWaiting)}
}

func settlementNotice(w Watch, text string) Notice {
	s := w.Settlement
	var b strings.Builder
	switch s.Kind {
	case Completed:
		if w.Mode == ModeActivity {
			b.WriteString("The terminal that you watch was active and is idle now. That is what screen and records say, not a proof that a task was done: look at its result.")
			break
		}
		fmt.Fprintf(&b, "The %s task that you watch is done.", w.Agent)
		switch {
		case text == "":
			b.WriteString(" The agent finished without a final message.")
		case s.TextBytes > len(text):
			fmt.Fprintf(&b, " Its last message, of which this callback carries the first %d of %d bytes:\n\n%s", len(text), s.TextBytes, text)
		default:
			fmt.Fprintf(&b, " Its last message:\n\n%s", text)
		}
	case Failed:
		fmt.Fprintf(&b, "The %s task that you watch failed or was interrupted: %s.", w.Agent, orElse(s.Detail, "no reason given"))
	case TimedOut:
		b.WriteString("The Watch reached its deadline; whether the task is done is not known. Nothing was done to the terminal.")
	case Invalidated:
		fmt.Fprintf(&b, "The Watch ended without an answer, because what it watched cannot be told apart any more: %s. Whether the task is done is not known.",
			orElse(s.Detail, s.Reason))
	case Cancelled:
		b.WriteString("The Watch was ended on request. The task and its terminal were not touched.")
	}
	b.WriteString("\n\n" + w.where())
	return Notice{MessageID: s.Message, Type: string(s.Kind), Kind: string(s.Kind), Body: b.String(), Metadata: w.metadata(s.Reason)}
}

func (w Watch) where() string { return fmt.Sprintf("Watch %s, terminal %s.", w.ID, w.Terminal) }

func (w Watch) metadata(reason string) map[string]string {
	return map[string]string{"watch_id": string(w.ID), "terminal_id": string(w.Terminal), "watch_mode": string(w.Mode), "reason_code": reason}
}

func orElse(s, alt string) string {
	if s == "" {
		return alt
	}
	return s
}
