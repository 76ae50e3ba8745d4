package autostart

import (
	"context"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/harness/client"
)

func program(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTheEntryIsTheExplicitOneThenPATHThenThisProgram(t *testing.T) {
	dir := t.TempDir()
	self := program(t, filepath.Join(dir, "self", "agent-knock-knock"), "self")
	other := program(t, filepath.Join(dir, "bin", command), "\x7fELF")
	program(t, filepath.Join(dir, "plain", command), "x")
	if err := os.Chmod(filepath.Join(dir, "plain", command), 0o600); err != nil {
		t.Fatal(err)
	}
	links := filepath.Join(dir, "links")
	if err := os.Mkdir(links, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(links, command)); err != nil {
		t.Fatal(err)
	}
	here := filepath.Join(dir, "bin")
	for name, c := range map[string]struct {
		s    client.Settings
		want string
		own  bool
	}{
		"explicit":               {client.Settings{ServerEntry: "/opt/x", HasSearchPath: true, SearchPath: here}, "/opt/x", false},
		"on PATH":                {client.Settings{HasSearchPath: true, SearchPath: "/nonexistent:" + here}, other, false},
		"not executable":         {client.Settings{HasSearchPath: true, SearchPath: filepath.Join(dir, "plain")}, self, true},
		"a link to this program": {client.Settings{HasSearchPath: true, SearchPath: links + ":" + here}, self, true},
		"empty element":          {client.Settings{HasSearchPath: true, SearchPath: "/nonexistent:", StartDir: here}, other, false},
		"relative element":       {client.Settings{HasSearchPath: true, SearchPath: "bin", StartDir: dir}, other, false},
		"no PATH":                {client.Settings{StartDir: here}, self, true},
		"nothing on PATH":        {client.Settings{HasSearchPath: true, SearchPath: "/nonexistent", StartDir: here}, self, true},
	} {
		e, err := resolve(c.s, self)
		if err != nil || e.path != c.want || e.own != c.own {
			t.Errorf("%s: %+v %v", name, e, err)
		}
	}
}

func TestAProgramThatIsNoServerOfOurProtocolIsNotStarted(t *testing.T) {
	dir := t.TempDir()
	ran := filepath.Join(dir, "ran")
	for name, c := range map[string]struct {
		text, from string
		ok         bool
	}{
		"a script on PATH":      {"#!/bin/sh\ntouch " + ran + "\n", command, false},
		"an explicit script":    {"#!/bin/sh\necho '{\"harness_protocol\":4}'\n", "server entry", true},
		"an older protocol":     {"#!/bin/sh\necho '{\"harness_protocol\":3}'\n", "server entry", false},
		"something else":        {"#!/bin/sh\necho hello\n", "server entry", false},
		"one that fails":        {"#!/bin/sh\necho '{\"harness_protocol\":4}'; exit 1\n", "server entry", false},
		"one that says so much": {"#!/bin/sh\nhead -c 1000000 /dev/zero\n", "server entry", false},
		"empty on PATH":         {"", command, false},
	} {
		path := program(t, filepath.Join(dir, strings.ReplaceAll(name, " ", "-")), c.text)
		err := entry{path: path, from: c.from}.prove(t.Context(), os.Environ())
		if (err == nil) != c.ok || err != nil && !fault.Is(err, client.StartupFailed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := (entry{path: filepath.Join(dir, "missing"), from: "server entry"}).prove(t.Context(), nil); !fault.Is(err, client.StartupFailed) {
		t.Errorf("missing: %v", err)
	}
	if err := (entry{path: dir, from: "server entry"}).prove(t.Context(), nil); !fault.Is(err, client.StartupFailed) {
		t.Errorf("a folder: %v", err)
	}
	if _, err := os.Stat(ran); !os.IsNotExist(err) {
		t.Errorf("the script ran: %v", err)
	}
}

func TestNoInheritedVariableChoosesAProgram(t *testing.T) {
	env := serverEnv([]string{"A=1", "HARNESS_ACP_BRIDGE_SERVER_MODULE=x", "HARNESS_ACP_BRIDGE_SERVER_COMMAND=x", "AKK_HARNESS_SERVER_ENTRY=x", "HARNESS_ACP_BRIDGE_MCP_CONFIG=x", "HARNESS_ACP_BRIDGE_URL=y"})
	if want := []string{"A=1", "HARNESS_ACP_BRIDGE_URL=y"}; !slices.Equal(env, want) {
		t.Errorf("%v", env)
	}
}

// Case 8: whoever answers nowhere else than on this machine is not started.
func TestARemoteServerIsNeverStarted(t *testing.T) {
	t.Setenv("NO_PROXY", "*") // a proxy would answer for it
	dir := filepath.Join(t.TempDir(), "clients")
	// 192.0.2.0/24 is for documentation: nobody answers, or there is no route at all.
	u, err := url.Parse("http://192.0.2.1:8787")
	if err != nil {
		t.Fatal(err)
	}
	s := client.Settings{BaseURL: u, AutoStart: true, Timeout: time.Second, StartupTimeout: time.Second, ClientDir: dir}
	c := client.New(s)
	defer c.Close()
	starter := &Starter{Settings: s, Client: c, Self: "/nonexistent", Log: slog.New(slog.DiscardHandler)}
	ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
	defer stop()
	if _, err := starter.Ensure(ctx); !fault.Is(err, client.RemoteAutostartRefused) {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the client directory: %v", err)
	}
}

func TestTheRegistryKeepsTheServersOfOtherAddresses(t *testing.T) {
	dir := t.TempDir()
	for _, key := range []string{"http://127.0.0.1:1", "http://127.0.0.1:2", "http://127.0.0.1:1"} {
		if err := register(dir, key, record{ServerPID: 7, LogPath: "/x?token=abcdefghijklmnop"}); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(filepath.Join(dir, registryName))
	if err != nil || strings.Count(string(b), "http://127.0.0.1:1\"") != 1 || !strings.Contains(string(b), "http://127.0.0.1:2\"") || strings.Contains(string(b), "abcdefghijklmnop") {
		t.Errorf("%s %v", b, err)
	}
	if info, err := os.Stat(filepath.Join(dir, registryName)); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
}
