package control_test

import (
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/agent-knock-knock/akk/internal/control"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/supervise"
	"github.com/agent-knock-knock/akk/internal/testkit/freeze"
)

// childEnv makes the test binary a Bridge that only answers, until it is killed.
const childEnv = "CONTROL_TEST_BASE"

func TestMain(m *testing.M) {
	if base := os.Getenv(childEnv); base != "" {
		if _, err := control.Serve(base, "bridge-child", func() control.Description { return control.Description{BridgeID: "bridge-child"} }, slog.New(slog.DiscardHandler)); err != nil {
			panic(err)
		}
		os.Stdout.WriteString("up\n")
		select {}
	}
	goleak.VerifyTestMain(m)
}

// base is a short path: socket paths have little room.
func base(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "akkc")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "b")
}

func TestABridgeDescribesItselfToItsUserOnly(t *testing.T) {
	dir := base(t)
	want := control.Description{BridgeID: "bridge-a", PID: 7, Version: "1.2.3", WireVersion: 1, Host: "h", HostVersion: "1.0.0", ProfileID: "p", ProfileRevision: "r",
		ProfileFingerprint: "f", ProfileDrift: "it changed", StoreDir: "/s\xff", StoreWritable: true, StartedAt: time.Now(),
		Workers: []supervise.WorkerStatus{{Name: "akk-monitor", Serves: "turn-1", PID: 9, Age: time.Minute, LastHeartbeat: time.Now(), Restarts: 2, Fingerprint: "f", State: supervise.StateServing, LastError: "it died"}}}
	s, err := control.Serve(dir, "bridge-a", func() control.Description { return want }, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for path, mode := range map[string]fs.FileMode{dir: 0o700, filepath.Join(dir, "bridge-a.sock"): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v %v", path, info, err)
		}
	}
	got, err := control.Ask(t.Context(), dir)
	if err != nil || len(got) != 1 || got[0].Err != nil {
		t.Fatalf("%+v %v", got, err)
	}
	if diff := cmp.Diff(want, got[0].Description, cmpopts.EquateApproxTime(time.Microsecond), cmp.Comparer(func(a, b time.Duration) bool { return (a - b).Abs() < time.Minute })); diff != "" {
		t.Error(diff)
	}
	s.Stop()
	if got, err := control.Ask(t.Context(), dir); err != nil || len(got) != 0 {
		t.Errorf("%+v %v", got, err)
	}
}

func TestNoDirectoryMeansNoBridgeAndAPublicOneIsRefused(t *testing.T) {
	dir := base(t)
	if got, err := control.Ask(t.Context(), dir); err != nil || got != nil {
		t.Errorf("%v %v", got, err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := control.Ask(t.Context(), dir)
	if _, _, hint := fault.Public(err); !fault.Is(err, fault.Unavailable) || hint != "chmod 700 "+dir { // sockets may be in it
		t.Errorf("a directory that others may enter: %v", err)
	}
	if _, err := control.Serve(dir, "bridge-a", nil, nil); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a directory that others may enter: %v", err)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := control.Serve(dir, "bridge-a", nil, nil); !fault.Is(err, fault.Unavailable) { // nobody would ask there
		t.Errorf("a directory in one that others may enter: %v", err)
	}
	if err := os.Chmod(filepath.Dir(dir), 0o700); err != nil {
		t.Fatal(err)
	}
	target := t.TempDir()
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, dir); err != nil {
		t.Fatal(err)
	}
	if _, err := control.Serve(dir, "bridge-a", nil, nil); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a link: %v", err)
	}
}

// A Bridge that was killed is told from one that hangs, and only the first one's socket is
// swept.
func TestAKilledBridgeIsGoneAndAFrozenOneDoesNotAnswer(t *testing.T) {
	dir := base(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	if _, err := out.Read(make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
	freeze.Process(t, cmd.Process.Pid)
	control.Sweep(dir)
	got, err := control.Ask(t.Context(), dir)
	if err != nil || len(got) != 1 || !fault.Is(got[0].Err, fault.Timeout) {
		t.Fatalf("frozen: %+v %v", got, err)
	}
	if pid := cmd.Process.Pid; runtime.GOOS == "linux" && (got[0].PID != pid || !strings.Contains(got[0].Err.Error(), fmt.Sprint("process ", pid))) {
		t.Errorf("frozen: its process %d is not named: %d %v", pid, got[0].PID, got[0].Err)
	}
	cmd.Process.Kill()
	cmd.Wait()
	if got, err := control.Ask(t.Context(), dir); err != nil || len(got) != 1 || !fault.Is(got[0].Err, fault.NotFound) {
		t.Errorf("killed: %+v %v", got, err)
	}
	control.Sweep(dir)
	if got, err := control.Ask(t.Context(), dir); err != nil || len(got) != 0 {
		t.Errorf("swept: %+v %v", got, err)
	}
}

// A folder that no Bridge can make is told from one that none has made yet.
func TestALinkThatLeadsNowhereIsNoProofThatNoBridgeRuns(t *testing.T) {
	root := filepath.Dir(base(t))
	for link, below := range map[string]string{"parent": "bridges", "above": "agent-knock-knock/bridges"} {
		if err := os.Symlink(filepath.Join(root, "nowhere"), filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
		got, err := control.Ask(t.Context(), filepath.Join(root, link, below))
		if _, _, hint := fault.Public(err); !fault.Is(err, fault.Unavailable) || hint == "" {
			t.Errorf("%s: %v %v", link, got, err)
		}
	}
}

// A place that is too long for a socket costs no Bridge its answers.
func TestABridgeWhosePlaceIsTooLongIsAskedAllTheSame(t *testing.T) {
	dir := filepath.Join(base(t), strings.Repeat("x", 100), "bridges")
	id := ids.NewBridge()
	s, err := control.Serve(dir, id, func() control.Description { return control.Description{BridgeID: id, PID: 7} }, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	found := control.AskAll(t.Context(), []string{dir})
	if !slices.ContainsFunc(found.Answers, func(a control.Answer) bool { return a.BridgeID == id && a.Err == nil && a.PID == 7 }) {
		t.Errorf("%+v", found)
	}
}

// Those who asked a frozen Bridge before fill its queue; the next one must not wait in it.
func TestAFrozenBridgeWithAFullQueueIsGivenUp(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("outside Linux a full queue refuses instead of letting callers wait")
	}
	dir := base(t)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "bridge-full.sock")
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: path}); err != nil {
		t.Fatal(err)
	}
	if err := unix.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	waiting, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer waiting.Close()
	got, err := control.Ask(t.Context(), dir)
	if err != nil || len(got) != 1 || got[0].Err == nil || fault.Is(got[0].Err, fault.NotFound) {
		t.Errorf("%+v %v", got, err)
	}
}

// A Bridge that ends between two of our steps is gone, not silent.
func TestABridgeThatEndsWhileItIsAskedIsGone(t *testing.T) {
	dir := base(t)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "bridge-ends.sock"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		var asked []net.Conn
		for range 2 { // the look whether somebody listens, and the question
			if c, err := l.Accept(); err == nil {
				asked = append(asked, c)
			}
		}
		l.Close()
		for _, c := range asked {
			c.Close()
		}
	}()
	got, err := control.Ask(t.Context(), dir)
	if err != nil || len(got) != 1 || !fault.Is(got[0].Err, fault.NotFound) {
		t.Errorf("%+v %v", got, err)
	}
	<-ended
}
