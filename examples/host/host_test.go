package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-knock-knock/akk/internal/profile"
)

// The test binary is the callback program too, as the example is.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "callback" {
		os.Exit(callback(os.Args[2:]))
	}
	os.Exit(m.Run())
}

type ack struct {
	Status       string `json:"status"`
	AcceptanceID string `json:"acceptance_id"`
	DeliveryID   string `json:"delivery_id"`
	MessageID    string `json:"message_id"`
}

func run1(t *testing.T, socket, session, delivery, body string) ack {
	t.Helper()
	cmd := exec.Command(os.Args[0], "callback", "--session", session, "--delivery", delivery, "--message", "m1")
	cmd.Env, cmd.Stdin = []string{socketVariable + "=" + socket}, strings.NewReader(body)
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	var a ack
	if err := json.Unmarshal(out.Bytes(), &a); err != nil {
		t.Fatalf("%v: %s", err, out.Bytes())
	}
	return a
}

func TestTheProfileIsAcceptedByTheProduct(t *testing.T) {
	path := filepath.Join(t.TempDir(), "profile.json")
	if err := writeProfile(path); err != nil {
		t.Fatal(err)
	}
	p, err := profile.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Profile.CheckHost(hostName, hostVersion); err != nil {
		t.Error(err)
	}
	if err := profile.CheckExecutable(p.Profile); err != nil {
		t.Error(err)
	}
}

func TestAKnockIsTakenOnceAndAcknowledgedEveryTime(t *testing.T) {
	box, err := openMailbox(filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer box.close()
	first := run1(t, box.path, box.session, "d1", "the answer\n")
	again := run1(t, box.path, box.session, "d1", "the answer\n")
	if want := (ack{"accepted", first.AcceptanceID, "d1", "m1"}); first != want || again != want || first.AcceptanceID == "" {
		t.Errorf("%+v, then %+v", first, again)
	}
	if k := <-box.knocks; k.Body != "the answer\n" || len(box.knocks) != 0 {
		t.Errorf("%+v and %d more", k, len(box.knocks))
	}
}

func TestAnotherSessionIsRefusedAndAnAbsentHostAskedAgain(t *testing.T) {
	box, err := openMailbox(filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	if a := run1(t, box.path, "not ours", "d1", ""); a.Status != "rejected" || a.DeliveryID != "d1" {
		t.Errorf("%+v", a)
	}
	box.close()
	if a := run1(t, box.path, box.session, "d2", ""); a.Status != "retry" || a.DeliveryID != "d2" {
		t.Errorf("%+v", a)
	}
}
