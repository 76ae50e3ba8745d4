package discover_test

import (
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/agent/claude"
	"github.com/agent-knock-knock/akk/internal/agent/codex"
	"github.com/agent-knock-knock/akk/internal/discover"
	"github.com/agent-knock-knock/akk/internal/testkit/faketmux"
	"github.com/agent-knock-knock/akk/internal/testkit/standin"
)

const agentStart = 30 * time.Second

// BenchmarkScan is what list, send and watch pay to see the world: 20 agents in one tmux
// server, screens included.
func BenchmarkScan(b *testing.B) {
	server := faketmux.New(b)
	for i := range 20 {
		kind := standin.Codex
		if i%4 == 0 {
			kind = standin.Claude
		}
		s := standin.New(b, kind)
		server.Run(faketmux.Spec{Argv: []string{"sh", "-c", s.Command()}})
		s.WaitEvent(b, "ready", 1, agentStart)
	}
	scanner := discover.New([]string{server.Socket()}, codex.New(codex.Options{}), claude.New(claude.Options{}))
	for b.Loop() {
		scan, err := scanner.Scan(b.Context(), discover.Options{Screens: true})
		if err != nil || len(scan.Terminals) != 20 || len(scan.Problems) != 0 {
			b.Fatalf("%d terminals, %v, %v", len(scan.Terminals), scan.Problems, err)
		}
	}
}
