package doctor_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agent-knock-knock/akk/internal/doctor"
	"github.com/agent-knock-knock/akk/internal/profile"
)

const canary = "canary-session-value"

// host is a directory with a callback program that leaves a mark when it is started.
type host struct {
	dir, profile, callback, mark string
	env                          map[string]string
}

func newHost(t *testing.T, shebang string, mode os.FileMode, edits ...string) host {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	h := host{dir: dir, profile: filepath.Join(dir, "p.json"), callback: filepath.Join(dir, "agent"), mark: filepath.Join(dir, "started"),
		env: map[string]string{"MY_AGENT_SESSION_ID": canary}}
	if err := os.WriteFile(h.callback, []byte(shebang+"\ntouch "+h.mark+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(h.callback, mode); err != nil {
		t.Fatal(err)
	}
	h.write(t, append([]string{"/usr/local/bin/my-agent", h.callback}, edits...)...)
	return h
}

// write puts the starter, with pairs of old and new text replaced, where the Profile is.
func (h host) write(t *testing.T, edits ...string) {
	t.Helper()
	text := strings.NewReplacer(edits...).Replace(string(profile.Starter()))
	if err := os.WriteFile(h.profile, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// check runs the doctor, proves that nothing was started or shown, and returns the
// report and the row of a name.
func (h host) check(t *testing.T, name string) (doctor.Report, doctor.Check) {
	t.Helper()
	r := doctor.HostMode(t.Context(), h.profile, "my-agent", "1.8.0", func(n string) (string, bool) { v, ok := h.env[n]; return v, ok })
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(text, []byte(canary)) {
		t.Errorf("the report shows the session: %s", text)
	}
	if _, err := os.Lstat(h.mark); err == nil {
		t.Error("the callback program was started")
	}
	i := slices.IndexFunc(r.Checks, func(c doctor.Check) bool { return c.Name == name })
	if i < 0 {
		t.Fatalf("no row %s in %s", name, text)
	}
	if r.OK != (len(r.Failures()) == 0) {
		t.Errorf("ok is %v with failures %v", r.OK, r.Failures())
	}
	return r, r.Checks[i]
}

func names(r doctor.Report) string {
	var list []string
	for _, c := range r.Checks {
		list = append(list, c.Name+":"+string(c.Status))
	}
	return strings.Join(list, " ")
}

func TestCase14DoctorNamesWhatIsMissingAndStartsNothing(t *testing.T) {
	t.Run("all is well", func(t *testing.T) {
		h := newHost(t, "#!/bin/sh", 0o700)
		r, row := h.check(t, doctor.CheckProfile)
		if want := "profile:ok host_compatibility:ok controller_context:ok callback_executable:ok"; names(r) != want || !r.OK {
			t.Errorf("rows %s, want %s", names(r), want)
		}
		if row.Selection != h.profile || *r.ProfileID != "my-agent-command" || *r.Scope != profile.ScopeStartup || !*r.StandaloneCompatible {
			t.Errorf("report %+v", r)
		}
	})
	for name, value := range map[string]string{"empty": "", "blank at the end": canary + " ", "control": canary + "\x07"} {
		t.Run("session "+name, func(t *testing.T) {
			h := newHost(t, "#!/bin/sh", 0o700)
			h.env["MY_AGENT_SESSION_ID"] = value
			_, row := h.check(t, doctor.CheckController)
			if row.Status != doctor.Failed || row.Variable != "MY_AGENT_SESSION_ID" {
				t.Errorf("row %+v", row)
			}
		})
	}
	t.Run("session unset", func(t *testing.T) {
		h := newHost(t, "#!/bin/sh", 0o700)
		delete(h.env, "MY_AGENT_SESSION_ID")
		r, row := h.check(t, doctor.CheckController)
		if row.Status != doctor.Failed || row.Hint == "" || r.OK {
			t.Errorf("row %+v", row)
		}
	})
	t.Run("callback missing", func(t *testing.T) {
		h := newHost(t, "#!/bin/sh", 0o700)
		if err := os.Remove(h.callback); err != nil {
			t.Fatal(err)
		}
		if _, row := h.check(t, doctor.CheckCallback); row.Status != doctor.Failed || row.Path != h.callback {
			t.Errorf("row %+v", row)
		}
	})
	t.Run("callback not executable", func(t *testing.T) {
		if _, row := newHost(t, "#!/bin/sh", 0o600).check(t, doctor.CheckCallback); row.Status != doctor.Failed {
			t.Errorf("row %+v", row)
		}
	})
	t.Run("callback links to a shell", func(t *testing.T) {
		h := newHost(t, "#!/bin/sh", 0o700)
		if err := os.Remove(h.callback); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("/bin/sh", h.callback); err != nil {
			t.Fatal(err)
		}
		if _, row := h.check(t, doctor.CheckCallback); row.Status != doctor.Failed || !strings.Contains(row.Detail, "shell") {
			t.Errorf("row %+v", row)
		}
	})
	t.Run("env without PATH and with it", func(t *testing.T) {
		h := newHost(t, "#!/usr/bin/env node", 0o700)
		if _, row := h.check(t, doctor.CheckCallback); row.Status != doctor.OK {
			t.Errorf("with PATH: %+v", row)
		}
		h.write(t, "/usr/local/bin/my-agent", h.callback, `"PATH"`, `"OTHER"`)
		if _, row := h.check(t, doctor.CheckCallback); row.Status != doctor.Failed || !strings.Contains(row.Detail, "PATH") {
			t.Errorf("without PATH: %+v", row)
		}
	})
}

func TestCase15DoctorReportsTheRouteBoundScopeAndGoesOn(t *testing.T) {
	h := newHost(t, "#!/bin/sh", 0o700, `"driver": "environment_v1"`, `"driver": "environment_v1", "scope": "route_bound_v1"`)
	r, row := h.check(t, doctor.CheckStandaloneScope)
	if want := "profile:ok host_compatibility:ok standalone_bridge_scope:error controller_context:ok callback_executable:ok"; names(r) != want {
		t.Errorf("rows %s, want %s", names(r), want)
	}
	if row.Scope != profile.ScopeRouteBound || r.OK || *r.StandaloneCompatible {
		t.Errorf("row %+v", row)
	}
}

func TestOneRunShowsEveryFailureAndAnUnreadableProfileIsTheOnlyRow(t *testing.T) {
	h := newHost(t, "#!/bin/sh", 0o600, ">=1.8.0", ">=1.9.0", `"driver": "environment_v1"`, `"driver": "environment_v1", "scope": "route_bound_v1"`)
	delete(h.env, "MY_AGENT_SESSION_ID")
	r, _ := h.check(t, doctor.CheckCallback)
	if got := strings.Join(r.Failures(), " "); got != "host_compatibility standalone_bridge_scope controller_context callback_executable" {
		t.Errorf("failures %s", got)
	}
	h.write(t, `"version": 1`, `"version": 2`)
	r, row := h.check(t, doctor.CheckProfile)
	if len(r.Checks) != 1 || row.Code != profile.CodeInvalid || r.ProfileID != nil || r.StandaloneCompatible != nil {
		t.Errorf("report %+v", r)
	}
}
