package realagent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// npmPackages are the agents' packages.
var npmPackages = map[string]string{"codex": "@openai/codex", "claude": "@anthropic-ai/claude-code"}

var exactVersion = regexp.MustCompile(`^\d+\.\d+\.\d+[-.0-9A-Za-z]*$`)

// Release is one installed version of one agent.
type Release struct {
	Kind    string // codex, claude
	Version string // exact
	Bin     string // folder of the executable
}

// InstallRelease installs a version of an agent from the npm registry into the cache of
// [Packages.Install], if it is not there yet. version is exact or a tag such as "latest".
func InstallRelease(ctx context.Context, kind, version string) (Release, error) {
	name, ok := npmPackages[kind]
	if !ok {
		return Release{}, fmt.Errorf("realagent: no agent %q", kind)
	}
	if !exactVersion.MatchString(version) {
		out, err := exec.CommandContext(ctx, "npm", "view", name+"@"+version, "version").Output()
		if err != nil {
			return Release{}, fmt.Errorf("realagent: npm view %s@%s: %w", name, version, err)
		}
		if version = strings.TrimSpace(string(out)); !exactVersion.MatchString(version) {
			return Release{}, fmt.Errorf("realagent: npm says that %s is version %q", name, version)
		}
	}
	root, err := cacheRoot()
	if err != nil {
		return Release{}, err
	}
	dir := filepath.Join(root, kind+"-"+version)
	r := Release{kind, version, filepath.Join(dir, "node_modules", ".bin")}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return Release{}, fmt.Errorf("realagent: %w", err)
	}
	unlock, err := lock(dir + ".lock")
	if err != nil {
		return Release{}, err
	}
	defer unlock()
	if _, err := os.Stat(filepath.Join(dir, complete)); err == nil {
		return r, nil
	}
	manifest, err := json.Marshal(map[string]any{"name": "akk-agent-release", "private": true, "dependencies": map[string]string{name: version}})
	if err != nil {
		return Release{}, fmt.Errorf("realagent: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "package.json"), manifest, 0o644); err != nil {
		return Release{}, fmt.Errorf("realagent: %w", err)
	}
	cmd := exec.CommandContext(ctx, "npm", "install", "--no-audit", "--no-fund")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return Release{}, errors.Join(fmt.Errorf("realagent: npm install %s@%s: %w: %s", name, version, err, out), os.RemoveAll(dir))
	}
	return r, os.WriteFile(filepath.Join(dir, complete), nil, 0o644)
}
