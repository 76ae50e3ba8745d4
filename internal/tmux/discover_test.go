package tmux_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/agent-knock-knock/akk/internal/testkit/faketmux"
	"github.com/agent-knock-knock/akk/internal/tmux"
)

func env(kv map[string]string) func(string) string {
	return func(name string) string { return kv[name] }
}

// found says how often the server was reported.
func found(t *testing.T, kv map[string]string, socket string) int {
	t.Helper()
	servers, err := tmux.Discover(t.Context(), env(kv))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, s := range servers {
		if s.Socket == socket {
			n++
		}
	}
	return n
}

func TestEveryServerOfThisUserIsFoundOnce(t *testing.T) {
	dir := faketmux.ShortDir(t)
	def, named := faketmux.NewNamed(t, dir, "default"), faketmux.NewNamed(t, dir, "other name")
	direct := faketmux.New(t)
	for _, s := range []*faketmux.Server{def, named, direct} {
		s.Run(faketmux.Spec{})
	}
	alias := filepath.Join(dir, "alias")
	if err := os.Symlink(direct.Socket(), alias); err != nil {
		t.Fatal(err)
	}
	for name, kv := range map[string]map[string]string{
		"by TMUX_TMPDIR":            {"TMUX_TMPDIR": dir},
		"by the running processes":  {},
		"by TMUX":                   {"TMUX": def.Socket() + ",1,0"},
		"by AKK_TMUX_SOCKET":        {"AKK_TMUX_SOCKET": alias},
		"by all of these, and once": {"TMUX_TMPDIR": dir, "TMUX": direct.Socket() + ",1,0", "AKK_TMUX_SOCKET": alias},
	} {
		for _, s := range []*faketmux.Server{def, named, direct} {
			if n := found(t, kv, s.Socket()); n != 1 {
				t.Errorf("%s: %s was found %d times", name, s.Socket(), n)
			}
		}
	}
}

func TestOnlySocketsThatSomebodyListensOnAreReported(t *testing.T) {
	server := faketmux.New(t)
	server.Run(faketmux.Spec{})
	server.Kill() // its socket stays
	if _, err := os.Lstat(server.Socket()); err != nil {
		t.Fatalf("the dead server left no socket: %v", err)
	}
	if n := found(t, map[string]string{"AKK_TMUX_SOCKET": server.Socket()}, server.Socket()); n != 0 {
		t.Error("a dead server was reported")
	}
	file := filepath.Join(faketmux.ShortDir(t), "file")
	os.WriteFile(file, nil, 0o600)
	for _, path := range []string{file, "relative", "/nonexistent/s"} {
		if n := found(t, map[string]string{"AKK_TMUX_SOCKET": path, "TMUX": path}, path); n != 0 {
			t.Errorf("%s was reported", path)
		}
	}
}

func TestASocketOfAnotherUserIsNotReported(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("skipped: only root can make a socket that belongs to another user")
	}
	dir := filepath.Join(faketmux.ShortDir(t), "tmux-"+strconv.Itoa(os.Geteuid()))
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "default")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	kv := map[string]string{"TMUX_TMPDIR": filepath.Dir(dir)}
	if n := found(t, kv, socket); n != 1 {
		t.Fatal("the socket was not found while it was ours")
	}
	if err := os.Chown(socket, 12345, 12345); err != nil {
		t.Fatal(err)
	}
	if n := found(t, kv, socket); n != 0 {
		t.Error("a socket of another user was reported")
	}
}

func TestAServerStartedWithARelativeSocketIsFound(t *testing.T) {
	dir := faketmux.ShortDir(t)
	path, err := exec.LookPath("tmux")
	if err != nil {
		t.Skip("skipped: no tmux on PATH, and this test drives a real one")
	}
	run := func(args ...string) {
		cmd := exec.Command(path, append([]string{"-f", "/dev/null", "-S", "rel"}, args...)...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	run("new-session", "-d", "cat")
	defer run("kill-server")
	if n := found(t, nil, filepath.Join(dir, "rel")); n != 1 {
		t.Errorf("found %d times", n)
	}
}

func TestAHangingServerIsStillReported(t *testing.T) {
	server := faketmux.New(t)
	server.Run(faketmux.Spec{})
	pause(t, server)
	if n := found(t, nil, server.Socket()); n != 1 {
		t.Errorf("found %d times", n)
	}
}
