package claude

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/fault"
)

func TestDefaultsComeFromThePersonsSettings(t *testing.T) {
	dir := t.TempDir()
	a := New(Options{})
	n := agent.Native{Extra: map[string]string{extraConfigDir: dir}}
	if got, err := a.Defaults(t.Context(), agent.Ref{}, n); err != nil || got != (agent.Setting{}) {
		t.Errorf("without a file: %+v %v", got, err)
	}
	for text, want := range map[string]agent.Setting{
		`{"model":"sonnet[1m]","effortLevel":"xhigh","other":1}`: {Model: "sonnet[1m]", Effort: "xhigh"},
		`{}`: {},
	} {
		if err := os.WriteFile(filepath.Join(dir, settingsFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := a.Defaults(t.Context(), agent.Ref{}, n); err != nil || got != want {
			t.Errorf("%s: %+v %v", text, got, err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, settingsFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Defaults(t.Context(), agent.Ref{}, n); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("half a file: %v", err)
	}
}

func TestPanelsAreKnownFromTheOldestSeenVersionOn(t *testing.T) {
	for version, ok := range map[string]bool{"2.1.0": true, "2.1.197": true, "2.2.0": true, "3.0.0": true, "2.0.99": false, "1.9.0": false, "": false, "x": false} {
		if _, err := New(Options{}).PanelProfile(version); (err == nil) != ok || err != nil && fault.CodeOf(err) != agent.PanelsUnsupported {
			t.Errorf("%q: %v", version, err)
		}
	}
}
