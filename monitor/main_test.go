package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/proc"
	"github.com/agent-knock-knock/akk/internal/procinfo"
	"github.com/agent-knock-knock/akk/internal/profile"
	"github.com/agent-knock-knock/akk/internal/turn"
	"github.com/agent-knock-knock/akk/internal/wire"
)

const agentVar = "AKK_MONITOR_TEST_AGENT"

// The test binary is the monitor when the Bridge's side starts it, and a process that an
// agent could be.
func TestMain(m *testing.M) {
	switch {
	case os.Getenv("AKK_WORKER") != "":
		main()
	case os.Getenv(agentVar) != "":
		os.Stdin.Read(make([]byte, 1))
	default:
		os.Exit(m.Run())
	}
}

// bridge is the Bridge's side.
func bridge(tb testing.TB, monitor string) (wire.Options, wire.Handoff) {
	tb.Helper()
	base, err := os.MkdirTemp("/tmp", "akkm")
	if err != nil {
		tb.Fatal(err)
	}
	dir, err := wire.OpenRunDir(base)
	if err != nil {
		tb.Fatal(err)
	}
	life, err := proc.NewLifeline()
	if err != nil {
		tb.Fatal(err)
	}
	spawner := proc.NewSpawner()
	tb.Cleanup(func() { spawner.Close(); life.Close(); os.RemoveAll(base) })
	doc := profile.Starter()
	fp, err := fingerprint(doc)
	if err != nil {
		tb.Fatal(err)
	}
	o := wire.Options{
		Spawner: spawner, Lifeline: life, RunDir: dir, Log: slog.New(slog.NewTextHandler(tb.Output(), nil)),
		Binaries: wire.Binaries{Monitor: monitor},
	}
	return o, wire.Handoff{ProfileDocument: doc, Fingerprint: fp, Selection: "/p", Source: "file", Host: "my-agent", HostVersion: "1.8.0"}
}

// liveAgent is a real process to watch; end ends it.
func liveAgent(tb testing.TB) (p turn.Incarnation, end func()) {
	tb.Helper()
	self, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), agentVar+"=1")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	end = func() { stdin.Close(); cmd.Wait() }
	tb.Cleanup(end)
	birth, err := procinfo.Birth(cmd.Process.Pid)
	if err != nil {
		tb.Fatal(err)
	}
	return turn.Incarnation{PID: cmd.Process.Pid, Birth: birth}, end
}

const thread = "01a2339f-59b7-7d12-b792-06a6cff1163d"

// codexTurn is a Codex whose rollout exists, and a request to it.
func codexTurn(tb testing.TB, p turn.Incarnation) (spec wire.MonitorSpec, rollout string) {
	tb.Helper()
	home := tb.TempDir()
	rollout = filepath.Join(home, "sessions", "2026", "12", "01", "rollout-2026-12-01T22-00-10-"+thread+".jsonl")
	if err := os.MkdirAll(filepath.Dir(rollout), 0o700); err != nil {
		tb.Fatal(err)
	}
	write(tb, rollout, `{"timestamp":"2026-12-01T22:00:16.642Z","type":"session_meta","payload":{"id":"`+thread+`","cwd":"/p","originator":"codex-tui","cli_version":"0.150.0","source":"cli"}}`)
	var fi unix.Stat_t
	if err := unix.Stat(rollout, &fi); err != nil {
		tb.Fatal(err)
	}
	const text = "say hello"
	return wire.MonitorSpec{
		TurnID: "turn-1", MessageID: "msg-1", Pasted: text, EnteredAt: time.Now(),
		Ref: agent.Ref{Endpoint: turn.Endpoint{Socket: filepath.Join(home, "no-tmux"), PaneID: "%1", PanePID: p.PID}, Process: p, Cwd: "/p"},
		Anchor: turn.Anchor{
			Agent: "codex", Channel: turn.ChannelKeyboard, ThreadID: thread, RequestHash: ids.TextHash(text), ClientID: "msg-1",
			Log:   &turn.LogMark{Path: rollout, Device: uint64(fi.Dev), Inode: fi.Ino, Offset: fi.Size},
			Extra: map[string]string{"home": home, "norm_hash": ids.TextHash(text)},
		},
	}, rollout
}

func write(tb testing.TB, path string, lines ...string) {
	tb.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(strings.Join(lines, "\n") + "\n"); err != nil {
		tb.Fatal(err)
	}
}

// await waits for an observation of one of the kinds and acknowledges what comes.
func await(t *testing.T, m *wire.Monitor, kinds ...turn.ObservationKind) turn.Observation {
	t.Helper()
	late := time.AfterFunc(30*time.Second, m.Kill)
	defer late.Stop()
	for {
		e, err := m.Next()
		if err != nil {
			t.Fatalf("waiting for %v: %v", kinds, err)
		}
		if e.Kind != wire.EventObservation {
			continue
		}
		m.Acknowledge(t.Context(), e.Number)
		for _, k := range kinds {
			if e.Observation.Kind == k {
				return e.Observation
			}
		}
	}
}

func startMonitor(t *testing.T, o wire.Options, h wire.Handoff, s wire.MonitorSpec) *wire.Monitor {
	t.Helper()
	m, err := wire.StartMonitor(t.Context(), o, h, s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Kill)
	late := time.AfterFunc(30*time.Second, m.Kill)
	defer late.Stop()
	for {
		e, err := m.Next()
		if err != nil {
			t.Fatalf("waiting for armed: %v", err)
		}
		if e.Kind == wire.EventArmed {
			return m
		}
	}
}

const (
	started  = `{"timestamp":"2026-12-01T22:00:17.000Z","type":"event_msg","payload":{"type":"task_started","turn_id":"t1"}}`
	asked    = `{"timestamp":"2026-12-01T22:00:17.100Z","type":"event_msg","payload":{"type":"item_completed","thread_id":"` + thread + `","turn_id":"t1","item":{"type":"UserMessage","content":[{"type":"text","text":"say hello"}]}}}`
	complete = `{"timestamp":"2026-12-01T22:00:19.000Z","type":"event_msg","payload":{"type":"task_complete","turn_id":"t1","last_agent_message":"hello"}}`
)

func TestTheMonitorReportsWhatTheAgentsOwnRecordsSay(t *testing.T) {
	self, _ := os.Executable()
	o, h := bridge(t, self)
	p, _ := liveAgent(t)
	spec, rollout := codexTurn(t, p)
	m := startMonitor(t, o, h, spec)
	write(t, rollout, started, asked)
	if a := await(t, m, turn.ObsAccepted); a.NativeTurnID != "t1" || a.ThreadID != thread {
		t.Errorf("accepted is %+v", a)
	}
	begin := time.Now()
	write(t, rollout, complete)
	if c := await(t, m, turn.ObsCompleted, turn.ObsFailed, turn.ObsGone); c.Kind != turn.ObsCompleted || c.Text != "hello" {
		t.Errorf("the end is %+v", c)
	}
	t.Logf("record written to observation received: %v", time.Since(begin))
}

func TestADeadAgentWithoutAnEndOfTheTurnIsGone(t *testing.T) {
	self, _ := os.Executable()
	o, h := bridge(t, self)
	p, end := liveAgent(t)
	spec, rollout := codexTurn(t, p)
	m := startMonitor(t, o, h, spec)
	write(t, rollout, started, asked)
	await(t, m, turn.ObsAccepted)
	end()
	if g := await(t, m, turn.ObsCompleted, turn.ObsFailed, turn.ObsGone); g.Kind != turn.ObsGone {
		t.Errorf("the end is %+v", g)
	}
}

func TestTheMonitorRefusesAnotherFingerprintAndAnUnknownAgent(t *testing.T) {
	self, _ := os.Executable()
	o, h := bridge(t, self)
	p, _ := liveAgent(t)
	spec, _ := codexTurn(t, p)
	other := h
	other.Fingerprint = "sha256:" + strings.Repeat("0", 64)
	if _, err := wire.StartMonitor(t.Context(), o, other, spec); !fault.Is(err, wire.CodeFingerprint) {
		t.Errorf("another fingerprint: %v", err)
	}
	spec.Anchor.Agent = "nobody"
	m, err := wire.StartMonitor(t.Context(), o, h, spec)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Kill()
	for err == nil {
		_, err = m.Next()
	}
	if !strings.Contains(err.Error(), `"nobody" is not known`) {
		t.Errorf("an unknown agent: %v", err)
	}
}

func TestTheMonitorLinksNoStore(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for dep := range strings.Lines(string(out)) {
		switch dep = strings.TrimSpace(dep); {
		case strings.HasPrefix(dep, "github.com/agent-knock-knock/akk/internal/store"),
			strings.HasPrefix(dep, "modernc.org/"), dep == "database/sql":
			t.Errorf("akk-monitor links %s", dep)
		}
	}
}

// BenchmarkIdleMonitors reports the memory and the CPU of monitors that watch silent
// agents. The budget of one is 5 MiB PSS and 16 MiB RSS.
func BenchmarkIdleMonitors(b *testing.B) {
	const count = 10
	bin := filepath.Join(b.TempDir(), "akk-monitor")
	build := exec.Command("go", "build", "-trimpath", "-tags", "grpcnotrace", "-ldflags", "-s -w", "-o", bin, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as it is released
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	o, h := bridge(b, bin)
	p, _ := liveAgent(b)
	for b.Loop() {
		var monitors []*wire.Monitor
		begin := time.Now()
		for range count {
			spec, _ := codexTurn(b, p)
			m, err := wire.StartMonitor(b.Context(), o, h, spec)
			if err != nil {
				b.Fatal(err)
			}
			monitors = append(monitors, m)
		}
		b.ReportMetric(float64(time.Since(begin).Milliseconds())/count, "ms/start")
		ctx, cancel := context.WithTimeout(b.Context(), 10*time.Second)
		<-ctx.Done()
		cancel()
		var pss, rss, ticks float64
		for _, m := range monitors {
			pss += smaps(b, m.PID(), "Pss:")
			rss += smaps(b, m.PID(), "Rss:")
			ticks += cpuTicks(b, m.PID())
		}
		for _, m := range monitors { // later: shared pages count by how many share them
			m.Kill()
		}
		b.ReportMetric(pss/count, "PSS-KiB/monitor")
		b.ReportMetric(rss/count, "RSS-KiB/monitor")
		b.ReportMetric(ticks/count*10, "cpu-ms/monitor")
	}
}

func smaps(b *testing.B, pid int, field string) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		b.Skipf("no smaps here: %v", err)
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == field {
			n, _ := strconv.ParseFloat(f[1], 64)
			return n
		}
	}
	return 0
}

func cpuTicks(b *testing.B, pid int) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Skipf("no stat here: %v", err)
	}
	f := strings.Fields(string(text[strings.LastIndexByte(string(text), ')'):]))
	user, _ := strconv.ParseFloat(f[12], 64)
	system, _ := strconv.ParseFloat(f[13], 64)
	return user + system
}
