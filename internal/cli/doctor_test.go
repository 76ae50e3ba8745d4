package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/agent-knock-knock/akk/internal/cli"
	"github.com/agent-knock-knock/akk/internal/doctor"
)

// checkup runs doctor with a machine of one row and returns what it printed, its exit code
// and the Store that was looked at.
func (w world) checkup(t *testing.T, row doctor.Status, args ...string) (r result, storeDir string) {
	t.Helper()
	deps := cli.Deps{
		LookupEnv:  func(name string) (string, bool) { v, ok := w.env[name]; return v, ok },
		IsTerminal: func(io.Writer) bool { _, tty := w.env["TEST_TTY"]; return tty },
		Machine: func(_ context.Context, o cli.DoctorOptions) doctor.MachineReport {
			storeDir = o.StoreDir
			return doctor.MachineReport{OK: row == doctor.OK, Mode: doctor.ModeMachine, Version: "1.2.3", Checks: []doctor.Check{{Name: doctor.CheckStore, Status: row, Detail: "looked at"}},
				Bridges: []doctor.BridgeState{{BridgeID: "bridge-1", Host: "my-agent", PID: 7, Workers: []doctor.WorkerState{}}}}
		},
	}
	var stdout, stderr bytes.Buffer
	exit := cli.Main(t.Context(), append([]string{"doctor"}, args...), strings.NewReader(""), &stdout, &stderr, deps)
	return result{stdout.String(), stderr.String(), exit}, storeDir
}

// Without a home there is no default Store, and all else is checked all the same.
func TestDoctorWithoutAHomeChecksTheRest(t *testing.T) {
	w := newWorld(t)
	w.env["HOME"] = ""
	r, dir := w.checkup(t, doctor.Unchecked)
	if r.exit != 2 || dir != "" || !strings.Contains(r.stdout, `"looked at"`) || !strings.HasPrefix(r.stderr, "agent-knock-knock: doctor_unchecked: 1 of 1 checks could not be made: store") {
		t.Errorf("%q %+v", dir, r)
	}
}

// The Profile's checks come beside those of the machine; the worst of them is the exit.
func TestDoctorOfAHostChecksTheMachineToo(t *testing.T) {
	for name, tc := range map[string]struct {
		row     doctor.Status
		version string
		exit    int
	}{
		"well":                      {doctor.OK, "1.8.0", 0},
		"a warning":                 {doctor.Warned, "1.8.0", 0},
		"the machine is not":        {doctor.Failed, "1.8.0", 1},
		"the machine is not known":  {doctor.Unchecked, "1.8.0", 2},
		"the Host is not":           {doctor.OK, "2.0.0", 1},
		"neither is, one not known": {doctor.Unchecked, "2.0.0", 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.starter(t, "p.json")
			w.env["MY_AGENT_SESSION_ID"] = "canary-session"
			args := []string{"--host-profile", "p.json", "--host", "my-agent", "--host-version", tc.version, "--store-dir", "/s"}
			r, dir := w.checkup(t, tc.row, args...)
			var doc struct {
				OK      bool   `json:"ok"`
				Mode    string `json:"mode"`
				Profile string `json:"profile_id"`
				Version string `json:"version"`
				Checks  []struct{ Name string }
				Bridges []struct {
					ID string `json:"bridge_id"`
				}
			}
			if err := json.Unmarshal([]byte(r.stdout), &doc); err != nil {
				t.Fatalf("%v: %s", err, r.stdout)
			}
			if r.exit != tc.exit || dir != "/s" || doc.Mode != doctor.ModeHostBridge || doc.Profile != "my-agent-command" || doc.Version != "1.2.3" || len(doc.Bridges) != 1 {
				t.Errorf("%q %+v", dir, r)
			}
			if n := len(doc.Checks); n != 5 || doc.Checks[0].Name != doctor.CheckProfile || doc.Checks[4].Name != doctor.CheckStore {
				t.Errorf("%+v", doc.Checks)
			}
			w.env["TEST_TTY"] = "1"
			text, _ := w.checkup(t, tc.row, args...)
			if text.exit != tc.exit || !strings.Contains(text.stdout, "looked at") || !strings.Contains(text.stdout, "bridge-1") || strings.Contains(r.stdout+r.stderr+text.stdout+text.stderr, "canary") {
				t.Errorf("%+v", text)
			}
		})
	}
}

func TestAWordThatIsNearlyACommandIsUnderstood(t *testing.T) {
	w := newWorld(t)
	for line, want := range map[string]string{"dcotor": "doctor", "vresion": "version", "host-profile vlidate": "validate"} {
		if r := w.run(t, strings.Fields(line)...); r.exit != 1 || !strings.Contains(r.stderr, "did you mean "+want) {
			t.Errorf("%s: %+v", line, r)
		}
	}
	if r := w.run(t, "nothing"); strings.Contains(r.stderr, "did you mean") {
		t.Errorf("%+v", r)
	}
}
