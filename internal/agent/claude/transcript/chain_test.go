package transcript

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/agent-knock-knock/akk/internal/agent/claude/known"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/turn"
)

// lines reads a recorded transcript of Claude Code 2.1.197 (contents elided).
func lines(t testing.TB, name string) []string {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name + ".jsonl")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
}

func want(text string) Wanted {
	return Wanted{Exact: ids.TextHash(text), Canonical: ids.TextHash(Canonical(text))}
}

// follow feeds lines to a fresh chain and returns what they prove.
func follow(t testing.TB, w Wanted, in []string) (*Chain, []turn.Observation) {
	t.Helper()
	c := New(w)
	var out []turn.Observation
	for i, l := range in {
		r, err := ParseRecord([]byte(l))
		if err != nil {
			t.Fatalf("line %d: %v", i, err)
		}
		out = append(out, c.Feed(r, turn.LogMark{Path: "t", Offset: int64(i)})...)
	}
	return c, out
}

// brief names observations: kind, code and text.
func brief(out []turn.Observation) []string {
	var s []string
	for _, o := range out {
		line := string(o.Kind)
		if o.Code != "" {
			line += " " + o.Code
		}
		if o.Text != "" {
			line += " " + o.Text
		}
		s = append(s, line)
	}
	return s
}

func expect(t *testing.T, out []turn.Observation, want ...string) {
	t.Helper()
	if got := brief(out); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestRecordedTurnsEndAsTheyDid(t *testing.T) {
	for _, k := range []struct {
		file, request string
		want          []string
	}{
		{"permission-interrupt-fail-queue", "SLEEP:3 ;; SAY:hello from fake", []string{"accepted", "completed hello from fake"}},
		{"permission-interrupt-fail-queue", "RUN:ls -la /etc/hostname && touch made-by-claude.txt ;; SAY:ran it", []string{"accepted", "completed ran it"}},
		{"permission-interrupt-fail-queue", "RUN:touch b.txt ;; SAY:ran b", []string{"accepted", "interrupted interrupted"}},
		{"permission-interrupt-fail-queue", "STREAM:30@300 ;; SAY:end", []string{"accepted", "interrupted interrupted"}},
		{"permission-interrupt-fail-queue", "FAIL:400", []string{"accepted", "failed api_error"}},
		{"permission-interrupt-fail-queue", "FAIL:401", []string{"accepted", "interrupted interrupted"}},
		{"permission-interrupt-fail-queue", "FAILEVENT:overloaded boom", []string{"accepted", "failed authentication_failed"}},
		{"questions-write-plan", "TOOL:Write {\"file_path\":\"/home/user/proj/w.txt\",\"content\":\"hello\\n\"} ;; SAY:wrote it", []string{"accepted", "interrupted interrupted"}},
		{"questions-write-plan", "TOOL:ExitPlanMode {\"plan\":\"# Plan\\n- step one\\n- step two\"} ;; SAY:plan accepted", []string{"accepted", "interrupted interrupted"}},
		{"batch-out-of-order", "SAY:at @READ ", []string{"accepted", "completed at @READ"}},
		{"queued-absorbed-withdrawn", "SAY:two", []string{"accepted", "completed two"}},
		{"queued-absorbed-withdrawn", "SAY:queued-four", []string{"accepted", "completed queued-four"}},
		{"queued-absorbed-withdrawn", "SAY:queued-six", []string{"accepted absorbed_into_running_turn", "completed five"}},
		{"queued-absorbed-withdrawn", "SLEEP:5 ;; SAY:seven", []string{"accepted", "completed seven"}}, // /clear was queued meanwhile
		{"queued-absorbed-withdrawn", "not in the file", nil},
	} {
		_, out := follow(t, want(k.request), lines(t, k.file))
		t.Run(k.request[:min(20, len(k.request))], func(t *testing.T) { expect(t, out, k.want...) })
	}
}

func TestFailureNamesTheStatusAndTheMessage(t *testing.T) {
	_, out := follow(t, want("FAIL:400"), lines(t, "permission-interrupt-fail-queue"))
	if o := out[len(out)-1]; o.Kind != turn.ObsFailed || o.Detail != "status 400: API Error: 400 fake failure 400" {
		t.Errorf("got %+v", o)
	}
}

// Case 47: what stands before the anchor is not read at all; a prompt like ours in another
// session is not ours either.
func TestPromptOfAnotherSessionIsNotOurs(t *testing.T) {
	w := want("SAY:two")
	w.Thread = "00000000-0000-4000-8000-000000000000"
	_, out := follow(t, w, lines(t, "queued-absorbed-withdrawn"))
	expect(t, out)
}

// Measured: the first end has a pending background agent, whose notification wakes the
// turn again.
func TestTurnWithABackgroundAgentEndsWithItsLastAnswer(t *testing.T) {
	in := lines(t, "background-agent-and-shell")
	var request string
	for _, l := range in {
		if r, _ := ParseRecord([]byte(l)); r.Type == known.RecUser && request == "" {
			request, _ = r.Message.Content.prompt()
		}
	}
	first := slices.IndexFunc(in, func(l string) bool { return strings.Contains(l, `"pendingBackgroundAgentCount":1`) })
	if first < 0 {
		t.Fatal("the recording has no pending background agent")
	}
	_, out := follow(t, want(request), in[:first+1])
	expect(t, out, "accepted")
	_, out = follow(t, want(request), in)
	expect(t, out, "accepted", "completed started bg")
	if at := out[1].Log.Offset; at <= int64(first) {
		t.Errorf("ended at line %d, the pending end is line %d", at, first)
	}
}

// rec builds a record; fields are "key=json" pairs or a body.
func rec(kind, uuid, parent, rest string) string {
	p := "null"
	if parent != "" {
		p = `"` + parent + `"`
	}
	if rest != "" {
		rest = "," + rest
	}
	return fmt.Sprintf(`{"type":%q,"uuid":%q,"parentUuid":%s,"isSidechain":false%s}`, kind, uuid, p, rest)
}

func user(uuid, parent, text string) string {
	b, _ := json.Marshal(text)
	return rec("user", uuid, parent, `"promptId":"p-`+uuid+`","origin":{"kind":"human"},"message":{"role":"user","content":`+string(b)+`}`)
}

func answer(uuid, parent, stop, text string) string {
	b, _ := json.Marshal(text)
	return rec("assistant", uuid, parent, `"message":{"id":"m-`+uuid+`","model":"claude-x","stop_reason":"`+stop+`","content":[{"type":"text","text":`+string(b)+`}]}`)
}

func call(uuid, parent, id string) string {
	return rec("assistant", uuid, parent, `"message":{"id":"m-`+uuid+`","model":"claude-x","stop_reason":"tool_use","content":[{"type":"tool_use","id":"`+id+`","name":"Bash","input":{}}]}`)
}

func result(uuid, parent, id string) string {
	return rec("user", uuid, parent, `"toolUseResult":{},"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"`+id+`","content":"ok"}]}`)
}

func duration(uuid, parent string) string {
	return rec("system", uuid, parent, `"subtype":"turn_duration"`)
}

func TestEndTurnWithoutTurnDurationIsNotCompleteCase48(t *testing.T) {
	c, out := follow(t, want("q"), []string{user("u", "", "q"), answer("a", "u", "end_turn", "x"), rec("system", "s", "a", `"subtype":"stop_hook_summary"`)})
	expect(t, out, "accepted")
	if o, ok := c.EndByAnswer(CodeEndAtExit); !ok || o.Text != "x" || o.Code != CodeEndAtExit {
		t.Errorf("at the exit of the agent: %+v %v", o, ok)
	}
}

func TestUnresolvedToolUseIsNotCompleteCase48(t *testing.T) {
	in := []string{user("u", "", "q"), call("a", "u", "t1"), call("b", "a", "t2"), result("r", "a", "t1"), answer("z", "r", "end_turn", "x"), duration("d", "z")}
	c, out := follow(t, want("q"), in)
	expect(t, out, "accepted")
	if _, ok := c.EndByAnswer(CodeEndAtExit); ok {
		t.Error("completed at exit with an unresolved tool call")
	}
	// The result of the parallel call came in a later line of the batch.
	_, out = follow(t, want("q"), append(in, result("r2", "b", "t2")))
	expect(t, out, "accepted", "completed x")
}

func TestLaterHumanPromptIsNotAnsweredAsOursCase48(t *testing.T) {
	in := []string{user("u", "", "q"), user("v", "", "other"), answer("b", "v", "end_turn", "OTHER"), duration("d", "b")}
	c, out := follow(t, want("q"), in)
	expect(t, out, "accepted")
	expect(t, c.Settle(), "interrupted superseded")
	expect(t, c.Settle())
}

// Recorded: Esc before the first byte leaves the prompt and no end; the next prompt begins
// a new branch.
func TestWithdrawnPromptIsInterruptedByTheNextOne(t *testing.T) {
	c, out := follow(t, want("SLEEP:8 ;; SAY:one"), lines(t, "queued-absorbed-withdrawn"))
	expect(t, out, "accepted")
	if !c.Superseded() {
		t.Fatal("the next prompt was not noticed")
	}
	expect(t, c.Settle(), "interrupted superseded")
}

func TestEndInTheSameBatchAsTheNextPromptWins(t *testing.T) {
	_, out := follow(t, want("q"), []string{user("u", "", "q"), user("v", "d", "next"), answer("a", "u", "end_turn", "MINE"), duration("d", "a")})
	expect(t, out, "accepted", "completed MINE")
}

// Seen on 2.1.197: a batch may hold the answer and the end before the prompt.
func TestRecordsBeforeTheirParentsAreOursAllTheSame(t *testing.T) {
	in := []string{user("u", "", "q"), call("a", "u", "t"), result("r", "a", "t"), answer("z", "r", "end_turn", "done"), duration("d", "z")}
	rapid.Check(t, func(rt *rapid.T) {
		mixed := rapid.Permutation(in).Draw(rt, "order")
		_, out := follow(t, want("q"), mixed)
		if got := brief(out); !slices.Equal(got, []string{"accepted", "completed done"}) {
			rt.Fatalf("%q", got)
		}
	})
}

func TestSidechainAndForeignRecordsNeverCount(t *testing.T) {
	side := strings.Replace(answer("x", "u", "end_turn", "SIDECHAIN"), `"isSidechain":false`, `"isSidechain":true`, 1)
	sideUser := strings.Replace(user("y", "", "q"), `"isSidechain":false`, `"isSidechain":true`, 1)
	meta := strings.Replace(user("m", "", "q"), `"isSidechain":false`, `"isMeta":true`, 1)
	notice := strings.Replace(user("n", "", "q"), `"kind":"human"`, `"kind":"task-notification"`, 1)
	tool := rec("user", "t", "", `"message":{"content":[{"type":"tool_result","tool_use_id":"z","content":"q"}]}`)
	_, out := follow(t, want("q"), []string{
		sideUser, meta, notice, tool, user("c", "", "<command-name>/status</command-name>"), user("u", "", "q"), side,
		user("l", "u", "<local-command-stdout>q</local-command-stdout>"),
		answer("o", "elsewhere", "end_turn", "OTHER"), duration("od", "o"),
		answer("a", "u", "end_turn", "MINE"), duration("d", "a"),
	})
	expect(t, out, "accepted", "completed MINE")
}

func TestTwoExactPromptsAreTroubleAndNothingMore(t *testing.T) {
	_, out := follow(t, want("q"), []string{user("u", "", "q"), user("v", "u", "q"), answer("a", "v", "end_turn", "?"), duration("d", "a")})
	expect(t, out, "accepted", "trouble multiple_exact_request_acceptances")
}

func TestQueuedPromptsOfOneTurnShareItsEnd(t *testing.T) {
	same := func(l string) string { return strings.Replace(strings.Replace(l, "p-u", "P", 1), "p-v", "P", 1) }
	in := []string{same(user("u", "", "first")), same(user("v", "u", "second")), answer("a", "v", "end_turn", "both"), duration("d", "a")}
	for _, q := range []string{"first", "second"} {
		_, out := follow(t, want(q), in)
		expect(t, out, "accepted", "completed both")
	}
}

func TestPersonsTextThatLooksLikeAnInterruptIsAPrompt(t *testing.T) {
	_, out := follow(t, want("[Request interrupted by user] what is that?"), []string{
		user("u", "", "[Request interrupted by user] what is that?"), answer("a", "u", "end_turn", "a marker"), duration("d", "a")})
	expect(t, out, "accepted", "completed a marker")
}

func TestRequestMayBeginWithATag(t *testing.T) {
	_, out := follow(t, want("<task-notification> what is this tag?"), []string{user("u", "", "<task-notification> what is this tag?")})
	expect(t, out, "accepted")
}

func TestAnswerJoinsTheBlocksOfItsLastMessageOnly(t *testing.T) {
	same := func(l string) string { return strings.NewReplacer("m-b", "M", "m-c", "M").Replace(l) }
	_, out := follow(t, want("q"), []string{
		user("u", "", "q"), answer("a", "u", "end_turn", "earlier"), same(answer("b", "a", "end_turn", "one")),
		same(answer("c", "b", "end_turn", "two")), rec("system", "s", "c", `"subtype":"stop_hook_summary"`), duration("d", "s")})
	expect(t, out, "accepted", "completed one\n\ntwo")
}

func TestCompactionInsideATurnKeepsItsRecordsTogether(t *testing.T) {
	_, out := follow(t, want("q"), []string{
		user("u", "", "q"), call("a", "u", "t"), result("r", "a", "t"),
		rec("system", "k", "", `"logicalParentUuid":"r","subtype":"compact_boundary"`),
		rec("user", "s", "k", `"isCompactSummary":true,"message":{"content":"summary of q"}`),
		answer("z", "s", "end_turn", "after"), duration("d", "z")})
	expect(t, out, "accepted", "completed after")
}

func TestAnswerThatTheModelDidNotFinishFails(t *testing.T) {
	_, out := follow(t, want("q"), []string{user("u", "", "q"), answer("a", "u", "refusal", "no"), duration("d", "a")})
	expect(t, out, "accepted", "failed stop_refusal")
}

func TestEndWithoutAnAnswerIsTrouble(t *testing.T) {
	_, out := follow(t, want("q"), []string{user("u", "", "q"), duration("d", "u")})
	expect(t, out, "accepted", "trouble end_without_answer")
}

func TestLongAnswerIsCutAtARuneAndSaysSo(t *testing.T) {
	long := strings.Repeat("日", turn.MaxText/3+10)
	_, out := follow(t, want("q"), []string{user("u", "", "q"), answer("a", "u", "end_turn", long), duration("d", "a")})
	o := out[1]
	if !o.Truncated || o.FullBytes != len(long) || len(o.Text) > turn.MaxText || !strings.HasPrefix(long, o.Text) || len(o.Text)%3 != 0 {
		t.Errorf("%d of %d bytes, truncated %v", len(o.Text), o.FullBytes, o.Truncated)
	}
}

func TestTextIsRecognisedAsTheAgentKeepsIt(t *testing.T) {
	for pasted, kept := range map[string]string{
		"trailing \n\n": "trailing", " !echo": " !echo", "a\tb": "a    b", "e\u0301": "é", "a\r\nb": "a\nb", "see @x ": "see @x",
	} {
		_, out := follow(t, want(pasted), []string{user("u", "", kept)})
		expect(t, out, "accepted")
	}
	_, out := follow(t, want("a b"), []string{user("u", "", "a  b")})
	expect(t, out)
}

// However a transcript is cut, reordered or doubled, a turn has one final observation.
func TestAtMostOneFinalObservationWhateverComes(t *testing.T) {
	var pool []string
	for _, f := range []string{"permission-interrupt-fail-queue", "queued-absorbed-withdrawn", "questions-write-plan"} {
		pool = append(pool, lines(t, f)...)
	}
	requests := []string{"FAIL:400", "SAY:two", "STREAM:30@300 ;; SAY:end", "SAY:queued-six"}
	rapid.Check(t, func(rt *rapid.T) {
		in := rapid.SliceOfN(rapid.SampledFrom(pool), 0, 80).Draw(rt, "lines")
		c, out := follow(t, want(rapid.SampledFrom(requests).Draw(rt, "request")), in)
		out = append(append(out, c.Settle()...), c.Settle()...)
		finals, accepted := 0, 0
		for _, o := range out {
			if o.Kind.Final() {
				finals++
			}
			if o.Kind == turn.ObsAccepted {
				accepted++
			}
			if o.Kind.Final() && accepted == 0 {
				rt.Fatal("a final observation before acceptance")
			}
		}
		if finals > 1 || accepted > 1 {
			rt.Fatalf("%q", brief(out))
		}
	})
}

func FuzzRecordsNeverPanic(f *testing.F) {
	for _, name := range []string{"one-turn-with-tool", "questions-write-plan"} {
		for _, l := range lines(f, name) {
			f.Add([]byte(l))
		}
	}
	f.Add([]byte(`{"type":"user","message":{"content":[null,1,"x",{"type":1}]}}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		r, err := ParseRecord(line)
		if err != nil {
			return
		}
		if !json.Valid(line) {
			t.Fatalf("accepted %q", line)
		}
		c := New(want("q"))
		c.Feed(r, turn.LogMark{})
		c.Feed(r, turn.LogMark{})
		r.humanPrompt()
		r.absorbedPrompt()
	})
}
