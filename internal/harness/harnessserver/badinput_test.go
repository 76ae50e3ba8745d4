package harnessserver_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/agent-knock-knock/akk/internal/harness/config"
)

// misdeed is what an agent does wrong, and what a caller reads afterwards, again after the
// server was killed.
type misdeed struct {
	name, prompt string
	flags        []string
	state        string // of the message
	code         string // of its error, "" for none
	session      string // state of the session while the server runs
	says         string // in the final text
	logged       string // kind of an event that must be in the session's log
}

// What an agent writes, or does not, costs its own message at most: the message says so with
// its code, also after a SIGKILL of the server, nothing of the agent is left, and the
// sessions beside it go on.
func TestBadInputOfAnAgentIsItsOwnTroubleAndIsStored(t *testing.T) {
	dir := t.TempDir()
	s := startServer(t, dir, `{"buffers":{"max_read_bytes":52000000,"max_queue_bytes":67108864}}`)
	s.create("good")
	working := s.send("good", "HOLD")
	var all []*badSession
	for _, m := range []misdeed{
		{name: "lines-that-are-no-JSON", prompt: "GARBAGE; OBJECT; GARBAGE {\"half\":; SAY done", state: "completed", session: "ready", says: "done", logged: "stray_output"},
		{name: "prose-at-the-start", prompt: "SAY done", flags: []string{"--prose"}, state: "completed", session: "ready", says: "done", logged: "stray_output"},
		{name: "an-error-with-id-null", prompt: "NULL-ID-ERROR; UNKNOWN-RESPONSE; SAY done", state: "completed", session: "ready", says: "done"},
		{name: "a-line-of-50-MB", prompt: "LINE 50000000", state: "completed", session: "ready", says: "xxxx"},
		{name: "a-line-over-the-limit", prompt: "LINE 52000001; HOLD", state: "failed", code: "line_too_large", session: "failed"},
		{name: "exits-in-a-turn", prompt: "SAY half; EXIT 7", state: "failed", code: "transport", session: "failed"},
		{name: "is-killed-in-a-turn", prompt: "SAY half; CRASH", state: "failed", code: "transport", session: "failed"},
		{name: "answers-twice", prompt: "SAY once; TWICE", state: "completed", session: "ready", says: "once"},
		{name: "speaks-after-its-answer", prompt: "SAY once; LATE", state: "completed", session: "ready", says: "once"},
		{name: "forks-children-and-ends", prompt: "FORK 5; EXIT 0", state: "failed", code: "transport", session: "failed"},
		{name: "an-error", prompt: "ERR -32603 broken", state: "failed", code: "acp_rpc_error", session: "ready"},
		{name: "an-error-that-means-logged-out", prompt: "ERR -32000 who are you", state: "failed", code: "authentication_required", session: "authentication_required"},
	} {
		b := &badSession{misdeed: m}
		b.pid = int(s.create(m.name, m.flags...)["launch_info"].(object)["transport_pid"].(float64))
		all = append(all, b)
	}
	for _, b := range all {
		t.Run(b.name, func(t *testing.T) { b.play(s.in(t)) })
	}
	if st := s.await("good", working, "running"); st["terminal"] != false {
		t.Errorf("the session beside them: %v", st)
	}
	soon(t, "the late words are in the log, of no message", func() bool {
		return hasKind(s.must("events", object{"session_id": "speaks-after-its-answer"}), "late_update")
	})
	for _, b := range all { // and the harmless ones still take a message
		if b.session == "ready" {
			if st := s.await(b.name, s.send(b.name, "hello"), "completed"); textOf(st) != "echo:hello" {
				t.Errorf("%s: the next answer is %q", b.name, textOf(st))
			}
		}
	}
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	s.ended()
	for _, b := range all {
		gone(t, b.pid, patience)
	}
	s = startServer(t, dir)
	for _, b := range all {
		t.Run(b.name+"-after-a-restart", func(t *testing.T) {
			s := s.in(t)
			if st := b.check(s); st["persisted"] != true {
				t.Errorf("%v", st)
			}
			if st := s.must("message_status", object{"session_id": b.name}); b.session == "failed" && st["state"] != "failed" || st["operation"] != "idle" {
				t.Errorf("the session: %v", st)
			}
		})
	}
	if st := s.must("message_status", object{"session_id": "good", "message_id": working}); errorCode(st) != "interrupted" {
		t.Errorf("%v", st)
	}
}

type badSession struct {
	misdeed
	pid int
	id  string // of the message
}

func (b *badSession) play(s *server) {
	s.Helper()
	b.id = s.send(b.name, b.prompt)
	s.await(b.name, b.id, b.state)
	st := b.check(s)
	if b.session == "failed" {
		gone(s.T, b.pid, patience)
		for _, m := range spawned.FindAllStringSubmatch(fmt.Sprint(st["partial"]), -1) {
			child, err := strconv.Atoi(m[1])
			if err != nil {
				s.Fatal(err)
			}
			gone(s.T, child, patience)
		}
	}
	s.sessionIs(b.name, b.session)
	if b.session == "failed" {
		if _, code := s.call("send_message", object{"session_id": b.name, "text": "x"}); code != "session_failed" {
			s.Errorf("the next message gets %q", code)
		}
	}
	if b.prompt == "LINE 50000000" { // what a reply has no room for is shown in part, and said
		if r := st["result"].(object); r["truncated"] != true || r["text_bytes"].(float64) < 49e6 || len(textOf(st)) > 2<<20 {
			s.Errorf("%s", short(st))
		}
		if n := s.logged(b.name); n < 49e6 {
			s.Errorf("the log has %d bytes of it", n)
		}
	}
	if events := s.must("events", object{"session_id": b.name}); b.logged != "" && !hasKind(events, b.logged) {
		s.Errorf("no %s in the log: %v", b.logged, events)
	}
}

// check reads the message and compares it with what it has to say.
func (b *badSession) check(s *server) object {
	s.Helper()
	st := s.must("message_status", object{"session_id": b.name, "message_id": b.id})
	if st["state"] != b.state || errorCode(st) != b.code || !strings.HasSuffix(textOf(st), b.says) {
		s.Fatalf("want %s %q %q, got %s", b.state, b.code, b.says, short(st))
	}
	return st
}

// An agent that does not even shake hands, or opens no session, is ended, and the session
// never was.
func TestBadInputAnAgentThatNeverStartsIsEndedAndForgotten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := startServer(t, dir, `{"transport":{"startup_timeout_seconds":1,"session_timeout_seconds":1,"terminate_grace_seconds":1}}`)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, flag := range []string{"--hang-init", "--hang-new"} {
		mark := filepath.Join(t.TempDir(), "journal")
		_, code := s.call("create_session", object{"session_id": "mute", "harness": "scripted", "model_id": "default", "cwd": dir, "command": exe,
			"args": []string{agentArg, "--ignore-term", "--stay-open", "--journal", mark, flag}})
		if code != "startup_timeout" {
			t.Fatalf("%s: code %q", flag, code)
		}
		if _, code := s.call("message_status", object{"session_id": "mute"}); code != "unknown_session" {
			t.Errorf("%s: the session that never was: %q", flag, code)
		}
		if left := running(t, mark); len(left) > 0 {
			t.Errorf("%s: %v still run", flag, left)
		}
	}
	if p := s.must("ping", object{}); p["sessions"] != 0.0 {
		t.Errorf("%v", p)
	}
}

// An agent that never answers its prompt: the message fails in its time, one that obeys the
// cancel goes on, one that ignores that too is ended.
func TestBadInputAnAgentThatNeverAnswersIsGivenUp(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := startServer(t, dir, `{"transport":{"turn_timeout_seconds":5,"turn_cancel_timeout_seconds":1,"terminate_grace_seconds":1}}`)
	obeys := int(s.create("obeys")["launch_info"].(object)["transport_pid"].(float64))
	stubborn := int(s.create("stubborn", "--ignore-term", "--stay-open")["launch_info"].(object)["transport_pid"].(float64))
	ids := map[string]string{"obeys": s.send("obeys", "HANG"), "stubborn": s.send("stubborn", "SPAWN; IGNORE-CANCEL")}
	for _, id := range []string{"obeys", "stubborn"} {
		if st := s.await(id, ids[id], "failed"); errorCode(st) != "output_timeout" {
			t.Errorf("%s: %v", id, st)
		}
	}
	s.sessionIs("stubborn", "failed")
	gone(t, stubborn, patience)
	s.sessionIs("obeys", "ready")
	if st := s.await("obeys", s.sendWhenIdle("obeys", "hello"), "completed"); textOf(st) != "echo:hello" {
		t.Errorf("%v", st)
	}
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	s.ended()
	gone(t, obeys, patience)
	s = startServer(t, dir)
	for _, id := range []string{"obeys", "stubborn"} {
		if st := s.must("message_status", object{"session_id": id, "message_id": ids[id]}); st["state"] != "failed" || errorCode(st) != "output_timeout" {
			t.Errorf("%s: %v", id, st)
		}
	}
	if st := s.must("message_status", object{"session_id": "stubborn"}); st["state"] != "failed" || errorCode(st) != "cancel_timeout" {
		t.Errorf("%v", st)
	}
}

// An agent that asks a hundred questions at once gets a hundred answers, each its own, and
// nothing is approved that nobody approved.
func TestBadInputAHundredQuestionsAreAHundredQuestions(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := startServer(t, dir)
	s.create("s")
	s.create("other")
	id := s.send("s", "PERMS 100; SAY done")
	asked := s.awaitQuestions("s", id, 100)
	if st := s.await("other", s.send("other", "hello"), "completed"); textOf(st) != "echo:hello" {
		t.Errorf("%v", st)
	}
	seen := map[string]bool{}
	for i, q := range asked {
		q := q.(object)
		request := q["request_id"].(string)
		if seen[request] {
			t.Fatalf("%s is there twice", request)
		}
		seen[request] = true
		answer := object{"session_id": "s", "request_id": request, "option_id": "allow_once"}
		if i%2 == 1 {
			answer["option_id"] = "deny_once"
		}
		s.must("answer_question", answer)
	}
	st := s.await("s", id, "completed")
	if text := textOf(st); strings.Count(text, "[allowed:allow_once]") != 50 || strings.Count(text, "[denied:deny_once]") != 50 || !strings.HasSuffix(text, "done") {
		t.Errorf("%s", text)
	}
	// The same with nobody who answers, and a server that dies meanwhile.
	id = s.send("s", "PERMS 100; SAY done")
	s.awaitQuestions("s", id, 100)
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	s.ended()
	s = startServer(t, dir)
	st = s.must("message_status", object{"session_id": "s", "message_id": id})
	if errorCode(st) != "interrupted" || len(st["questions"].([]any)) != 0 {
		t.Errorf("%v", st)
	}
}

// A link in the place of the state directory, of a directory above the files or of a file in
// it: the server does not start and writes nothing behind the link.
func TestBadInputALinkedStateDirectoryIsRefused(t *testing.T) {
	for name, lay := range map[string]func(t *testing.T, dir, elsewhere string) string{
		"the directory": func(t *testing.T, dir, elsewhere string) string { return elsewhere },
		"the lock":      func(t *testing.T, dir, elsewhere string) string { return filepath.Join(elsewhere, "lock") },
		"the database":  func(t *testing.T, dir, elsewhere string) string { return filepath.Join(elsewhere, "db") },
	} {
		t.Run(name, func(t *testing.T) {
			base := t.TempDir()
			dir, elsewhere := filepath.Join(base, "state"), filepath.Join(base, "elsewhere")
			if err := os.Mkdir(elsewhere, 0o700); err != nil {
				t.Fatal(err)
			}
			target, link := lay(t, dir, elsewhere), dir
			if target != elsewhere {
				if err := os.Mkdir(dir, 0o700); err != nil {
					t.Fatal(err)
				}
				link = config.LockFile(dir)
				if name == "the database" {
					link = config.DatabaseFile(dir)
				}
				if err := os.WriteFile(target, nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Symlink(target, link); err != nil {
				t.Fatal(err)
			}
			out, err := command(t, dir).CombinedOutput()
			if err == nil || !regexp.MustCompile(`^(invalid_config|store_unsafe) `).Match(out) {
				t.Errorf("%v: %s", err, out)
			}
			found, err := os.ReadDir(elsewhere)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range found {
				if info, err := f.Info(); err != nil || info.Size() > 0 || f.Name() != filepath.Base(target) {
					t.Errorf("%s was written behind the link", f.Name())
				}
			}
		})
	}
}

// A port that somebody has: the server says so, starts nothing and harms nothing, and its
// records are there for the next start.
func TestBadInputAPortThatIsTakenStartsNothing(t *testing.T) {
	t.Parallel()
	first := startServer(t, t.TempDir())
	dir := t.TempDir()
	before := startServer(t, dir)
	before.create("s")
	id := before.send("s", "hello")
	before.await("s", id, "completed")
	if err := before.stdin.Close(); err != nil {
		t.Fatal(err)
	}
	before.ended()
	out, err := command(t, dir, `{"listen":"`+first.addr+`"}`).CombinedOutput()
	if err == nil || !strings.HasPrefix(string(out), "unavailable ") || !strings.Contains(string(out), first.addr) {
		t.Fatalf("%v: %s", err, out)
	}
	first.must("ping", object{})
	again := startServer(t, dir)
	if st := again.must("message_status", object{"session_id": "s", "message_id": id}); textOf(st) != "echo:hello" {
		t.Errorf("%v", st)
	}
}

func (s *server) in(t *testing.T) *server {
	other := *s
	other.T = t
	return &other
}

func errorCode(st object) string {
	e, _ := st["error"].(object)
	code, _ := e["code"].(string)
	return code
}

func textOf(st object) string {
	r, _ := st["result"].(object)
	text, _ := r["text"].(string)
	return text
}

// short is a status without its long texts.
func short(st object) string {
	b, _ := json.Marshal(st)
	if len(b) > 2000 {
		b = append(b[:2000:2000], "…"...)
	}
	return string(b)
}

func hasKind(log object, kind string) bool {
	events, _ := log["events"].([]any)
	for _, e := range events {
		if e.(object)["kind"] == kind {
			return true
		}
	}
	return false
}

// logged counts the bytes of the words in a session's log, read in pieces.
func (s *server) logged(id string) (n int) {
	s.Helper()
	for after := 0.0; ; {
		log := s.must("events", object{"session_id": id, "after": after})
		for _, e := range log["events"].([]any) {
			if data, _ := e.(object)["data"].(object); data != nil {
				text, _ := data["delta"].(string)
				n += len(text)
			}
		}
		if after = log["next"].(float64); after >= log["last"].(float64) {
			return n
		}
	}
}
