package e2e

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/testkit/bigstore"
	"github.com/agent-knock-knock/akk/internal/testkit/fakehost"
	"github.com/agent-knock-knock/akk/internal/testkit/standin"
)

// operate runs a command in the environment that a Host would give its Bridge.
func (w *world) operate(args ...string) (stdout, stderr string, exit int) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), slowest)
	defer cancel()
	cmd := exec.CommandContext(ctx, w.bin, args...)
	cmd.Env = append(os.Environ(), w.host.Env...)
	cmd.WaitDelay = settle
	var out, errOut strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		w.t.Fatal(err)
	}
	return out.String(), errOut.String(), cmd.ProcessState.ExitCode()
}

// sendTest runs doctor --send-test for this world's Host.
func (w *world) sendTest() (out, errOut string, exit int) {
	w.t.Helper()
	return w.operate("doctor", "--host-profile", w.host.Profile, "--host", fakehost.HostName, "--host-version", fakehost.HostVersion, "--send-test", "--json")
}

// A test callback takes the way of every callback, says what it is, and shows how its
// answer is classified. It leaves nobody behind and stores nothing.
func TestDoctorSendsATestCallbackAndShowsItsClassification(t *testing.T) {
	t.Parallel()
	for mode, class := range map[fakehost.Mode]string{
		fakehost.Accept: "accepted", fakehost.Retry: "retryable_failure", fakehost.Reject: "permanent_failure", fakehost.Garbage: "uncertain", fakehost.WrongID: "uncertain",
	} {
		t.Run(string(mode), func(t *testing.T) {
			w := newWorld(t, nil)
			w.host.SetMode(mode)
			out, errOut, exit := w.sendTest()
			var r struct {
				OK   bool `json:"ok"`
				Test struct {
					DeliveryID     string `json:"delivery_id"`
					Classification string `json:"classification"`
					ErrorCode      string `json:"error_code"`
				} `json:"test_callback"`
			}
			if err := json.Unmarshal([]byte(out), &r); err != nil {
				t.Fatalf("%v: %s %s", err, out, errOut)
			}
			good := class == "accepted"
			if (exit == 0) != good || r.OK != good || r.Test.Classification != class || (r.Test.ErrorCode == "") != good {
				t.Errorf("exit %d: %s", exit, out)
			}
			d := w.host.Deliveries()
			if len(d) != 1 || d[0].Delivery != r.Test.DeliveryID || !strings.HasPrefix(d[0].Body, "TEST from Agent Knock Knock") {
				t.Errorf("the Host heard %+v", d)
			}
			if strings.Contains(out+errOut, w.host.Session) {
				t.Error("the session is shown")
			}
			if _, err := os.Stat(w.host.Store); err == nil {
				t.Error("a test made a Store")
			}
			fakehost.WaitNoSurvivors(t, w.host.CaseID, settle)
		})
	}
}

func TestDoctorSendsNoTestWhenSomethingElseIsWrong(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	if out, errOut, exit := w.operate("doctor", "--host-profile", w.host.Profile, "--host", fakehost.HostName, "--host-version", "9.9.9", "--send-test"); exit != 1 || strings.Contains(out, "test_callback") {
		t.Errorf("exit %d: %s %s", exit, out, errOut)
	}
	if out, errOut, exit := w.operate("doctor", "--send-test"); exit != 1 || !strings.Contains(errOut, "--host-profile") {
		t.Errorf("exit %d: %s %s", exit, out, errOut)
	}
	if d := w.host.Deliveries(); len(d) != 0 {
		t.Errorf("the Host heard %+v", d)
	}
}

func TestStorePruneForgetsWhileABridgeRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	bigstore.Fill(t, w.host.Store, 500, time.Now().Add(-10*24*time.Hour))
	bigstore.Fill(t, w.host.Store, 5, time.Now().Add(-time.Hour))
	c := w.start()
	type report struct {
		Removed struct {
			Turns int `json:"turns"`
		} `json:"removed"`
		Before int64 `json:"size_bytes_before"`
		After  int64 `json:"size_bytes_after"`
	}
	prune := func(args ...string) (r report) {
		t.Helper()
		out, errOut, exit := w.operate(append([]string{"store", "prune", "--store-dir", w.host.Store, "--json"}, args...)...)
		if err := json.Unmarshal([]byte(out), &r); err != nil || exit != 0 {
			t.Fatalf("exit %d, %v: %s %s", exit, err, out, errOut)
		}
		return r
	}
	if r := prune("--older-than", "7d", "--dry-run"); r.Removed.Turns != 500 || turns(t, w.host.Store) != 505 {
		t.Errorf("%+v", r)
	}
	if r := prune("--older-than", "7d"); r.Removed.Turns != 500 || turns(t, w.host.Store) != 5 || r.After > r.Before/2 {
		t.Errorf("%+v", r)
	}
	if r := prune("--older-than", "7d"); r.Removed.Turns != 0 {
		t.Errorf("%+v", r)
	}
	list(t, c) // the Bridge goes on
	if code := c.Close(settle); code != 0 {
		t.Errorf("exit %d", code)
	}
	for _, args := range [][]string{{"store", "prune"}, {"store", "prune", "--older-than", "soon"}, {"store", "prune", "--older-than", "7d", "--store-dir", w.host.Dir + "/none"}} {
		if out, errOut, exit := w.operate(args...); exit != 1 || strings.Count(errOut, "\n") != 1 {
			t.Errorf("%v: exit %d: %s %s", args, exit, out, errOut)
		}
	}
}

// A half-updated install: the worker of another release is refused, and who asks is told
// what to do.
func TestAWorkerOfAnotherReleaseIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	worker := strings.TrimSuffix(w.bin, "agent-knock-knock") + "akk-callback"
	if err := os.Remove(worker); err != nil { // a link to what other tests use
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-trimpath", "-tags", "grpcnotrace", "-ldflags", "-s -w -X "+module+"internal/version.Version=v0.0.1-old", "-o", worker, module+"worker")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	out, errOut, exit := w.sendTest()
	if exit != 1 || !strings.Contains(out, "v0.0.1-old") || !strings.Contains(out, "one release") || !strings.Contains(out, "not_started") {
		t.Errorf("exit %d: %s %s", exit, out, errOut)
	}
	if d := w.host.Deliveries(); len(d) != 0 {
		t.Errorf("the Host heard %+v", d)
	}
}

// With --log-format json every line of stderr is one object that names its Bridge, and the
// Turn or the delivery that it is about.
func TestJSONLogsNameTheBridgeAndTheTurn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.agent(standin.Codex)
	c := w.start("--log-format", "json", "--log-level", "debug")
	got := send(t, c, idle(t, c).TerminalID, "SAY:logged")
	waitCallback(t, c, got.TurnID, "delivered")
	if code := c.Close(settle); code != 0 {
		t.Errorf("exit %d", code)
	}
	bridges, turns, deliveries := map[string]bool{}, 0, 0
	for line := range strings.Lines(c.Stderr()) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Errorf("no JSON: %s", line)
			continue
		}
		id, _ := m["bridge"].(string)
		bridges[id] = true
		if m["turn"] == got.TurnID {
			turns++
		}
		if d, _ := m["delivery"].(string); strings.HasPrefix(d, "callback-delivery-") {
			deliveries++
		}
	}
	if len(bridges) != 1 || bridges[""] || turns < 2 || deliveries == 0 {
		t.Errorf("bridges %v, %d lines of the Turn, %d of the delivery:\n%s", bridges, turns, deliveries, c.Stderr())
	}
	if strings.Contains(c.Stderr(), w.host.Session) {
		t.Error("the session is in the log")
	}
}
