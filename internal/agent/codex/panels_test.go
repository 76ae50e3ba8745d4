package codex

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/fault"
)

func TestPanelsAreKnownFromTheOldestSeenVersionOn(t *testing.T) {
	for version, ok := range map[string]bool{"0.171.0": true, "0.172.0-alpha.1": true, "1.0.0": true, "0.170.9": false, "0.98.0": false, "": false, "x": false} {
		if _, err := New(Options{}).PanelProfile(version); (err == nil) != ok || err != nil && fault.CodeOf(err) != agent.PanelsUnsupported {
			t.Errorf("%q: %v", version, err)
		}
	}
}

func TestDefaultsComeFromTheHomesConfiguration(t *testing.T) {
	home := t.TempDir()
	a := New(Options{})
	if _, err := a.Defaults(t.Context(), agent.Ref{}, agent.Native{}); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("without a home: %v", err)
	}
	n := agent.Native{Extra: map[string]string{extraHome: home}}
	if got, err := a.Defaults(t.Context(), agent.Ref{}, n); err != nil || got != (agent.Setting{}) {
		t.Errorf("without a file: %+v %v", got, err)
	}
	if err := os.WriteFile(filepath.Join(home, configFile), []byte("model = \"m\"\nmodel_reasoning_effort = \"low\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := a.Defaults(t.Context(), agent.Ref{}, n); err != nil || got != (agent.Setting{Model: "m", Effort: "low"}) {
		t.Errorf("%+v %v", got, err)
	}
}
