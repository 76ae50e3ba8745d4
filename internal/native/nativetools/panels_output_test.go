package nativetools

import (
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/native/panels"
	"github.com/agent-knock-knock/akk/internal/testkit/tooltest"
	"github.com/agent-knock-knock/akk/internal/turn"
	"github.com/agent-knock-knock/akk/internal/turn/dispatch"
)

func TestResultsOfPanelToolsFitTheirSchemas(t *testing.T) {
	const terminal = "terminal:v2:tmux:claude:a:0.0:1"
	var (
		yes, at  = true, time.Unix(1_700_000_000, 0)
		subject  = panels.Subject{TerminalID: terminal, Agent: "claude", Version: "2.1.332", Profile: "claude/2"}
		setting  = agent.Setting{Model: "sonnet", Effort: "high"}
		trouble  = &panels.Trouble{Stage: panels.EnterUncertain, Diagnostic: panels.EvidenceUnproven, Reason: "why", Open: "model"}
		models   = []agent.Model{{ID: "sonnet", Label: "Sonnet", Efforts: []string{"low", "high"}}, {ID: "plain", Label: "Plain", Description: "words", Efforts: []string{agent.NoEffort}}}
		choices  = []agent.Permission{{ID: "default", Label: "Default"}, {ID: "bypass", Label: "Bypass", NeedsPerson: true}}
		typed    = panels.Submission{Command: "/status", Enters: 1, Materialization: "exact"}
		left     = &panels.Dismissal{Keys: []string{"Escape"}, Count: 1, RestoredIdle: true}
		proved   = panels.Identity{Status: "identified", Subject: subject, ThreadID: "t", Records: string(agent.ThreadAmbiguous), Agrees: &yes, IdentifiedAt: &at, ExpiresAt: &at}
		unproved = panels.Identity{Status: "uncertain", Subject: subject, Records: string(agent.ThreadUnavailable), Trouble: trouble, DoNotRetry: true}
		task     = turn.Turn{ID: "turn-1", SessionID: "session-20260102T030405-00000000", MessageID: "message-1", Status: turn.WaitingForAgent, Stage: turn.Accepted, ThreadID: "t"}
		want     = identifyAndSendInput{TerminalID: terminal, Request: "x"}
	)
	doubtful := task
	doubtful.Stage, doubtful.ThreadID = turn.Uncertain, ""
	for name, c := range map[string]struct {
		tool, args string
		out        any
	}{
		"a panel that was read": {"native_inspect", `,"inspection":"status"`, panels.Inspection{Status: "observed", Inspection: "status", Subject: subject, ThreadID: "t",
			Native: &panels.NativeStatus{Kind: "native_status", Fields: []agent.Field{{Name: "Model", Value: "sonnet"}}, Excerpt: "Model: sonnet"}, Submission: typed, Dismissal: left}},
		"a panel that was not":     {"native_inspect", `,"inspection":"status"`, panels.Inspection{Status: "uncertain", Inspection: "status", Subject: subject, Submission: typed, Trouble: trouble, DoNotRetry: true}},
		"models":                   {"model_options", "", panels.ModelOptions{Status: "observed", Subject: subject, Scope: "current_session", Effective: &setting, Models: models, ValidUntil: &at}},
		"no models":                {"model_options", "", panels.ModelOptions{Status: "uncertain", Subject: subject, Scope: "current_session", Models: []agent.Model{}, Trouble: trouble, DoNotRetry: true}},
		"a chosen model":           {"set_model", `,"model":"sonnet","reasoning_effort":"high"`, panels.ModelChange{Outcome: "changed", Subject: subject, Scope: "current_session", Requested: setting, Effective: &setting, Defaults: &setting, DefaultsChanged: &yes}},
		"a doubtful model":         {"set_model", `,"model":"sonnet","reasoning_effort":"high"`, panels.ModelChange{Outcome: "uncertain", Subject: subject, Scope: "current_session", Requested: setting, Trouble: trouble, DoNotRetry: true}},
		"a closed panel":           {"repair_model_control", "", panels.Repair{Outcome: panels.Restored, Subject: subject, Closed: "model"}},
		"nothing to close":         {"repair_model_control", "", panels.Repair{Outcome: panels.NothingToRepair, Subject: subject}},
		"a panel that stays":       {"repair_model_control", "", panels.Repair{Outcome: "uncertain", Subject: subject, Trouble: trouble, DoNotRetry: true}},
		"modes":                    {"permission_options", "", panels.PermissionOptions{Status: "observed", Subject: subject, Scope: "current_session", Current: "default", Choices: choices}},
		"no modes":                 {"permission_options", "", panels.PermissionOptions{Status: "uncertain", Subject: subject, Scope: "current_session", Choices: []agent.Permission{}, Trouble: trouble, DoNotRetry: true}},
		"a chosen mode":            {"set_permissions", `,"mode":"default"`, panels.PermissionChange{Outcome: "already_effective", Subject: subject, Scope: "current_session", Requested: "default", Effective: "default"}},
		"a doubtful mode":          {"set_permissions", `,"mode":"default"`, panels.PermissionChange{Outcome: "uncertain", Subject: subject, Scope: "current_session", Requested: "default", Trouble: trouble, DoNotRetry: true}},
		"a proved thread":          {"identify_foreground", "", proved},
		"an unproved thread":       {"identify_foreground", "", unproved},
		"a task that was sent":     {"identify_and_send", `,"request":"x"`, newIdentifyAndSendOutput(want, panels.IdentifiedSend{Identity: proved, Sent: &dispatch.SendResult{Turn: task}})},
		"a task that may be":       {"identify_and_send", `,"request":"x"`, newIdentifyAndSendOutput(want, panels.IdentifiedSend{Identity: proved, Sent: &dispatch.SendResult{Turn: doubtful, Replayed: true}})},
		"a task that was not sent": {"identify_and_send", `,"request":"x"`, newIdentifyAndSendOutput(want, panels.IdentifiedSend{Identity: unproved})},
	} {
		t.Run(name, func(t *testing.T) {
			fits := tooltest.Fits[panelInput]
			switch c.tool {
			case "native_inspect":
				fits = tooltest.Fits[inspectInput]
			case "set_model":
				fits = tooltest.Fits[setModelInput]
			case "set_permissions":
				fits = tooltest.Fits[setPermissionsInput]
			case "identify_and_send":
				fits = tooltest.Fits[identifyAndSendInput]
			}
			fits(t, prefix+c.tool, `{"terminal_id":"`+terminal+`"`+c.args+`}`, c.out)
		})
	}
}
