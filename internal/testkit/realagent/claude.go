package realagent

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// prepareClaude writes what makes Claude Code start without questions: onboarding done,
// the key approved, the folder trusted.
func (a *Agent) prepareClaude() (command []string, err error) {
	claude := filepath.Join(a.Bin, "claude")
	out, err := exec.Command(claude, "--version").Output()
	if err != nil {
		return nil, fmt.Errorf("realagent: claude --version: %w", err)
	}
	version, _, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	if a.Beside != nil {
		return []string{claude}, nil // it writes these files now and then
	}
	type dict = map[string]any
	files := map[string]any{
		filepath.Join(a.Home, ".claude.json"): dict{
			"numStartups": 5, "autoUpdates": false, "theme": "dark", "hasCompletedOnboarding": true, "lastOnboardingVersion": version,
			"hasSeenAutoDefaultNudge": true, // 2.1.332 asks once, over the composer, whether it may stop asking
			"customApiKeyResponses":   dict{"approved": []string{key[len(key)-20:]}, "rejected": []string{}},
			"projects": dict{a.Cwd: dict{"allowedTools": []string{}, "hasTrustDialogAccepted": true,
				"projectOnboardingSeenCount": 5, "hasCompletedProjectOnboarding": true}},
		},
		filepath.Join(a.AgentHome, "settings.json"): dict{
			"env": dict{"DISABLE_AUTOUPDATER": "1"},
			// 2.1.332 starts in a mode of its own in which nobody is asked.
			"permissions": dict{"defaultMode": "default"},
		},
	}
	for path, doc := range files {
		b, err := json.MarshalIndent(doc, "", "  ")
		if err != nil {
			return nil, fmt.Errorf("realagent: %w", err)
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			return nil, fmt.Errorf("realagent: %w", err)
		}
	}
	return []string{claude}, nil
}

// Print runs `claude -p` with one prompt in a home of its own in o.Dir, with one MCP server
// called name whose tools it may call without asking, and returns what it printed: one JSON
// object with the result. The server gets the environment of Claude Code and env (NAME=value).
// Of o also Bin, ModelURL, Env and CaseID are used.
func Print(ctx context.Context, o Options, prompt, name string, env []string, command string, args ...string) ([]byte, error) {
	o.Mode = ClaudePlain
	a := newAgent(o)
	if err := a.folders(); err != nil {
		return nil, err
	}
	argv, err := a.prepareClaude()
	if err != nil {
		return nil, err
	}
	vars := map[string]string{}
	for _, e := range env {
		k, v, _ := strings.Cut(e, "=")
		vars[k] = v
	}
	config, err := json.Marshal(map[string]any{"mcpServers": map[string]any{name: map[string]any{"command": command, "args": args, "env": vars}}})
	if err != nil {
		return nil, fmt.Errorf("realagent: %w", err)
	}
	cmd := exec.CommandContext(ctx, argv[0], "-p", prompt, "--output-format", "json", "--mcp-config", string(config), "--strict-mcp-config",
		"--allowedTools", "mcp__"+name)
	cmd.Env, cmd.Dir = a.env(), a.Cwd
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return out, fmt.Errorf("realagent: claude -p: %w: %s", err, stderr.String())
	}
	return out, nil
}

// claudeReady: the status file says idle, and the screen shows the composer.
func (a *Agent) claudeReady(ctx context.Context) (bool, error) {
	pid := fmt.Sprint(a.PanePID)
	if a.Launcher != "" {
		pid = "*" // the wrapper's child
	}
	// Old versions write no status file; then the composer is all there is.
	if files, _ := filepath.Glob(filepath.Join(a.AgentHome, "sessions", pid+".json")); len(files) > 0 {
		b, err := os.ReadFile(files[0])
		if err != nil {
			return false, err
		}
		var status struct {
			Status string `json:"status"`
		}
		if err := json.Unmarshal(b, &status); err != nil || status.Status != "idle" {
			return false, err
		}
	}
	screen, err := a.tmux(ctx, "capture-pane", "-p", "-t", a.PaneID)
	return strings.Contains(screen, "\n❯\u00a0"), err
}
