// Command standin plays the terminal program of a coding agent, see package standin. It
// plays the agent that its own file name says ("codex", "claude") or --as.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/agent-knock-knock/akk/internal/testkit/standin"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	cfg := standin.Config{
		Agent: filepath.Base(os.Args[0]), In: os.Stdin, Out: os.Stdout,
		Gates: os.Getenv("STANDIN_GATES"), Record: os.Getenv("STANDIN_RECORD"), Events: os.Getenv("STANDIN_EVENTS"),
	}
	for i := 0; i < len(args); i++ {
		name, value, _ := strings.Cut(args[i], "=")
		switch {
		case name == "--as" && value != "":
			cfg.Agent = value
		case name == "--as" && i+1 < len(args):
			i++
			cfg.Agent = args[i]
		case (args[i] == "resume" || args[i] == "--resume") && i+1 < len(args):
			i++
			cfg.Resume = args[i]
		case args[i] == "--version":
			return version(cfg.Agent)
		}
		// other flags of the real program change nothing that is played here
	}
	var err error
	if cfg.Mode, err = standin.ParseMode(os.Getenv("STANDIN_MODE")); err != nil {
		return err
	}
	if cfg.Cwd, err = os.Getwd(); err != nil {
		return err
	}
	if cfg.Home, err = agentHome(cfg.Agent); err != nil {
		return err
	}
	return standin.Run(context.Background(), cfg)
}

func version(agent string) error {
	if agent == standin.Claude {
		fmt.Println(standin.ClaudeVersion + " (Claude Code)")
	} else {
		fmt.Println("codex-cli " + standin.CodexVersion)
	}
	return nil
}

// agentHome is the folder of the agent's own files, found as the real program finds it.
func agentHome(agent string) (string, error) {
	variable, name := "CODEX_HOME", ".codex"
	if agent == standin.Claude {
		variable, name = "CLAUDE_CONFIG_DIR", ".claude"
	}
	if dir := os.Getenv(variable); dir != "" {
		return dir, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(home, name), nil
}
