package turn

import (
	"fmt"
	"strings"
)

// The bodies of callbacks: what the Host's session reads. A completion is the agent's own
// text and nothing else, unless it was cut; everything else names the Turn and the tool
// to use next, because the reader may hold several Turns.

func completionBody(text string, o Observation) string {
	if text == "" {
		return "The agent finished without a final message."
	}
	if o.Truncated {
		return fmt.Sprintf("%s\n\n[cut here: the answer has %d bytes, this callback carries the first %d; the rest is in the agent's own log]",
			text, o.FullBytes, len(text))
	}
	return text
}

func failureBody(t Turn, code, detail string) string {
	return fmt.Sprintf("The %s task failed: %s\nTurn %s, terminal %s.", t.Agent, orElse(joined(code, detail), "no reason given"), t.ID, t.Terminal)
}

func interruptedBody(t Turn, detail string) string {
	s := fmt.Sprintf("The %s task was interrupted in its terminal before it was done.", t.Agent)
	if detail != "" {
		s += " " + detail
	}
	return s + fmt.Sprintf("\nTurn %s, terminal %s.", t.ID, t.Terminal)
}

func stalledBody(t Turn) string {
	next := "Look at the terminal with agent_knock_knock_status, then decide."
	if t.Stage == Uncertain || t.Stage == NotAccepted {
		next = "Do not send the task again before you looked at the terminal with agent_knock_knock_status: it may have been taken."
	}
	return fmt.Sprintf("The %s task needs a decision: %s.\nTurn %s, terminal %s.\n%s", t.Agent, t.Reason, t.ID, t.Terminal, next)
}

func promptNotice(t Turn, id string) Notice {
	p := t.Prompt
	var b strings.Builder
	kind := "approval"
	if p.Kind == PromptApproval {
		fmt.Fprintf(&b, "%s asks for approval: %s", t.Agent, p.Title)
	} else {
		kind = "interaction"
		fmt.Fprintf(&b, "%s waits for an answer: %s", t.Agent, p.Title)
	}
	if p.Detail != "" {
		fmt.Fprintf(&b, "\n\n%s", p.Detail)
	}
	if len(p.Options) > 0 {
		b.WriteString("\n")
		for i, o := range p.Options {
			fmt.Fprintf(&b, "\n%d. %s", i+1, o.Label)
		}
	}
	fmt.Fprintf(&b, "\n\nTurn %s, terminal %s. Read it with agent_knock_knock_status before you decide.", t.ID, t.Terminal)
	return Notice{MessageID: id, Type: "question", Kind: kind, Body: b.String(), RequiresResponse: true,
		Metadata: map[string]string{"prompt_fingerprint": p.Fingerprint}}
}

func joined(parts ...string) string {
	var kept []string
	for _, p := range parts {
		if p != "" {
			kept = append(kept, p)
		}
	}
	return strings.Join(kept, ": ")
}

func orElse(s, alt string) string {
	if s == "" {
		return alt
	}
	return s
}
