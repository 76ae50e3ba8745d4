package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/outbox"
	"github.com/agent-knock-knock/akk/internal/proc"
	"github.com/agent-knock-knock/akk/internal/profile"
	"github.com/agent-knock-knock/akk/internal/wire"
)

// hostVar makes the test binary the Host's callback program.
const hostVar = "AKK_WORKER_TEST_HOST"

func TestMain(m *testing.M) {
	proc.MaybeRunner()
	switch {
	case os.Getenv(hostVar) != "":
		answer()
	case os.Getenv("AKK_WORKER") != "":
		main()
	default:
		os.Exit(m.Run())
	}
}

// answer acknowledges exactly, and says what it got.
func answer() {
	body, _ := io.ReadAll(os.Stdin)
	json.NewEncoder(os.Stdout).Encode(map[string]any{
		"result":  map[string]string{"status": "accepted", "acceptance_id": fmt.Sprintf("%s|%s|%s", os.Args[1], body, os.Getenv("MY_TOKEN"))},
		"request": map[string]string{"delivery_id": os.Args[2], "message_id": os.Args[3]},
	})
}

func document(t *testing.T, executable string) []byte {
	t.Helper()
	var doc map[string]any
	if err := json.Unmarshal(profile.Starter(), &doc); err != nil {
		t.Fatal(err)
	}
	cb := doc["callback"].(map[string]any)
	cb["executable"] = executable
	cb["arguments"] = []string{"${controller.session_id}", "${envelope.delivery_id}", "${envelope.message_id}"}
	cb["environment"] = map[string]any{"allow": []string{"MY_TOKEN", hostVar}}
	out, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// The whole way: Bridge side, worker, runner, the Host's program and back.
func TestADeliveryRunsTheHostsProgramAndReturnsItsAcknowledgement(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	base, err := os.MkdirTemp("/tmp", "akkc")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	dir, err := wire.OpenRunDir(base)
	if err != nil {
		t.Fatal(err)
	}
	life, err := proc.NewLifeline()
	if err != nil {
		t.Fatal(err)
	}
	spawner := proc.NewSpawner()
	t.Cleanup(func() { spawner.Close(); life.Close() })
	doc := document(t, self)
	p, err := profile.Parse(doc)
	if err != nil {
		t.Fatal(err)
	}
	fp, err := p.Fingerprint()
	if err != nil {
		t.Fatal(err)
	}
	route := outbox.Route{
		Transport: outbox.TransportCommandJSON, ProfileID: p.ID, ProfileRevision: p.Revision, ProfileFingerprint: fp, SessionDigest: strings.Repeat("ab", 32),
	}
	c, err := wire.StartCallback(t.Context(), wire.Options{
		Spawner: spawner, Lifeline: life, RunDir: dir, Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Binaries: wire.Binaries{Callback: self},
	}, wire.Handoff{
		ProfileDocument: doc, Fingerprint: fp, Selection: "/p", Source: "file", Host: "my-agent", HostVersion: "1.8.0", Route: route,
		Environment: map[string]string{"MY_TOKEN": "token-7", hostVar: "1"}, ControllerSession: "session-9",
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Stop()
	job := wire.CallbackJob{
		DeliveryID: ids.DeliveryID(ids.Derive("callback-delivery", "x")), AttemptID: "attempt-1", Attempt: 1, Route: route, RouteID: route.ID(),
		IdempotencyKey: "key-1", Source: outbox.Source{Kind: "test", ID: "t"},
		Event: outbox.Event{ID: "msg-1", Type: "done", Kind: "completion", Body: []byte("${HOME} done\n")},
	}
	for range 3 {
		begin := time.Now()
		out, err := c.Deliver(t.Context(), job)
		if err != nil || out.Kind != outbox.Accepted || out.AcceptanceID != "session-9|${HOME} done\n|token-7" {
			t.Fatalf("outcome %+v, %v", out, err)
		}
		t.Logf("delivered in %v", time.Since(begin))
	}
	job.Route.ProfileRevision = "other"
	job.RouteID = job.Route.ID()
	if out, err := c.Deliver(t.Context(), job); err != nil || out.Kind != outbox.PermanentFailure {
		t.Errorf("a route of another profile: %+v, %v", out, err)
	}
}

func TestTheWorkerLinksNoStore(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for dep := range strings.Lines(string(out)) {
		switch dep = strings.TrimSpace(dep); {
		case strings.HasPrefix(dep, "github.com/agent-knock-knock/akk/internal/store"),
			strings.HasPrefix(dep, "github.com/agent-knock-knock/akk/internal/agent/"),
			strings.HasPrefix(dep, "modernc.org/"), dep == "database/sql":
			t.Errorf("akk-callback links %s", dep)
		}
	}
}
