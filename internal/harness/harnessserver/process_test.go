package harnessserver_test

import (
	"encoding/json"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/harness/config"
)

var spawned = regexp.MustCompile(`spawned:(\d+)`)

// Case 63: a killed server leaves no process and no doubt.
func TestAKilledServerLeavesNoAgentAndTheNextOneKnowsTheTruth(t *testing.T) {
	dir := t.TempDir()
	s := startServer(t, dir)
	agent := s.create("s")
	s.await("s", s.send("s", "hello"), "completed")
	sent := s.must("send_message", object{"session_id": "s", "text": "SAY half; SPAWN; HOLD", "idempotency_key": "k"})
	id := sent["message_id"].(string)
	var grandchild int
	for after, deadline := 0.0, time.Now().Add(patience); grandchild == 0; {
		log := s.must("events", object{"session_id": "s", "after": after, "wait_ms": 1000})
		after = log["next"].(float64)
		for _, e := range log["events"].([]any) {
			data, _ := json.Marshal(e.(object)["data"])
			if m := spawned.FindSubmatch(data); m != nil {
				grandchild, _ = strconv.Atoi(string(m[1]))
			}
		}
		if time.Now().After(deadline) {
			t.Fatal("the agent started no child")
		}
	}
	pid := int(agent["launch_info"].(object)["transport_pid"].(float64))
	if err := s.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	s.ended()
	took := gone(t, pid, patience)
	took += gone(t, grandchild, patience)
	t.Logf("the agent and its child were gone %s after the server", took)

	s = startServer(t, dir)
	st := s.must("message_status", object{"session_id": "s", "message_id": id})
	if st["state"] != "failed" || st["error"].(object)["code"] != "interrupted" || st["orphaned"] != true || st["persisted"] != true {
		t.Fatalf("%v", st)
	}
	again := s.must("send_message", object{"session_id": "s", "text": "SAY half; SPAWN; HOLD", "idempotency_key": "k"})
	if again["message_id"] != id || again["replayed"] != true {
		t.Errorf("%v", again)
	}
	if session := s.must("message_status", object{"session_id": "s"}); session["state"] != "interrupted" {
		t.Errorf("%v", session)
	}
	if _, code := s.call("send_message", object{"session_id": "s", "text": "x"}); code != "interrupted" {
		t.Errorf("code %s", code)
	}
	back := s.must("reopen_session", object{"session_id": "s"})
	if back["state"] != "ready" || back["resumed"] != true {
		t.Fatalf("%v", back)
	}
	if st := s.await("s", s.send("s", "hello"), "completed"); st["result"].(object)["text"] != "echo:hello" {
		t.Errorf("%v", st)
	}
	after := s.must("events", object{"session_id": "s"})["events"].([]any)
	for i, e := range after {
		if int(e.(object)["seq"].(float64)) != i+1 {
			t.Fatalf("event %d has the number %v", i+1, e.(object)["seq"])
		}
	}
}

// Case 66.
func TestTwoServersDoNotShareADirectory(t *testing.T) {
	dir := t.TempDir()
	s := startServer(t, dir)
	second := command(t, dir)
	out, err := second.CombinedOutput()
	if err == nil || second.ProcessState.ExitCode() != 3 || !strings.Contains(string(out), "already uses") {
		t.Fatalf("exit %d: %s", second.ProcessState.ExitCode(), out)
	}
	if _, code := s.call("ping", object{}); code != "" {
		t.Errorf("the first server answers %s", code)
	}
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	s.ended()
	startServer(t, dir) // the lock file of a dead process is no lock
}

// SIGTERM and the end of stdin: agents end with the server, sessions are closed.
func TestAServerThatEndsTakesItsAgentsWithIt(t *testing.T) {
	for name, end := range map[string]func(s *server) error{
		"SIGTERM":  func(s *server) error { return s.cmd.Process.Signal(syscall.SIGTERM) },
		"stdin":    func(s *server) error { return s.stdin.Close() },
		"shutdown": func(s *server) error { s.must("shutdown", object{}); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s := startServer(t, dir)
			pid := int(s.create("s")["launch_info"].(object)["transport_pid"].(float64))
			id := s.send("s", "HOLD")
			if err := end(s); err != nil {
				t.Fatal(err)
			}
			if code := s.ended(); code != 0 {
				t.Fatalf("exit %d: %s", code, s.log)
			}
			gone(t, pid, time.Second)
			s = startServer(t, dir)
			if st := s.must("message_status", object{"session_id": "s", "message_id": id}); st["state"] != "cancelled" || st["cancel_reason"] != "session_closed" {
				t.Errorf("%v", st)
			}
			if st := s.must("message_status", object{"session_id": "s"}); st["state"] != "closed" {
				t.Errorf("%v", st)
			}
		})
	}
}

// Case 11: a server whose supervisor died leaves its agents no time. Unhurried, this one would
// take the 5 s of a cancel and the graces of an agent that ignores everything.
func TestAServerWhoseSupervisorDiedEndsAtOnceWhateverItsAgentsDo(t *testing.T) {
	dir := t.TempDir()
	s := startServer(t, dir)
	pid := int(s.create("s", "--ignore-term", "--stay-open")["launch_info"].(object)["transport_pid"].(float64))
	s.await("s", s.send("s", "SAY x"), "completed")
	id := s.send("s", "SPAWN; IGNORE-CANCEL; SAY x")
	s.await("s", id, "running")
	began := time.Now()
	if err := s.stdin.Close(); err != nil {
		t.Fatal(err)
	}
	if code := s.ended(); code != 0 {
		t.Errorf("exit %d: %s", code, s.log)
	}
	gone(t, pid, patience)
	took := time.Since(began)
	t.Logf("the server and its agent ended in %v", took)
	if took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
	s = startServer(t, dir)
	if st := s.must("message_status", object{"session_id": "s", "message_id": id}); st["state"] != "cancelled" || st["cancel_reason"] != "session_closed" {
		t.Errorf("%v", st)
	}
}

// Spec part 2.1: who may talk to the server at all.
func TestABrowserOrAStrangerIsRefused(t *testing.T) {
	s := startServer(t, t.TempDir())
	for name, c := range map[string]struct {
		op, body string
		change   func(r *http.Request)
		status   int
		code     string
	}{
		"an origin":          {"ping", `{}`, func(r *http.Request) { r.Header.Set("Origin", "http://example.com") }, 403, "forbidden_origin"},
		"the origin null":    {"ping", `{}`, func(r *http.Request) { r.Header.Set("Origin", "null") }, 403, "forbidden_origin"},
		"a form of a page":   {"shutdown", `{}`, func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, 415, "unsupported_media_type"},
		"a rebound name":     {"ping", `{}`, func(r *http.Request) { r.Host = "evil.example:8787" }, 403, "forbidden_host"},
		"another port":       {"ping", `{}`, func(r *http.Request) { r.Host = "127.0.0.1:1" }, 403, "forbidden_host"},
		"no token":           {"list_sessions", `{}`, func(r *http.Request) { r.Header.Del("Authorization") }, 401, "unauthorized"},
		"a wrong token":      {"list_sessions", `{}`, func(r *http.Request) { r.Header.Set("Authorization", "Bearer x") }, 401, "unauthorized"},
		"GET":                {"ping", ``, func(r *http.Request) { r.Method = http.MethodGet }, 405, "unsupported_method"},
		"no such operation":  {"create_template", `{}`, nil, 404, "unsupported_operation"},
		"no JSON":            {"list_sessions", `{`, nil, 400, "invalid_json"},
		"a list":             {"list_sessions", `[]`, nil, 400, "invalid_json"},
		"a key twice":        {"close_session", `{"session_id":"a","session_id":"b"}`, nil, 400, "invalid_param"},
		"an unknown key":     {"close_session", `{"id":"a"}`, nil, 400, "unknown_param"},
		"an internal":        {"create_session", `{"ssh_command":"x"}`, nil, 400, "launch_internal"},
		"a template":         {"create_session", `{"template":"x"}`, nil, 400, "invalid_param"},
		"a null":             {"create_session", `{"model_id":"m","cwd":"/","remote_host":null}`, nil, 400, "invalid_param"},
		"no cwd":             {"create_session", `{"model_id":"m"}`, nil, 400, "invalid_param"},
		"a blank model":      {"create_session", `{"model_id":" ","cwd":"/"}`, nil, 400, "invalid_param"},
		"a relative cwd":     {"create_session", `{"model_id":"m","cwd":"x"}`, nil, 400, "invalid_cwd"},
		"a missing cwd":      {"create_session", `{"model_id":"m","cwd":"/does/not/exist"}`, nil, 400, "invalid_cwd"},
		"a path as id":       {"message_status", `{"session_id":"../x"}`, nil, 400, "invalid_session_id"},
		"a stranger's id":    {"message_status", `{"session_id":"x"}`, nil, 404, "unknown_session"},
		"a remote target":    {"create_session", `{"model_id":"m","cwd":"/","target":"remote","remote_host":"h"}`, nil, 400, "unsupported_target"},
		"an unknown harness": {"create_session", `{"model_id":"m","cwd":"/","harness":"nobody"}`, nil, 400, "invalid_param"},
		"a missing program":  {"create_session", `{"model_id":"m","cwd":"/","harness":"x","command":"/does/not/exist"}`, nil, 502, "spawn_failed"},
		"a large body":       {"list_sessions", `{"x":"` + strings.Repeat("x", 17<<20) + `"}`, nil, 413, "request_too_large"},
	} {
		status, text := s.post(c.op, c.body, c.change)
		var out struct {
			OK    bool
			Error struct{ Code, Message string }
		}
		if err := json.Unmarshal([]byte(text), &out); err != nil {
			t.Errorf("%s: %s", name, text)
			continue
		}
		if out.OK || status != c.status || out.Error.Code != c.code || out.Error.Message == "" {
			t.Errorf("%s: got %d %s", name, status, text)
		}
	}
	if status, text := s.post("ping", `{}`, func(r *http.Request) {
		r.Header.Del("Authorization")
		r.Host = "LocalHost:" + s.addr[strings.LastIndex(s.addr, ":")+1:]
	}); status != 200 {
		t.Errorf("ping without the token: %d %s", status, text)
	}
}

// Case 5, and appendix B: everything is for the owner alone.
func TestPingSaysWhoAnswersAndFilesArePrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "state")
	s := startServer(t, dir)
	p := s.must("ping", object{})
	if p["protocol_version"] != 4.0 || int(p["pid"].(float64)) != s.cmd.Process.Pid || p["sessions"] != 0.0 || p["status"] != "ok" || p["config_fingerprint"] == "" {
		t.Errorf("%v", p)
	}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %o", path, info.Mode().Perm())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	linked := command(t, link)
	if out, err := linked.CombinedOutput(); err == nil || !strings.Contains(string(out), "is a link") {
		t.Errorf("%v %s", err, out)
	}
	if _, err := os.Stat(config.TokenFile(dir)); err != nil {
		t.Error(err)
	}
}
