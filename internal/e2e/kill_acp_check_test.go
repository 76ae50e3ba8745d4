package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/agent-knock-knock/akk/internal/harness/config"
	"github.com/agent-knock-knock/akk/internal/harness/harnesssql"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/testkit/fakehost"
)

// member is a live process of the siege.
type member struct {
	fakehost.Survivor
	agent string // the session whose agent it belongs to, "" for one of ours
	stray bool   // no living supervisor is above it
}

// everybody lists the processes of the siege but the proxies.
func (s *siege) everybody() []member {
	all, err := fakehost.Survivors(s.h.caseID)
	if err != nil {
		s.t.Skipf("no census on this system: %v", err)
	}
	parent, supervisor := map[int]int{}, map[int]bool{}
	for _, p := range all {
		parent[p.PID], supervisor[p.PID] = p.PPID, strings.Contains(p.Args, "harness supervise")
	}
	var out []member
	for _, p := range all {
		if strings.Contains(p.Args, "harness mcp") {
			continue
		}
		m := member{Survivor: p, stray: true}
		for pid, steps := p.PID, 0; pid > 1 && steps < 20; pid, steps = parent[pid], steps+1 {
			m.stray = m.stray && !supervisor[pid]
		}
		env, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", p.PID))
		for _, kv := range strings.Split(string(env), "\x00") {
			if name, ok := strings.CutPrefix(kv, envAgent+"="); ok {
				m.agent = name
			}
		}
		out = append(out, m)
	}
	return out
}

// within waits until nobody of them is left, and holds the time against the promise. The
// short siege runs on loaded machines: there only the end counts.
func (s *siege) within(r *siegeRound, left func() []string) {
	s.t.Helper()
	began := time.Now()
	var names []string
	until(s.t, "the end of all that must end with the "+r.victim, func() bool { names = left(); return len(names) == 0 })
	took := time.Since(began).Round(time.Millisecond)
	s.slowest[r.victim] = max(s.slowest[r.victim], took)
	if s.strict && took > goneIn {
		s.t.Errorf("round %d: it took %v until all were gone", r.number, took)
	}
}

// kept is what the Store holds of one session's messages: id to state.
func (s *siege) kept(session string) map[string]string {
	s.t.Helper()
	db, err := store.OpenFile(s.t.Context(), config.DatabaseFile(filepath.Join(s.h.dir, "state")), store.Options{ReadOnly: true, Sets: []store.Set{harnesssql.Tables()}})
	if err != nil {
		s.t.Fatal(err)
	}
	defer db.Close()
	out := map[string]string{}
	err = db.View(s.t.Context(), func(tx *store.Tx) error {
		rows, err := tx.Query("SELECT id, state FROM harness_message WHERE session_id = ?", session)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var id, state string
			if err := rows.Scan(&id, &state); err != nil {
				return err
			}
			out[id] = state
		}
		return rows.Err()
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

// prompts counts how often the agent of a task was given its prompt.
func (s *siege) prompts(t *siegeTask) (n int) {
	for _, line := range strings.Split(journal(s.t, s.journal(t)), "\n") {
		var f struct {
			Method string
			Params json.RawMessage
		}
		if json.Unmarshal([]byte(line), &f) == nil && f.Method == "session/prompt" {
			n++
		}
	}
	return n
}

// recover is a Host that comes back: it asks again with the key that it used, or waits for
// the message that it finds. Then the truth of each task is checked.
func (s *siege) recover(r *siegeRound) {
	s.t.Helper()
	for i, t := range r.tasks {
		if r.early {
			s.recoverCreate(r, i)
			continue
		}
		if t.reported == nil && t.key != "" {
			if out, code, err := s.call(0, "send_message", t.message()); err != nil {
				s.t.Errorf("round %d: the key is not answered: %v", r.number, err)
			} else if out["terminal"] == true {
				t.reported = out
			} else {
				s.tally["refused with "+code]++
			}
		}
		s.check(r, i, s.kept(t.session))
	}
}

// check compares what is stored, what is told, and what the agent got.
func (s *siege) check(r *siegeRound, i int, kept map[string]string) {
	s.t.Helper()
	t, runs := r.tasks[i], 0
	if len(kept) > 1 {
		s.t.Errorf("round %d: one task became %v", r.number, kept)
	}
	for id := range kept {
		st, code, err := s.call(1, "wait", obj{"session_id": t.session, "message_id": id})
		if err != nil || st["terminal"] != true {
			s.t.Errorf("round %d: message %s of %q has no end: %v %s %v", r.number, id, t.prompt, err, code, st)
			continue
		}
		if t.reported == nil {
			t.reported = st
		}
		if t.reported["message_id"] != id {
			s.t.Errorf("round %d: reported was %v, stored is %s", r.number, t.reported["message_id"], id)
		}
		s.verdict(r, i, st)
		s.report(t)
		runs = s.prompts(t)
		if st["state"] == "completed" && runs != 1 || runs > 1 {
			s.t.Errorf("round %d: a message is %v and reached its agent %d times", r.number, st["state"], runs)
		}
	}
	if len(kept) == 0 {
		s.tally["never accepted"]++
		if runs = s.prompts(t); runs != 0 || t.reported != nil {
			s.t.Errorf("round %d: nothing is stored of what reached its agent %d times: %v", r.number, runs, t.reported)
		}
	}
}

// verdict fails when the end is none that this kill allows.
func (s *siege) verdict(r *siegeRound, i int, st obj) {
	s.t.Helper()
	state, t := fmt.Sprint(st["state"]), r.tasks[i]
	problem, _ := st["error"].(obj)
	code := fmt.Sprint(problem["code"])
	if problem == nil {
		code = fmt.Sprint(st["cancel_reason"])
	}
	if state == "completed" {
		code = ""
		if got := text(st); t.want != "" && got != t.want || !strings.HasSuffix(got, fmt.Sprintf("%d-%d-", r.number, i)+got[strings.LastIndex(got, "-")+1:]) {
			s.t.Errorf("round %d: %q is completed with %.200q", r.number, t.prompt, got)
		}
	}
	s.tally[strings.TrimSpace(state+" "+code)]++
	allowed := state == "completed"
	switch r.victim {
	case victimServer:
		allowed = allowed || state == "failed" && code == "interrupted" && st["orphaned"] == true
	case victimSupervisor:
		allowed = allowed || state == "cancelled" && code == "session_closed" || state == "failed" && (code == "interrupted" || code == "transport")
	case victimAgent, victimRunner:
		allowed = allowed || i == r.which && state == "failed" && code == "transport"
	}
	if !allowed {
		s.t.Errorf("round %d: %q is %s %s after the end of the %s: %v", r.number, t.prompt, state, code, r.victim, st)
	}
}

// told is what of a status never changes.
func told(st obj) string {
	b, _ := json.Marshal([]any{st["message_id"], st["state"], st["stop_reason"], st["cancel_reason"], st["error"], st["result"], st["finished_at"]})
	return string(b)
}

func (s *siege) report(t *siegeTask) {
	id := t.reported["message_id"].(string)
	s.reports[id], s.session[id] = t.reported, t.session
	s.order = append(s.order, id)
}

// checkReports asks for the last n results that were reported: they are what they were.
func (s *siege) checkReports(n int) {
	s.t.Helper()
	for _, id := range s.order[max(0, len(s.order)-n):] {
		st, code, err := s.call(0, "message_status", obj{"session_id": s.session[id], "message_id": id})
		if err != nil || told(st) != told(s.reports[id]) {
			s.t.Errorf("a result was reported as\n%s\nand is now %v %s\n%s", told(s.reports[id]), err, code, told(st))
		}
	}
}

// recoverCreate checks a session that was struck while it began.
func (s *siege) recoverCreate(r *siegeRound, i int) {
	s.t.Helper()
	t := r.tasks[i]
	var state, code string
	until(s.t, "a session that began or did not", func() bool {
		out, c, err := s.call(1, "message_status", obj{"session_id": t.session})
		if err != nil {
			s.t.Errorf("round %d: %v", r.number, err)
		}
		state, _ = out["state"].(string)
		code = c
		return state != "starting"
	})
	s.tally[strings.TrimSpace("created: "+state+" "+code)]++
	dies := r.victim == victimServer || r.victim == victimSupervisor || r.ownVictim(i)
	switch {
	case state == "ready": // also by a server that was started meanwhile
		out, code, err := s.call(0, "send_message", obj{"session_id": t.session, "text": "SAY x"})
		if (err != nil || code != "" || text(out) != "x") && !dies {
			s.t.Errorf("round %d: a session that began does not work: %v %s %v", r.number, err, code, out)
		}
	case dies && (code == "unknown_session" || state == "interrupted" || state == "closed" || state == "failed"):
	case r.victim == victimProxy && t.lost && code == "unknown_session": // the request was never sent
	default:
		s.t.Errorf("round %d: session %d is %s %s after the end of the %s during its start", r.number, i, state, code, r.victim)
	}
}

// finish takes a broken conversation up again, closes everything and looks for what is left.
func (s *siege) finish(r *siegeRound) {
	s.t.Helper()
	for _, t := range r.tasks {
		if st := t.reported; r.again && st != nil && st["state"] != "completed" && t.agentID != "" {
			args := s.h.agentArgs("--state", s.agentState())
			args["resume_session_id"] = t.agentID
			args["env"].(map[string]string)[envAgent] = t.session
			out, code, err := s.call(0, "create_session", args)
			if err != nil || code != "" {
				s.t.Errorf("round %d: a conversation cannot be taken up: %v %s %v", r.number, err, code, out)
				continue
			}
			id := out["session_id"]
			if out, code, err = s.call(1, "send_message", obj{"session_id": id, "text": "SAY back"}); err != nil || text(out) != "back" {
				s.t.Errorf("round %d: a conversation that was taken up: %v %s %v", r.number, err, code, out)
			}
			_, _, _ = s.call(0, "close_session", obj{"session_id": id})
			s.tally["taken up again"]++
		}
		if _, code, err := s.call(0, "close_session", obj{"session_id": t.session}); err != nil || code != "" && code != "unknown_session" {
			s.t.Errorf("round %d: close: %v %s", r.number, err, code)
		}
	}
	var left []string
	until(s.t, "one supervisor, one server and no agent", func() bool {
		left = nil
		servers := 0
		for _, p := range s.everybody() {
			switch {
			case strings.Contains(p.Args, "harness serve"):
				servers++
			case p.agent != "" || p.stray:
				left = append(left, p.String())
			}
		}
		return servers == 1 && len(left) == 0
	})
	s.checkReports(2 * siegeSessions)
}

// parentOf is the parent of a process, 0 when there is none.
func parentOf(pid int) int {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 2 || fields[0] == "Z" {
		return 0
	}
	parent, _ := strconv.Atoi(fields[1])
	return parent
}
