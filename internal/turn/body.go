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

func cancelledBody(t Turn) string {
	how := "the agent's own record shows that it stopped"
	if !t.StopProved {
		how = "the agent is idle, but no record of its own says how the task ended; look at what it did until then"
	}
	return fmt.Sprintf("The %s task was cancelled as asked: %s.\nTurn %s, terminal %s.", t.Agent, how, t.ID, t.Terminal)
}

func stalledBody(t Turn) string {
	next := "Look at the terminal with agent_knock_knock_status, then decide."
	if t.Stage == Uncertain || t.Stage == NotAccepted {
		next = "Do not send the task again before you looked at the terminal with agent_knock_knock_status: it may have been taken."
	}
	return fmt.Sprintf("The %s task needs a decision: %s.\nTurn %s, terminal %s.\n%s", t.Agent, t.Reason, t.ID, t.Terminal, next)
}

// promptNotice tells of an open prompt. What the Host can answer is a question; what only a
// person can answer in the pane is an error, told once.
func promptNotice(t Turn, id string) Notice {
	p := t.Prompt
	var b strings.Builder
	n := Notice{MessageID: id, Type: "question", Kind: "approval", RequiresResponse: true, Metadata: map[string]string{"prompt_fingerprint": p.Fingerprint}}
	if p.Kind == PromptApproval {
		fmt.Fprintf(&b, "%s asks for approval: %s", t.Agent, p.Title)
	} else {
		n.Kind = "interaction"
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
	fmt.Fprintf(&b, "\n\nTurn %s, terminal %s. ", t.ID, t.Terminal)
	switch {
	case p.Kind == PromptApproval && p.Approvable:
		b.WriteString("Read it with agent_knock_knock_status, then answer with agent_knock_knock_approve.")
	case p.Kind == PromptQuestion && p.Step != nil && p.Manual == "":
		n.Metadata["interaction_required"], n.Metadata["interaction_id"] = "true", InteractionID(t.ID, p.Fingerprint)
		b.WriteString("Read it with agent_knock_knock_status, then answer with agent_knock_knock_respond_interaction.")
	case p.Kind == PromptQuestion:
		fmt.Fprintf(&b, "A person must answer it in the terminal (%s). Look at it with agent_knock_knock_status.", orElse(p.Manual, orElse(p.Reason, "its layout is not known")))
	default:
		n.Type, n.RequiresResponse = "error", false
		fmt.Fprintf(&b, "It cannot be answered from here (%s); a person must do it in the terminal.", orElse(p.Reason, "its layout is not known"))
	}
	n.Body = b.String()
	return n
}

func uncertainAnswerBody(t Turn) string {
	return fmt.Sprintf("The answer %q to the %s prompt %q may or may not have reached the agent: %s.\nTurn %s, terminal %s.\n"+
		"Look at the terminal with agent_knock_knock_status. Nothing is pressed again; if the prompt is still open, a person must answer it there.",
		t.Answer.Choice, t.Agent, t.Answer.Title, t.Answer.Reason, t.ID, t.Terminal)
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
