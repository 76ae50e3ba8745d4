package standin

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/agent-knock-knock/akk/internal/testkit/gobuild"
)

// TB is what the helpers need of a testing.TB. Package testing is not imported because
// the program itself links this package.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
	TempDir() string
	Cleanup(func())
}

// Setup is one stand-in for one test: its own home, records and gates. It starts nothing;
// a test starts Command in a pane.
type Setup struct {
	Agent  string
	Bin    string // the executable, named like the agent
	Home   string // HOME of the agent
	Cwd    string // the agent's working folder
	Record string
	Events string
	Gates  string
	Mode   string   // STANDIN_MODE
	Extra  []string // further NAME=value of the environment, such as CASE_ID=...
}

// New prepares a stand-in for agent (Codex or Claude) with the given modes.
func New(tb TB, agent string, modes ...string) *Setup {
	tb.Helper()
	dir := tb.TempDir()
	s := &Setup{
		Agent: agent, Bin: Build(tb, agent), Home: filepath.Join(dir, "home"), Cwd: filepath.Join(dir, "proj"),
		Record: filepath.Join(dir, "stdin.bytes"), Events: filepath.Join(dir, "events.jsonl"),
		Gates: filepath.Join(dir, "gates"), Mode: strings.Join(modes, ","),
	}
	if _, err := ParseMode(s.Mode); err != nil {
		tb.Fatalf("%v", err)
	}
	tb.Cleanup(func() { s.end(tb) })
	for _, d := range []string{s.Home, s.Cwd, s.Gates} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			tb.Fatalf("standin: %v", err)
		}
	}
	return s
}

const endLimit = 10 * time.Second

// end kills what was started of this Setup, before its folder is removed: an agent that
// is told to go by its terminal still writes its last records.
func (s *Setup) end(tb TB) {
	deadline := time.Now().Add(endLimit)
	for _, e := range s.EventLog(tb) {
		for e.Ev == "start" && s.runs(e.PID) {
			if time.Now().After(deadline) {
				tb.Fatalf("standin %d does not end", e.PID)
			}
			syscall.Kill(e.PID, syscall.SIGKILL) // an error means that it has ended
			time.Sleep(eventPoll)
		}
	}
}

// runs reports whether pid still is a process of this Setup's executable. Without /proc
// nobody can tell, and nothing is killed.
func (s *Setup) runs(pid int) bool {
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	return err == nil && strings.TrimSuffix(exe, " (deleted)") == s.Bin
}

// Env is the environment that Command sets.
func (s *Setup) Env() []string {
	return append([]string{
		"HOME=" + s.Home, "CODEX_HOME=", "CLAUDE_CONFIG_DIR=", "STANDIN_RECORD=" + s.Record,
		"STANDIN_EVENTS=" + s.Events, "STANDIN_GATES=" + s.Gates, "STANDIN_MODE=" + s.Mode,
	}, s.Extra...)
}

// Command is the shell command of a pane: the stand-in replaces the shell, so the pane's
// first process is the agent.
func (s *Setup) Command(args ...string) string {
	words := []string{"cd", quote(s.Cwd), "&&", "exec", "env"}
	for _, e := range s.Env() {
		words = append(words, quote(e))
	}
	words = append(words, quote(s.Bin))
	for _, a := range args {
		words = append(words, quote(a))
	}
	return strings.Join(words, " ")
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// AgentHome is the folder of the agent's own files.
func (s *Setup) AgentHome() string { return filepath.Join(s.Home, "."+s.Agent) }

// ThreadTitle makes Codex show its state and its thread id in the pane title, as a user
// would by configuration.
func (s *Setup) ThreadTitle(tb TB) {
	tb.Helper()
	config := "[tui]\nterminal_title = [\"activity\", \"run-state\", \"thread-id\"]\nanimations = false\n"
	if err := os.MkdirAll(s.AgentHome(), 0o755); err != nil {
		tb.Fatalf("standin: %v", err)
	}
	if err := os.WriteFile(filepath.Join(s.AgentHome(), "config.toml"), []byte(config), 0o600); err != nil {
		tb.Fatalf("standin: %v", err)
	}
}

// Release opens a gate for every prompt that waits or will wait at it.
func (s *Setup) Release(tb TB, gate string) {
	tb.Helper()
	if err := os.WriteFile(filepath.Join(s.Gates, filepath.Base(gate)), nil, 0o600); err != nil {
		tb.Fatalf("standin: %v", err)
	}
}

// Input is everything the stand-in has read so far.
func (s *Setup) Input(tb TB) Input {
	tb.Helper()
	b, err := os.ReadFile(s.Record)
	if err != nil && !os.IsNotExist(err) {
		tb.Fatalf("standin: %v", err)
	}
	return ParseInput(b)
}

// EventLog is everything the stand-in has done so far.
func (s *Setup) EventLog(tb TB) []Event {
	tb.Helper()
	f, err := os.Open(s.Events)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		tb.Fatalf("standin: %v", err)
	}
	defer f.Close()
	var out []Event
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		var e Event
		if json.Unmarshal(sc.Bytes(), &e) == nil { // the last line may be half written
			out = append(out, e)
		}
	}
	return out
}

const eventPoll = 10 * time.Millisecond

// WaitEvent waits until the event kind was logged n times and returns the n-th; the test
// fails after limit.
func (s *Setup) WaitEvent(tb TB, kind string, n int, limit time.Duration) Event {
	tb.Helper()
	deadline := time.Now().Add(limit)
	for {
		seen := 0
		log := s.EventLog(tb)
		for _, e := range log {
			if e.Ev == kind {
				if seen++; seen == n {
					return e
				}
			}
		}
		if time.Now().After(deadline) {
			tb.Fatalf("standin %s: event %q came %d of %d times in %v; log: %v", s.Agent, kind, seen, n, limit, log)
			return Event{}
		}
		time.Sleep(eventPoll)
	}
}

// Logs returns the agent's conversation logs (rollouts or transcripts), oldest name first.
func (s *Setup) Logs() []string {
	pattern := filepath.Join(s.AgentHome(), "sessions", "*", "*", "*", "rollout-*.jsonl")
	if s.Agent == Claude {
		pattern = filepath.Join(s.AgentHome(), "projects", "*", "*.jsonl")
	}
	found, err := filepath.Glob(pattern)
	if err != nil { // only a bad pattern
		panic(err)
	}
	return found
}

// Program is the import path of the stand-in's command.
const Program = "github.com/agent-knock-knock/akk/internal/testkit/standin/cmd/standin"

// Build returns an executable of the stand-in that is named like the agent: drivers know
// agents by that name.
func Build(tb TB, agent string) string {
	tb.Helper()
	return gobuild.Link(tb, Program, agent)
}
