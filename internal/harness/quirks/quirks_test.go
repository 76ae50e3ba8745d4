package quirks_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/harness/quirks"
)

func TestEveryHarnessHasItsCommandLine(t *testing.T) {
	for harness, want := range map[string][]string{
		"codex":     {"codex-acp", "--x"},
		"claude":    {"claude-agent-acp", "--x"},
		"gemini":    {"gemini", "--acp", "--x"},
		"opencode":  {"opencode", "acp", "--x"},
		"agy":       {"agy_acp_server", "--x"},
		"codebuddy": {"codebuddy", "--x", "--model", "m", "--permission-mode", "acceptEdits", "--acp", "--acp-transport", "stdio"},
	} {
		a, ok := quirks.Find(harness)
		got, err := a.Argv("", []string{"--x"}, "m", "edit")
		if !ok || err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v", harness, got, err)
		}
		got, err = a.Argv("/opt/agent", []string{"a"}, "m", "edit")
		if err != nil || !slices.Equal(got, []string{"/opt/agent", "a"}) {
			t.Errorf("%s with a command: %q, %v", harness, got, err)
		}
	}
	if n := len(quirks.Harnesses()); n != 6 {
		t.Errorf("%d harnesses", n)
	}
}

func TestArgumentsThatDetachAreRefused(t *testing.T) {
	codebuddy, _ := quirks.Find("codebuddy")
	codex, _ := quirks.Find("codex")
	for _, c := range []struct {
		agent   quirks.Agent
		arg     string
		refused bool
	}{
		{codex, "--bg", true}, {codex, "--serve=1", true}, {codex, "setsid", true}, {codex, "--model", false},
		{codebuddy, "--model", true}, {codebuddy, "-p", true}, {codebuddy, "--verbose", false},
	} {
		_, err := c.agent.Argv("", []string{c.arg}, "m", "auto")
		if fault.Is(err, quirks.ReservedArgument) != c.refused {
			t.Errorf("%s %s: %v", c.agent.Harness, c.arg, err)
		}
	}
	_, err := quirks.Agent{}.Argv("", nil, "m", "auto")
	if !fault.Is(err, quirks.ReservedArgument) {
		t.Errorf("an unknown harness without a command: %v", err)
	}
}

func TestAGivenEnvironmentWins(t *testing.T) {
	gemini, _ := quirks.Find("gemini")
	env := gemini.Environment(map[string]string{"NO_BROWSER": "", "A": "b"})
	if env["GEMINI_CLI_TRUST_WORKSPACE"] != "true" || env["NO_BROWSER"] != "" || env["A"] != "b" {
		t.Errorf("got %v", env)
	}
	env["GEMINI_CLI_TRUST_WORKSPACE"] = "false"
	if again, _ := quirks.Find("gemini"); again.Env["GEMINI_CLI_TRUST_WORKSPACE"] != "true" {
		t.Error("a caller changed the table")
	}
	if method, ok := gemini.KeyLogin(map[string]string{"GEMINI_API_KEY": "k"}); !ok || method != "gemini-api-key" {
		t.Errorf("%q %t", method, ok)
	}
	if _, ok := gemini.KeyLogin(nil); ok {
		t.Error("a login without a key")
	}
}

func TestALoginStatusIsReadOrUnknown(t *testing.T) {
	codex, _ := quirks.Find("codex")
	codebuddy, _ := quirks.Find("codebuddy")
	yes, no := true, false
	for _, c := range []struct {
		agent  quirks.Agent
		result string
		want   *bool
	}{
		{codex, `{"type":"unauthenticated"}`, &no}, {codex, `{"type":"gateway","name":"fake"}`, &yes}, {codex, `{"type":"api-key"}`, &yes},
		{codex, `{}`, nil}, {codex, `null`, nil}, {codex, `[1]`, nil},
		{codebuddy, `{"userId":"u"}`, &yes}, {codebuddy, `{}`, &no},
	} {
		got := c.agent.LoggedIn(json.RawMessage(c.result))
		if (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
			t.Errorf("%s %s: %v", c.agent.Harness, c.result, got)
		}
	}
}
