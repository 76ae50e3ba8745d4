package autostart

import (
	"encoding/json"
	"log/slog"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/agent-knock-knock/akk/internal/harness/client"
	"github.com/agent-knock-knock/akk/internal/harness/logkeeper"
)

func proved(t *testing.T, dir, nonce string, server, supervisor int) {
	t.Helper()
	b, err := json.Marshal(logkeeper.Proof{Nonce: nonce, ServerPID: server, SupervisorPID: supervisor})
	if err == nil {
		err = logkeeper.WriteAtomic(logkeeper.ProofFile(dir, nonce), b)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// ended is the id of a process that is no more.
func ended(t *testing.T) int {
	t.Helper()
	cmd := exec.Command("/bin/true")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	return cmd.Process.Pid
}

func TestProofsOfKilledSupervisorsAreSwept(t *testing.T) {
	dir := t.TempDir()
	gone, here := strings.Repeat("a", 32), strings.Repeat("b", 32)
	proved(t, dir, gone, 7, ended(t))
	proved(t, dir, here, 7, os.Getpid())
	sweep(dir)
	if _, ok := logkeeper.ReadProof(dir, gone); ok {
		t.Error("the proof of a process that is gone is still there")
	}
	if _, ok := logkeeper.ReadProof(dir, here); !ok {
		t.Error("the proof of a living supervisor is gone")
	}
}

// The proxy that started a server may be killed before it wrote the registry.
func TestAServerWhoseStarterWasKilledIsRegisteredByTheNextClient(t *testing.T) {
	dir := t.TempDir()
	u, err := url.Parse("http://127.0.0.1:8787")
	if err != nil {
		t.Fatal(err)
	}
	s := &Starter{Settings: client.Settings{BaseURL: u, ClientDir: dir}, Log: slog.New(slog.DiscardHandler)}
	s.adopt(client.Pong{PID: 4242})
	if r := registered(dir, s.Settings.Key()); r != (record{}) {
		t.Errorf("a server that nobody proves is registered: %+v", r)
	}
	proved(t, dir, strings.Repeat("a", 32), 17, 18)
	proved(t, dir, strings.Repeat("b", 32), 4242, 19)
	s.adopt(client.Pong{PID: 4242})
	if r := registered(dir, s.Settings.Key()); r.ServerPID != 4242 || r.SupervisorPID != 19 || r.LogPath == "" || r.NonceHash != hashed(strings.Repeat("b", 32)) {
		t.Errorf("%+v", r)
	}
}
