// Package realacp sets real agents of the Agent Client Protocol up, offline, for end-to-end
// tests: their pinned npm packages, a home of their own, and a configuration that knows
// only a scripted model server on this machine.
//
// It starts nothing: it says with which command line and environment an agent runs. It uses
// no account and no key, writes only into the test's folders and the installation cache,
// and knows nothing of the product.
package realacp

import (
	"embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/agent-knock-knock/akk/internal/testkit/realagent"
)

//go:embed */package.json */package-lock.json
var locks embed.FS

// Agent is a real agent that is ready to be started.
type Agent struct {
	Harness string // codex, claude, gemini, opencode
	Argv    []string
	Env     map[string]string // beside the usual PATH, HOME and the like
	Cwd     string            // an empty folder that it trusts
	Login   string            // the authenticate method that it wants first, "" for none
	Model   string            // the id of its only model
	AskMode string            // its own mode in which a command asks a person, "" for the default
}

// key is what stands for a key; nobody checks it.
const key = "akk-offline-key-0123456789abcdef"

// Harnesses are the agents that can be set up here.
func Harnesses() []string { return []string{"claude", "codex", "gemini", "opencode"} }

// Prepare installs and configures an agent for the model server at modelURL. Without an
// installation, and without permission to make one, the test is skipped.
func Prepare(tb testing.TB, harness, modelURL string) *Agent {
	tb.Helper()
	if harness == "opencode" && runtime.GOOS+runtime.GOARCH != "linuxamd64" {
		tb.Skip("the pinned package of OpenCode is that of Linux on x64")
	}
	var packages realagent.Packages
	for name, data := range map[string]*[]byte{"package.json": &packages.JSON, "package-lock.json": &packages.Lock} {
		text, err := locks.ReadFile(harness + "/" + name)
		if err != nil {
			tb.Fatal(err)
		}
		*data = text
	}
	bin := packages.Need(tb)
	home, err := os.MkdirTemp("", "akk-acp-") // short: some agents make sockets below it
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(home) }) // an agent may still write when it is killed
	a := &Agent{Harness: harness, Cwd: filepath.Join(home, "work"), Env: map[string]string{
		"PATH": bin + string(filepath.ListSeparator) + os.Getenv("PATH"), "HOME": home,
		"XDG_CONFIG_HOME": filepath.Join(home, ".config"), "XDG_DATA_HOME": filepath.Join(home, ".local"),
		"XDG_CACHE_HOME": filepath.Join(home, ".cache"), "XDG_STATE_HOME": filepath.Join(home, ".state"),
	}}
	if err := os.Mkdir(a.Cwd, 0o700); err != nil {
		tb.Fatal(err)
	}
	set := map[string]func(home, modelURL, bin string) error{
		"codex": a.codex, "claude": a.claude, "gemini": a.gemini, "opencode": a.opencode,
	}[harness]
	if err := set(home, modelURL, bin); err != nil {
		tb.Fatal(err)
	}
	return a
}

const codexConfig = `model = "fake-model"
model_provider = "fake"
approval_policy = "on-request"
sandbox_mode = "workspace-write"
check_for_update_on_startup = false

[model_providers.fake]
name = "fake"
base_url = %q
wire_api = "responses"
env_key = "AKK_FAKE_KEY"
request_max_retries = 1
stream_max_retries = 1

[analytics]
enabled = false

[projects.%q]
trust_level = "trusted"
`

func (a *Agent) codex(home, modelURL, _ string) error {
	a.Argv, a.Model, a.AskMode = []string{"codex-acp"}, "fake-model", "workspace-write"
	a.Env["AKK_FAKE_KEY"], a.Env["CODEX_HOME"], a.Env["NO_BROWSER"] = key, filepath.Join(home, ".codex"), "1"
	if err := os.Mkdir(a.Env["CODEX_HOME"], 0o700); err != nil {
		return err
	}
	text := fmt.Sprintf(codexConfig, modelURL+"/v1", a.Cwd)
	return os.WriteFile(filepath.Join(a.Env["CODEX_HOME"], "config.toml"), []byte(text), 0o600)
}

func (a *Agent) claude(_, modelURL, _ string) error {
	a.Argv, a.Model, a.AskMode = []string{"claude-agent-acp"}, "default", "default"
	a.Env["ANTHROPIC_BASE_URL"], a.Env["ANTHROPIC_API_KEY"] = modelURL, key
	a.Env["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"], a.Env["DISABLE_AUTOUPDATER"] = "1", "1"
	return nil
}

func (a *Agent) gemini(_, modelURL, _ string) error {
	a.Argv, a.Model, a.AskMode, a.Login = []string{"gemini", "--acp"}, "gemini-2.5-flash", "default", "gemini-api-key"
	a.Env["GEMINI_API_KEY"], a.Env["GOOGLE_GEMINI_BASE_URL"], a.Env["GEMINI_CLI_TRUST_WORKSPACE"] = key, modelURL, "true"
	a.Env["GEMINI_TELEMETRY_ENABLED"] = "false"
	return nil
}

func (a *Agent) opencode(_, modelURL, bin string) error {
	type dict = map[string]any
	// The package has the executable without the wrapper's link.
	bin = filepath.Join(filepath.Dir(bin), "opencode-linux-x64", "bin")
	a.Argv, a.Model = []string{"opencode", "acp"}, "fake/fake-1"
	a.Env["PATH"] = bin + string(filepath.ListSeparator) + a.Env["PATH"]
	config, err := json.Marshal(dict{
		"model": a.Model, "small_model": a.Model, "enabled_providers": []string{"fake"}, "autoupdate": false, "share": "disabled",
		"permission": dict{"bash": "ask", "edit": "ask"},
		"provider": dict{"fake": dict{"npm": "@ai-sdk/openai-compatible", "options": dict{"baseURL": modelURL + "/v1", "apiKey": key},
			"models": dict{"fake-1": dict{"tool_call": true}}}},
	})
	a.Env["OPENCODE_CONFIG_CONTENT"] = string(config)
	return err
}
