package e2e

import (
	"bytes"
	"encoding/hex"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/agent-knock-knock/akk/internal/telemetry"
	"github.com/agent-knock-knock/akk/internal/testkit/faketmux"
	"github.com/agent-knock-knock/akk/internal/testkit/gobuild"
	"github.com/agent-knock-knock/akk/internal/testkit/standin"
)

const telemetryProgram = "akk-telemetry"

// oneTrace fails unless the spans of a task are there, in one trace that the Turn's id
// names, with their parents and in their order.
func oneTrace(t *testing.T, r *receiver, turnID string) (root, submit, work, callback *tracev1.Span) {
	t.Helper()
	root = r.waitOne(t, telemetry.SpanTurn)
	submit, work, callback = r.waitOne(t, telemetry.SpanSubmit), r.waitOne(t, telemetry.SpanWork), r.waitOne(t, telemetry.SpanCallback)
	id := telemetry.TraceOf(turnID)
	for _, s := range []*tracev1.Span{root, submit, work, callback} {
		if !bytes.Equal(s.TraceId, id[:]) {
			t.Errorf("%s is in trace %x, not in %x", s.Name, s.TraceId, id)
		}
		if s != root && !bytes.Equal(s.ParentSpanId, root.SpanId) {
			t.Errorf("%s has parent %x, not the root %x", s.Name, s.ParentSpanId, root.SpanId)
		}
		if got := attrWords(s.Attributes)[telemetry.KeyTurn]; got != turnID {
			t.Errorf("%s speaks of turn %q", s.Name, got)
		}
		if s.StartTimeUnixNano == 0 || s.EndTimeUnixNano < s.StartTimeUnixNano || s.StartTimeUnixNano < root.StartTimeUnixNano || s.EndTimeUnixNano > root.EndTimeUnixNano {
			t.Errorf("%s runs from %d to %d, the task from %d to %d", s.Name, s.StartTimeUnixNano, s.EndTimeUnixNano, root.StartTimeUnixNano, root.EndTimeUnixNano)
		}
	}
	if len(root.ParentSpanId) != 0 {
		t.Errorf("the root has parent %x", root.ParentSpanId)
	}
	if submit.StartTimeUnixNano != root.StartTimeUnixNano || submit.EndTimeUnixNano != work.StartTimeUnixNano || callback.StartTimeUnixNano < work.EndTimeUnixNano || root.EndTimeUnixNano != callback.EndTimeUnixNano {
		t.Errorf("the steps do not follow one another: %v %v %v %v", root, submit, work, callback)
	}
	for _, want := range []struct {
		s       *tracev1.Span
		outcome string
	}{{root, "completed"}, {submit, "accepted"}, {work, "completed"}, {callback, "accepted"}} {
		if got := attrWords(want.s.Attributes)[telemetry.KeyOutcome]; got != want.outcome {
			t.Errorf("%s has outcome %q, want %q", want.s.Name, got, want.outcome)
		}
	}
	return root, submit, work, callback
}

// One trace spans send, accept, done and callback; what is said holds ids and codes only.
func TestTelemetryTellsATaskAsOneTraceOfIDsAndCodes(t *testing.T) {
	t.Parallel()
	const secret, parent = "sk-canary0123456789canary0123456789", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	c, r := newClinic(t), newReceiver(t)
	c.withTelemetry(t)
	p := c.agent(standin.Codex)
	bridge := c.startWith(append(telling(r.URL), "AKK_RUNTIME_DIR="+c.runtime, "TRACEPARENT="+parent, "CANARY_TOKEN="+secret)...)
	got := send(t, bridge, readyPane(t, bridge, p), "SAY:the canary sings "+secret)
	waitCallback(t, bridge, got.TurnID, "delivered")
	root, _, _, callback := oneTrace(t, r, got.TurnID)
	if len(root.Links) != 1 || hex.EncodeToString(root.Links[0].TraceId) != parent[3:35] {
		t.Errorf("links %v", root.Links)
	}
	if a := attrWords(callback.Attributes); a[telemetry.KeyKind] != "completion" || a[telemetry.KeyDelivery] == "" {
		t.Errorf("%v", a)
	}
	faketmux.Wait(t, "the counts", func() bool {
		return r.sums(telemetry.MetricSends, telemetry.KeyOutcome)["accepted"] == 1 && r.sums(telemetry.MetricCallbacks, telemetry.KeyOutcome)["accepted"] == 1 &&
			len(r.sums(telemetry.MetricOpenTurns, "")) == 1 && len(r.sums(telemetry.MetricBacklog, "")) == 1 && len(r.sums(telemetry.MetricDeadLetters, "")) == 1 &&
			len(r.sums(telemetry.MetricDropped, "")) == 1
	}, r.seen)
	seen := false
	for _, b := range c.doctor().Bridges {
		for _, w := range b.Workers {
			seen = seen || w.Name == telemetryProgram && w.State == "serving" && w.PID > 0
		}
	}
	if !seen {
		t.Error("doctor does not show akk-telemetry")
	}
	argv, err := os.ReadFile(filepath.Join("/proc", itoa(waitChild(t, bridge.PID(), telemetryProgram)), "cmdline"))
	if err != nil || bytes.Contains(argv, []byte(secret)) {
		t.Errorf("%v %q", err, argv)
	}
	family := descendants(t, bridge.PID())
	if code := bridge.Close(settle); code != 0 {
		t.Errorf("exit %d", code)
	}
	waitGone(t, family)
	r.mu.Lock()
	defer r.mu.Unlock()
	service := r.services[0]
	if service["service.name"] != "agent-knock-knock" || !strings.HasPrefix(service["service.instance.id"], "bridge-") || service["service.version"] == "" {
		t.Errorf("%v", service)
	}
	for _, never := range []string{secret, "the canary sings", c.host.Store, p.Home, c.tmux.Socket(), "sha256:"} {
		if bytes.Contains(r.raw, []byte(never)) {
			t.Errorf("what was sent holds %q", never)
		}
	}
}

func itoa(n int) string { return strings.TrimSpace(dump(n)) }

// A Turn that a killed Bridge left goes on in the same trace.
func TestTelemetryContinuesATraceAcrossAKilledBridge(t *testing.T) {
	t.Parallel()
	w, r := newWorld(t, nil), newReceiver(t)
	w.withTelemetry(t)
	p := w.agent(standin.Codex)
	first := w.startWith(telling(r.URL)...)
	got := working(t, w, first, "late answer")
	waitChild(t, first.PID(), telemetryProgram)
	family := descendants(t, first.PID())
	first.Kill()
	waitGone(t, family)
	second := w.startWith(telling(r.URL)...)
	p.Release(t, "go")
	waitCallback(t, second, got.TurnID, "delivered")
	oneTrace(t, r, got.TurnID)
	if code := second.Close(settle); code != 0 {
		t.Errorf("exit %d", code)
	}
}

// Off by default: no process and no connection, though the program lies there.
func TestTelemetryIsOffByDefault(t *testing.T) {
	t.Parallel()
	for name, env := range map[string]func(url string) []string{
		"nothing set": func(string) []string { return nil },
		"disabled":    func(url string) []string { return append(telling(url), "OTEL_SDK_DISABLED=true") },
		"none": func(url string) []string {
			return append(telling(url), "OTEL_TRACES_EXPORTER=none", "OTEL_METRICS_EXPORTER=none")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, r := newWorld(t, nil), newReceiver(t)
			w.withTelemetry(t)
			w.agent(standin.Codex)
			c := w.startWith(env(r.URL)...)
			got := send(t, c, idle(t, c).TerminalID, "SAY:quiet")
			waitCallback(t, c, got.TurnID, "delivered")
			if pids := children(t, c.PID(), telemetryProgram); len(pids) > 0 {
				t.Errorf("akk-telemetry runs: %v", pids)
			}
			if code := c.Close(settle); code != 0 || r.count() > 0 {
				t.Errorf("exit %d, %d requests", code, r.count())
			}
		})
	}
}

// A receiver that hangs, refuses or is gone delays neither a send nor the end.
func TestTelemetryOfABadReceiverDelaysNothing(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	hangs := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		select {
		case <-release:
		case <-req.Context().Done():
		}
	}))
	t.Cleanup(hangs.Close)
	t.Cleanup(func() { close(release) })
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	t.Cleanup(refuses.Close)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone := "http://" + l.Addr().String()
	l.Close()
	for name, url := range map[string]string{"hangs": hangs.URL, "refuses": refuses.URL, "gone": gone} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			w.withTelemetry(t)
			w.agent(standin.Codex)
			c := w.startWith(telling(url)...)
			waitChild(t, c.PID(), telemetryProgram)
			got := send(t, c, idle(t, c).TerminalID, "SAY:on time")
			if got.Status != "async_pending" {
				t.Errorf("%+v", got)
			}
			waitCallback(t, c, got.TurnID, "delivered")
			family := descendants(t, c.PID())
			begin := time.Now()
			if code := c.Close(settle); code != 0 {
				t.Errorf("exit %d", code)
			}
			took := time.Since(begin)
			t.Logf("the Bridge ended in %v", took)
			if took > 15*time.Second { // its parts' bounds, on a machine that is busy; it is about 2 s
				t.Errorf("the end took %v", took)
			}
			waitGone(t, family)
		})
	}
}

func TestTelemetryProgramThatIsKilledIsStartedAgain(t *testing.T) {
	t.Parallel()
	w, r := newWorld(t, nil), newReceiver(t)
	w.withTelemetry(t)
	w.agent(standin.Codex)
	c := w.startWith(telling(r.URL)...)
	pid := waitChild(t, c.PID(), telemetryProgram)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	got := send(t, c, idle(t, c).TerminalID, "SAY:told by the next one")
	waitCallback(t, c, got.TurnID, "delivered")
	waitChild(t, c.PID(), telemetryProgram, pid)
	oneTrace(t, r, got.TurnID)
	faketmux.Wait(t, "the restart in the counts", func() bool { return r.sums(telemetry.MetricRestarts, telemetry.KeyWorker)[telemetryProgram] == 1 }, r.seen)
	if code := c.Close(settle); code != 0 {
		t.Errorf("exit %d", code)
	}
}

// A program that is missing or of another release is one line in the log; the Bridge works.
func TestTelemetryWithoutItsProgramIsOneLine(t *testing.T) {
	t.Parallel()
	for name, put := range map[string]struct {
		put  func(t *testing.T, w *world)
		want string
	}{
		"missing": {func(*testing.T, *world) {}, "is not there"},
		"mismatched": {func(t *testing.T, w *world) {
			other := gobuild.Program(t, module+"internal/telemetry/akktelemetry", "-ldflags", "-X github.com/agent-knock-knock/akk/internal/version.Version=v0.0.1")
			if err := os.Link(other, filepath.Join(filepath.Dir(w.bin), telemetryProgram)); err != nil {
				t.Fatal(err)
			}
		}, "another release"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, r := newWorld(t, nil), newReceiver(t)
			put.put(t, w)
			w.agent(standin.Codex)
			c := w.startWith(telling(r.URL)...)
			got := send(t, c, idle(t, c).TerminalID, "SAY:without it")
			waitCallback(t, c, got.TurnID, "delivered")
			var log string
			faketmux.Wait(t, "the line", func() bool { log = c.Stderr(); return strings.Contains(log, "telemetry is off") }, func() string { return log })
			if !strings.Contains(log, put.want) || strings.Count(log, "telemetry is off") != 1 || r.count() > 0 {
				t.Errorf("%d requests, log:\n%s", r.count(), log)
			}
			if code := c.Close(settle); code != 0 {
				t.Errorf("exit %d", code)
			}
		})
	}
}
