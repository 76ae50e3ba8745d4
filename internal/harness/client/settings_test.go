package client_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/harness"
	"github.com/agent-knock-knock/akk/internal/harness/client"
)

func load(dir string, env map[string]string) (client.Settings, error) {
	return client.Load(client.Source{LookupEnv: func(name string) (string, bool) { v, ok := env[name]; return v, ok }, Dir: dir, Home: "/home/somebody"})
}

// Case 13.
func TestABaseURLWithMoreThanAnAddressIsRefused(t *testing.T) {
	for _, bad := range []string{"http://user:pass@127.0.0.1:1", "http://user@127.0.0.1:1", "http://127.0.0.1:1?q=1", "http://127.0.0.1:1?", "http://127.0.0.1:1#f",
		"http://127.0.0.1:1#", "ftp://127.0.0.1", "127.0.0.1:8787", "http://", "http://127.0.0.1:0", "http://127.0.0.1:65536", "http://127.0.0.1:x", "::"} {
		_, err := load("/", map[string]string{"AKK_HARNESS_URL": bad})
		if !fault.Is(err, harness.InvalidConfig) {
			t.Errorf("%s: %v", bad, err)
		} else if _, msg, _ := fault.Public(err); strings.Contains(msg, "pass") || !strings.Contains(msg, "AKK_HARNESS_URL") {
			t.Errorf("%s: %s", bad, msg)
		}
	}
	for good, key := range map[string]string{"http://127.0.0.1:9/": "http://127.0.0.1:9", "https://agents.example.test/base/": "https://agents.example.test/base", "http://[::1]:9": "http://[::1]:9"} {
		if s, err := load("/", map[string]string{"AKK_HARNESS_URL": good}); err != nil || s.Key() != key {
			t.Errorf("%s: %q %v", good, s.Key(), err)
		}
	}
}

// Case 13: environment, then the file, then the default; ours before the other name.
func TestTheEnvironmentWinsOverTheFileAndTheFileOverTheDefaults(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "client.json")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := load(dir, nil)
	if err != nil || s.Key() != client.DefaultURL || s.Timeout != client.DefaultTimeout || !s.AutoStart || s.StartupTimeout != client.DefaultStartupTimeout ||
		s.ClientDir != "/home/somebody/.harness-acp-bridge-client" || s.Elicit != client.ElicitAuto || s.ServerEntry != "" {
		t.Fatalf("%+v %v", s, err)
	}
	write(`{"baseUrl":"http://127.0.0.1:7","timeoutMs":5000,"autoStart":false,"serverEntry":"bin/entry","configPath":"h.yaml","startupTimeoutMs":6000}`)
	env := map[string]string{"HARNESS_ACP_BRIDGE_MCP_CONFIG": "client.json"}
	s, err = load(dir, env)
	if err != nil || s.Key() != "http://127.0.0.1:7" || s.Timeout != 5*time.Second || s.AutoStart || s.StartupTimeout != 6*time.Second ||
		s.ServerEntry != filepath.Join(dir, "bin/entry") || s.ConfigPath != filepath.Join(dir, "h.yaml") {
		t.Fatalf("%+v %v", s, err)
	}
	for name, value := range map[string]string{"URL": "http://127.0.0.1:8", "TIMEOUT_MS": "7000", "AUTOSTART": "true", "STARTUP_TIMEOUT_MS": "8000", "SERVER_ENTRY": "file:///opt/entry", "CONFIG": "/etc/h.yaml"} {
		env["HARNESS_ACP_BRIDGE_"+name] = value
	}
	env["AKK_HARNESS_URL"], env["AKK_HARNESS_TIMEOUT_MS"] = "http://127.0.0.1:9", "  " // a blank one is not set
	s, err = load(dir, env)
	if err != nil || s.Key() != "http://127.0.0.1:9" || s.Timeout != 7*time.Second || !s.AutoStart || s.StartupTimeout != 8*time.Second || s.ServerEntry != "/opt/entry" || s.ConfigPath != "/etc/h.yaml" {
		t.Fatalf("%+v %v", s, err)
	}
	for _, bad := range []string{`{"foo":1}`, `{"BASEURL":"http://127.0.0.1:1"}`, `[]`, `null`, `{"timeoutMs":"1"}`, `{"timeoutMs":0}`, `{"autoStart":"true"}`, `{"serverEntry":""}`, `{`,
		`{"timeoutMs":1,"timeoutMs":2}`, `{} {}`, strings.Repeat(" ", 70<<10) + "{}"} {
		write(bad)
		if _, err := load(dir, map[string]string{"AKK_HARNESS_MCP_CONFIG": path}); !fault.Is(err, harness.InvalidConfig) {
			t.Errorf("%.40s: %v", bad, err)
		}
	}
	for name, bad := range map[string]string{"MCP_CONFIG": "/no/such/file", "TIMEOUT_MS": "1.5", "STARTUP_TIMEOUT_MS": "0", "AUTOSTART": "maybe", "ELICIT": "often", "SERVER_ENTRY": "file://elsewhere/x", "ELICIT_TIMEOUT_MS": "-1"} {
		if _, err := load(dir, map[string]string{"AKK_HARNESS_" + name: bad}); !fault.Is(err, harness.InvalidConfig) {
			t.Errorf("%s=%s: %v", name, bad, err)
		}
	}
}

// Case 8: only an address of this machine is one at which a server may be started.
func TestOnlyAddressesOfThisMachineAreLoopback(t *testing.T) {
	for url, want := range map[string]bool{"http://127.0.0.1:1": true, "http://127.9.9.9:1": true, "http://localhost": true, "http://[::1]:1": true,
		"http://10.0.0.5:8787": false, "http://0.0.0.0:1": false, "http://localhost.example.test": false, "http://127.0.0.1.example.test": false} {
		s, err := load("/", map[string]string{"AKK_HARNESS_URL": url})
		if err != nil || s.Loopback() != want {
			t.Errorf("%s: %v %v", url, s.Loopback(), err)
		}
	}
}
