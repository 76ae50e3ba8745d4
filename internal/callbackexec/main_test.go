package callbackexec_test

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/callbackexec"
	"github.com/agent-knock-knock/akk/internal/clock"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/outbox"
	"github.com/agent-knock-knock/akk/internal/proc"
	"github.com/agent-knock-knock/akk/internal/profile"
)

// The test binary is its own callback program; these variables say what it does.
const (
	envDo   = "AKK_CB_DO"   // what to do
	envSay  = "AKK_CB_SAY"  // what to print, with the two ids put in
	envExit = "AKK_CB_EXIT" // exit status
)

const (
	session  = "controller-session-7"
	delivery = "callback-delivery-d1"
	message  = "msg-m1"
	idemKey  = "agent-knock-knock:k1"
)

func TestMain(m *testing.M) {
	proc.MaybeRunner()
	if do := os.Getenv(envDo); do != "" {
		os.Exit(callback(do))
	}
	os.Exit(m.Run())
}

// callback is the Host's program. Its arguments are those of newJob.
func callback(do string) int {
	say := strings.NewReplacer("DELIVERY", os.Args[2], "MESSAGE", os.Args[3]).Replace(os.Getenv(envSay))
	switch do {
	case "answer":
		io.Copy(io.Discard, os.Stdin)
		fmt.Print(say)
	case "ignore input":
		fmt.Print(say)
	case "answer and hang":
		fmt.Print(say)
		os.WriteFile(os.Getenv("AKK_CB_FILE"), nil, 0o600)
		time.Sleep(time.Hour) // a program that never ends; the test never waits for it
	case "answer and leave children":
		for _, argv := range [][]string{{"setsid", "sleep", "600"}, {"sleep", "600"}} {
			cmd := exec.Command(argv[0], argv[1:]...)
			cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
			if err := cmd.Start(); err != nil {
				return 99
			}
		}
		fmt.Print(say)
	case "flood":
		for {
			if _, err := os.Stdout.WriteString(strings.Repeat("x", 4096)); err != nil {
				return 99
			}
		}
	case "kill yourself":
		fmt.Print(say)
		os.Stdout.Close()
		self, _ := os.FindProcess(os.Getpid())
		self.Kill()
		time.Sleep(time.Hour)
	case "report":
		body, _ := io.ReadAll(os.Stdin)
		report, _ := json.Marshal(map[string]any{"argv": os.Args[1:], "env": os.Environ(), "body": body})
		os.WriteFile(os.Getenv("AKK_CB_FILE"), report, 0o600)
		fmt.Print(say)
	}
	code, _ := strconv.Atoi(os.Getenv(envExit))
	return code
}

const accepted = `{"result":{"status":"accepted","acceptance_id":"a-42"},"request":{"delivery_id":"DELIVERY","message_id":"MESSAGE"}}`

// newProfile is the starter with this binary as its callback program.
func newProfile(t testing.TB, edit func(callback map[string]any)) profile.Profile {
	t.Helper()
	var doc map[string]any
	if err := json.Unmarshal(profile.Starter(), &doc); err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cb := doc["callback"].(map[string]any)
	cb["executable"] = exe
	cb["arguments"] = []string{"--session=${controller.session_id}", "${envelope.delivery_id}", "${envelope.message_id}", "--key=${envelope.idempotency_key}"}
	cb["environment"] = map[string]any{"allow": []string{"PATH", envDo, envSay, envExit, "AKK_CB_FILE", "MY_AGENT_TOKEN"}}
	cb["timeoutMs"] = 30000
	if edit != nil {
		edit(cb)
	}
	data, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	p, err := profile.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func newJob(t testing.TB, edit func(callback map[string]any)) callbackexec.Job {
	t.Helper()
	p := newProfile(t, edit)
	fingerprint, err := p.Fingerprint()
	if err != nil {
		t.Fatal(err)
	}
	route := outbox.Route{
		Transport: outbox.TransportCommandJSON, ProfileID: p.ID, ProfileRevision: p.Revision,
		ProfileFingerprint: fingerprint, SessionDigest: "digest-of-" + session,
	}
	return callbackexec.Job{
		Profile: p, Live: route, Route: route, RouteID: route.ID(), Session: session,
		DeliveryID: delivery, MessageID: message, IdempotencyKey: idemKey,
		Body:    []byte("done"),
		Env:     map[string]string{envDo: "answer", envSay: accepted, "PATH": os.Getenv("PATH")},
		Attempt: 1, AttemptID: ids.NewAttempt(),
	}
}

func newExecutor(t testing.TB) *callbackexec.Executor {
	t.Helper()
	s := proc.NewSpawner()
	r := proc.NewRunners(s, 1)
	t.Cleanup(func() { r.Close(); s.Close() })
	return callbackexec.New(r, clock.System{})
}

func check(t *testing.T, out outbox.Outcome, kind outbox.OutcomeKind, code string) {
	t.Helper()
	if out.Kind != kind || out.ErrorCode != code {
		t.Errorf("got %s %q, want %s %q", out.Kind, out.ErrorCode, kind, code)
	}
	if (out.Kind == outbox.Accepted) != (out.AcceptanceID != "") || out.At.IsZero() {
		t.Errorf("incomplete outcome %+v", out)
	}
}
