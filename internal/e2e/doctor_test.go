package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"

	"github.com/agent-knock-knock/akk/internal/testkit/fakehost"
	"github.com/agent-knock-knock/akk/internal/testkit/faketmux"
	"github.com/agent-knock-knock/akk/internal/testkit/freeze"
	"github.com/agent-knock-knock/akk/internal/testkit/gobuild"
	"github.com/agent-knock-knock/akk/internal/testkit/standin"
)

// clinic is a world whose Bridges nobody else's doctor sees.
type clinic struct {
	*world
	runtime string
}

func newClinic(t *testing.T) *clinic {
	t.Helper()
	c := &clinic{world: newWorld(t, nil), runtime: faketmux.ShortDir(t)}
	if err := os.Chmod(c.runtime, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(gobuild.Program(t, module+"internal/top/akktop"), filepath.Join(filepath.Dir(c.bin), "akk-top")); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *clinic) start() *fakehost.Client {
	c.t.Helper()
	b := c.bridge()
	b.Env = append(b.Env, "AKK_RUNTIME_DIR="+c.runtime)
	return fakehost.Start(c.t, b)
}

type checkup struct {
	exit   int
	OK     bool `json:"ok"`
	Checks []struct {
		Name   string `json:"name"`
		Status string `json:"status"`
		Detail string `json:"detail"`
		Hint   string `json:"hint"`
	} `json:"checks"`
	Bridges []struct {
		PID     int    `json:"pid"`
		Place   string `json:"place"`
		Problem string `json:"problem"`
		Workers []struct {
			Name        string `json:"name"`
			Serves      string `json:"serves"`
			State       string `json:"state"`
			PID         int    `json:"pid"`
			Fingerprint string `json:"fingerprint"`
		} `json:"workers"`
	} `json:"bridges"`
	stderr string
}

// run runs the program in this clinic.
func (c *clinic) run(args ...string) (stdout, stderr string, exit int) {
	c.t.Helper()
	cmd := exec.CommandContext(c.t.Context(), c.bin, args...)
	cmd.Env = append(os.Environ(), "AKK_RUNTIME_DIR="+c.runtime)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if cmd.ProcessState == nil {
		c.t.Fatal(err)
	}
	c.t.Logf("%v: exit %d\n%s%s", args, cmd.ProcessState.ExitCode(), &out, &errs)
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

func (c *clinic) doctor() checkup {
	c.t.Helper()
	out, errs, exit := c.run("doctor", "--json", "--store-dir", c.host.Store)
	r := checkup{exit: exit, stderr: errs}
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		c.t.Fatalf("%v\n%s\n%s", err, out, errs)
	}
	return r
}

// says fails unless the table for a person has the words, and the exit code is the same.
func (c *clinic) says(exit int, words ...string) {
	c.t.Helper()
	cmd := exec.CommandContext(c.t.Context(), c.bin, "doctor", "--store-dir", c.host.Store)
	cmd.Env = append(os.Environ(), "AKK_RUNTIME_DIR="+c.runtime, "NO_COLOR=1")
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 50, Cols: 200})
	if err != nil {
		c.t.Fatal(err)
	}
	defer terminal.Close()
	b, _ := io.ReadAll(terminal) // the end of a terminal is an error
	cmd.Wait()                   // its exit code is asked
	out, got := string(b), cmd.ProcessState.ExitCode()
	c.t.Logf("doctor on a terminal: exit %d\n%s", got, out)
	if got != exit {
		c.t.Errorf("exit %d, want %d", got, exit)
	}
	for _, word := range words {
		if !strings.Contains(out, word) {
			c.t.Errorf("no %q in\n%s", word, out)
		}
	}
}

// has fails unless the check of that name has a row with the status that speaks of word
// and says what to do.
func (r checkup) has(t *testing.T, name, status, word string) {
	t.Helper()
	for _, c := range r.Checks {
		if c.Name == name && c.Status == status && strings.Contains(c.Detail, word) {
			if status == "error" && c.Hint == "" {
				t.Errorf("%s says no next step: %s", name, c.Detail)
			}
			return
		}
	}
	t.Errorf("no row %s %s %q in %s", name, status, word, dump(r))
}

func TestDoctorSeesAHealthyBridgeWithItsWorkers(t *testing.T) {
	t.Parallel()
	w := newClinic(t)
	p := w.agent(standin.Claude)
	c := w.start()
	got := working(t, w.world, c, "while the doctor looks")
	r := w.doctor()
	if r.exit != 0 || !r.OK || len(r.Bridges) != 1 || r.Bridges[0].PID != c.PID() {
		t.Fatalf("%d %s", r.exit, dump(r))
	}
	seen := map[string]bool{}
	for _, k := range r.Bridges[0].Workers {
		seen[k.Name+" "+k.Serves+" "+k.State] = k.PID > 0 && k.Fingerprint != ""
	}
	if !seen["akk-callback callbacks serving"] || !seen["akk-monitor "+got.TurnID+" serving"] {
		t.Errorf("%s", dump(r.Bridges))
	}
	w.says(0, "ok", "akk-callback", got.TurnID)
	out, _, exit := w.run("workers", "--json")
	if exit != 0 || !strings.Contains(out, got.TurnID) {
		t.Errorf("%d %s", exit, out)
	}
	p.Release(t, "go")
	waitCallback(t, c, got.TurnID, "delivered")
}

func TestDoctorNamesWhatIsBrokenAndWhatToDo(t *testing.T) {
	for name, tc := range map[string]struct {
		breaks              func(t *testing.T, w *clinic, c *fakehost.Client)
		check, status, word string
		exit                int
	}{
		"a worker's program is missing": {func(t *testing.T, w *clinic, _ *fakehost.Client) {
			if err := os.Remove(filepath.Join(filepath.Dir(w.bin), "akk-monitor")); err != nil {
				t.Fatal(err)
			}
		}, "programs", "error", "missing", 1},
		"a worker is of another release": {func(t *testing.T, w *clinic, _ *fakehost.Client) {
			path := filepath.Join(filepath.Dir(w.bin), "akk-callback")
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte("#!/bin/sh\necho akk-callback 0.0.1\n"), 0o755); err != nil {
				t.Fatal(err)
			}
		}, "programs", "error", "0.0.1", 1},
		"the live view is missing": {func(t *testing.T, w *clinic, _ *fakehost.Client) {
			if err := os.Remove(filepath.Join(filepath.Dir(w.bin), "akk-top")); err != nil {
				t.Fatal(err)
			}
		}, "programs", "error", "akk-top is missing", 1},
		"the live view is of another release": {func(t *testing.T, w *clinic, _ *fakehost.Client) {
			path := filepath.Join(filepath.Dir(w.bin), "akk-top")
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte("#!/bin/sh\necho akk-top 0.0.1\n"), 0o755); err != nil {
				t.Fatal(err)
			}
		}, "programs", "error", "0.0.1", 1},
		"others may read the Store": {func(t *testing.T, w *clinic, _ *fakehost.Client) {
			if err := os.Chmod(w.host.Store, 0o755); err != nil {
				t.Fatal(err)
			}
		}, "permissions", "error", "others may reach", 1},
		"the Profile drifted": {func(t *testing.T, w *clinic, _ *fakehost.Client) {
			b, err := os.ReadFile(w.host.Profile)
			if err != nil {
				t.Fatal(err)
			}
			var doc map[string]any
			if err := json.Unmarshal(b, &doc); err != nil {
				t.Fatal(err)
			}
			doc["revision"] = "another"
			if b, err = json.Marshal(doc); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(w.host.Profile, b, 0o600); err != nil {
				t.Fatal(err)
			}
		}, "bridge", "error", "Profile", 1},
		"the Bridge is frozen": {func(t *testing.T, _ *clinic, c *fakehost.Client) {
			freeze.Process(t, c.PID())
			t.Cleanup(func() { syscall.Kill(c.PID(), syscall.SIGCONT) })
		}, "bridge", "error", "does not answer", 1},
		"the Store cannot be read": {func(t *testing.T, w *clinic, c *fakehost.Client) {
			c.Kill()
			for _, name := range []string{"akk.db-wal", "akk.db-shm"} { // they would bring the pages back
				if err := os.Remove(filepath.Join(w.host.Store, name)); err != nil && !os.IsNotExist(err) {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(filepath.Join(w.host.Store, "akk.db"), bytes.Repeat([]byte("no database "), 1000), 0o600); err != nil {
				t.Fatal(err)
			}
		}, "store", "unchecked", "", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newClinic(t)
			c := w.start()
			list(t, c)
			if r := w.doctor(); r.exit != 0 {
				t.Fatalf("not healthy before: %s", dump(r))
			}
			tc.breaks(t, w, c)
			r := w.doctor()
			if r.exit != tc.exit || r.OK {
				t.Errorf("exit %d, want %d: %s", r.exit, tc.exit, dump(r))
			}
			r.has(t, tc.check, tc.status, tc.word)
			w.says(tc.exit, tc.check, tc.status, tc.word)
			if lines := strings.Count(strings.TrimSpace(r.stderr), "\n"); lines != 0 || r.stderr == "" {
				t.Errorf("stderr is %q, want one line", r.stderr)
			}
		})
	}
}

// A Host that was started from a service, from another terminal or with next to no
// environment puts its Bridge's socket elsewhere; the operator sees it all the same, and
// is told where. What is not a private folder of this user is passed over, and named.
func TestDoctorFindsBridgesOfOtherEnvironments(t *testing.T) {
	t.Parallel()
	c := newClinic(t)
	service, tmp := faketmux.ShortDir(t), faketmux.ShortDir(t)
	for place, env := range map[string]string{
		filepath.Join(tmp, "agent-knock-knock-"+strconv.Itoa(os.Getuid()), "bridges"): "TMPDIR=" + tmp,
		filepath.Join(service, "agent-knock-knock", "bridges"):                        "XDG_RUNTIME_DIR=" + service,
	} {
		b := c.bridge()
		b.Env = append(b.Env, "AKK_RUNTIME_DIR=", "XDG_RUNTIME_DIR=", env)
		host := fakehost.Start(t, b)
		list(t, host)
		look := func() (r checkup) {
			cmd := exec.CommandContext(t.Context(), c.bin, "doctor", "--json", "--store-dir", c.host.Store)
			cmd.Env = append(os.Environ(), "AKK_RUNTIME_DIR=", "XDG_RUNTIME_DIR="+service, "TMPDIR="+tmp)
			out, err := cmd.Output()
			if json.Unmarshal(out, &r) != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			return r
		}
		seen := func(r checkup) (at string) {
			for _, b := range r.Bridges {
				if b.PID == host.PID() {
					at = b.Place
				}
			}
			return at
		}
		r := look()
		if seen(r) != place {
			t.Errorf("the Bridge of %s was not seen in %s: %s", env, place, dump(r))
		}
		r.has(t, "bridge", "ok", place)
		// The same folder reached by a link, or open to others, is not trusted.
		folder := filepath.Dir(place)
		if err := os.Chmod(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		if r = look(); seen(r) != "" {
			t.Errorf("seen in a folder that others may enter: %s", dump(r))
		}
		status := "warning"
		if strings.HasPrefix(place, service) { // our own place: not to look there is no answer
			status = "unchecked"
		}
		r.has(t, "bridge", status, folder)
		if err := os.Rename(folder, folder+".real"); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(folder+".real", 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(folder+".real", folder); err != nil {
			t.Fatal(err)
		}
		if r = look(); seen(r) != "" {
			t.Errorf("seen behind a link: %s", dump(r))
		}
		r.has(t, "bridge", status, folder)
		if code := host.Close(settle); code != 0 {
			t.Errorf("exit %d", code)
		}
	}
}

// What the Host refuses for good is a dead letter: doctor names it, an operator mends the
// Host and sends it once more under the same ids.
func TestADeadCallbackIsFoundAndRedriven(t *testing.T) {
	t.Parallel()
	w := newClinic(t)
	w.agent(standin.Claude)
	w.host.SetMode(fakehost.Reject)
	c := w.start()
	got := send(t, c, idle(t, c).TerminalID, "SAY:nobody listens")
	waitCallback(t, c, got.TurnID, "failed")
	r := w.doctor()
	if r.exit != 1 {
		t.Errorf("%d", r.exit)
	}
	r.has(t, "callbacks", "error", "1 failed")
	out, errs, exit := w.run("outbox", "list", "--dead", "--json", "--store-dir", w.host.Store)
	var l struct {
		Deliveries []struct {
			ID     string `json:"delivery_id"`
			Status string `json:"status"`
			Body   string `json:"body"`
			Next   string `json:"next_step"`
		} `json:"deliveries"`
	}
	if err := json.Unmarshal([]byte(out), &l); err != nil || exit != 0 || len(l.Deliveries) != 1 || l.Deliveries[0].Status != "failed" || l.Deliveries[0].Body != "" {
		t.Fatalf("%d %s %s", exit, out, errs)
	}
	id := l.Deliveries[0].ID
	if out, _, exit := w.run("outbox", "show", id, "--json", "--store-dir", w.host.Store); exit != 0 || !strings.Contains(out, "nobody listens") {
		t.Errorf("%d %s", exit, out)
	}
	w.host.SetMode(fakehost.Accept)
	if _, errs, exit := w.run("outbox", "redrive", id, "--store-dir", w.host.Store); exit != 0 {
		t.Fatalf("%d %s", exit, errs)
	}
	waitCallback(t, c, got.TurnID, "delivered")
	d := w.host.Deliveries()
	if last := d[len(d)-1]; last.Delivery != id || last.Body != "nobody listens" {
		t.Errorf("%+v", last)
	}
	if _, errs, exit := w.run("outbox", "redrive", id, "--store-dir", w.host.Store); exit != 1 || !strings.Contains(errs, "nothing to send again") {
		t.Errorf("%d %s", exit, errs)
	}
	if r := w.doctor(); r.exit != 0 {
		t.Errorf("%s", dump(r))
	}
}
