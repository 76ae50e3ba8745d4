package claude

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/agent/claude/known"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/procinfo"
	"github.com/agent-knock-knock/akk/internal/turn"
)

// sessions is a configuration directory with transcripts and status files in it.
type sessions struct {
	t     testing.TB
	dir   string
	procs map[int]procinfo.Process
	a     *Adapter
	ref   agent.Ref
	n     agent.Native
}

func newSessions(t testing.TB) *sessions {
	t.Helper()
	s := &sessions{t: t, dir: t.TempDir(), procs: map[int]procinfo.Process{}}
	s.a = New(Options{Process: func(pid int) (procinfo.Process, error) {
		if p, ok := s.procs[pid]; ok {
			return p, nil
		}
		return procinfo.Process{}, fault.New(fault.NotFound, "test", "there is no process %d", pid)
	}})
	s.ref = agent.Ref{Process: turn.Incarnation{PID: 100, Birth: "777@b"}, Cwd: "/w"}
	s.n = agent.Native{Version: "2.1.197", Thread: agent.ThreadResolved, Extra: map[string]string{
		extraConfigDir: s.dir, extraProjectDir: projectDir(s.dir, "/w")}}
	s.process(100, sid(0), "/w")
	return s
}

func sid(n int) string { return fmt.Sprintf("54cd7c28-d871-4d5f-b8aa-%012d", n) }

func (s *sessions) write(path, text string) {
	s.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s *sessions) statusFile(pid int) string {
	return filepath.Join(s.dir, known.SessionsDir, fmt.Sprintf("%d.json", pid))
}

func (s *sessions) process(pid int, session, cwd string) {
	s.procs[pid] = procinfo.Process{Incarnation: turn.Incarnation{PID: pid, Birth: "777@b"}, Cwd: cwd}
	s.write(s.statusFile(pid), fmt.Sprintf(`{"pid":%d,"sessionId":%q,"procStart":"777","kind":"interactive","status":"idle"}`, pid, session))
}

// transcript writes a session whose prompt carries the extra members.
func (s *sessions) transcript(n int, prompt string, age time.Duration, extra map[string]any, tail ...string) string {
	s.t.Helper()
	rec := map[string]any{"type": "user", "isSidechain": false, "uuid": "u", "promptId": "p", "cwd": "/w", "sessionId": sid(n),
		"entrypoint": "cli", "message": map[string]any{"role": "user", "content": prompt}}
	for k, v := range extra {
		rec[k] = v
	}
	b, err := json.Marshal(rec)
	if err != nil {
		s.t.Fatal(err)
	}
	text := fmt.Sprintf(`{"type":"mode","mode":"normal","sessionId":%q}`, sid(n)) + "\n" + string(b) + "\n"
	text += `{"type":"system","content":"` + strings.Repeat("x", 20_000) + `"}` + "\n" + strings.Join(tail, "")
	path := filepath.Join(s.n.Extra[extraProjectDir], sid(n)+".jsonl")
	s.write(path, text)
	at := time.Date(2026, 12, 2, 12, 0, 0, 0, time.UTC).Add(-age)
	if err := os.Chtimes(path, at, at); err != nil {
		s.t.Fatal(err)
	}
	return path
}

func (s *sessions) threads(limit int) agent.ThreadList {
	s.t.Helper()
	l, err := s.a.Threads(s.t.Context(), s.ref, s.n, limit)
	if err != nil {
		s.t.Fatal(err)
	}
	return l
}

func TestSessionsOfAPersonInThisDirectoryAreListedNewestFirst(t *testing.T) {
	s := newSessions(t)
	s.transcript(1, "hello\npassword: hunter2", 2*time.Hour, nil,
		`{"type":"custom-title","customTitle":"mine"}`+"\n", `{"type":"ai-title","aiTitle":"made"}`+"\n")
	s.transcript(2, "second", time.Hour, nil, `{"type":"ai-title","aiTitle":"made"}`+"\n")
	for n, extra := range map[int]map[string]any{3: {"isSidechain": true}, 4: {"teamName": "t"}, 5: {"sessionKind": "bg"},
		6: {"entrypoint": "sdk-cli"}, 7: {"cwd": "/other"}, 8: {"isMeta": true}, 9: {"sessionId": sid(1)}} {
		s.transcript(n, "not for a person here", time.Minute, extra)
	}
	s.transcript(10, "<command-name>/clear</command-name>", time.Minute, nil)
	l := s.threads(10)
	if len(l.Threads) != 2 || l.Cut || l.Threads[0].ID != sid(2) || l.Threads[1].ID != sid(1) {
		t.Fatalf("%+v", l)
	}
	if one := l.Threads[1]; one.Title != "mine" || one.Preview != "hello password: [redacted]" || one.Workspace != "/w" || one.Archived {
		t.Errorf("%+v", one)
	}
	if l.Threads[0].Title != "made" {
		t.Errorf("%+v", l.Threads[0])
	}
	if l := s.threads(1); len(l.Threads) != 1 || !l.Cut {
		t.Errorf("a page of one: %+v", l)
	}
}

func TestASessionBelongsToTheLivingProcessWhoseStatusNamesIt(t *testing.T) {
	s := newSessions(t)
	for n := range 4 {
		s.transcript(n, "x", time.Hour, nil)
	}
	s.process(101, sid(1), "/anywhere")
	s.process(102, sid(2), "/w")
	delete(s.procs, 102) // killed: its file is left behind
	s.process(103, sid(3), "/w")
	p := s.procs[103]
	p.Birth = "888@b" // the pid was used again
	s.procs[103] = p
	want := []agent.Ownership{agent.OwnedHere, agent.OwnedElsewhere, agent.OwnedByNobody, agent.OwnedByNobody}
	for n, want := range want {
		if th, err := s.a.Thread(t.Context(), s.ref, s.n, sid(n)); err != nil || th.Owner != want {
			t.Errorf("%d: %s %v, want %s", n, th.Owner, err, want)
		}
	}
	for i, tc := range []struct { // in this order: what was made unreadable stays so
		dir  string
		want agent.Ownership
	}{{"/other", agent.OwnedByNobody}, {"/w", agent.OwnedUnknown}} { // spec 2.4: only the one of this workspace matters
		s.process(104+i, "", tc.dir)
		s.write(s.statusFile(104+i), "{ torn")
		if th, err := s.a.Thread(t.Context(), s.ref, s.n, sid(2)); err != nil || th.Owner != tc.want {
			t.Errorf("with an unreadable process in %s: %s %v, want %s", tc.dir, th.Owner, err, tc.want)
		}
	}
}

func TestTheTokenOfASessionChangesWithItsFile(t *testing.T) {
	s := newSessions(t)
	path := s.transcript(1, "x", time.Hour, nil)
	before, err := s.a.Thread(t.Context(), s.ref, s.n, sid(1))
	if err != nil || before.Token == "" || before.Token != s.threads(1).Threads[0].Token {
		t.Fatal(before, err)
	}
	if err := os.Chtimes(path, time.Now(), time.Now()); err != nil {
		t.Fatal(err)
	}
	if after, err := s.a.Thread(t.Context(), s.ref, s.n, sid(1)); err != nil || after.Token == before.Token {
		t.Error("the file changed and its token did not", err)
	}
	for _, bad := range []string{sid(9), "../../etc/passwd", ""} {
		if _, err := s.a.Thread(t.Context(), s.ref, s.n, bad); !fault.Is(err, fault.NotFound) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestSessionSupportNeedsAKnownVersionAndTheStatusFile(t *testing.T) {
	s := newSessions(t)
	for version, want := range map[string]bool{"2.1.197": true, "2.1.240": true, "2.2.0": true, "3.0.1": true, "2.1.100": false, "1.9.9": false, "": false, "x": false} {
		n := s.n
		n.Version = version
		if err := s.a.ThreadSupport(n); (err == nil) != want || err != nil && !fault.Is(err, agent.CodeThreads) {
			t.Errorf("%q: %v", version, err)
		}
	}
	n := s.n
	n.Thread = agent.ThreadUnavailable
	if err := s.a.ThreadSupport(n); !fault.Is(err, agent.CodeThreads) {
		t.Error(err)
	}
}

func BenchmarkThreads200(b *testing.B) {
	s := newSessions(b)
	for n := range 200 {
		s.transcript(n, "x", time.Duration(n)*time.Minute, nil)
	}
	for b.Loop() {
		if l := s.threads(200); len(l.Threads) != 200 {
			b.Fatal(len(l.Threads))
		}
	}
}
