package codex

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-knock-knock/akk/internal/agent/codex/rollout"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/turn"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func anchorFor(text string) turn.Anchor {
	return turn.Anchor{Agent: Kind, Channel: turn.ChannelKeyboard, RequestHash: ids.TextHash(text),
		Extra: map[string]string{extraHash: ids.TextHash(normalise(text))}}
}

// run feeds lines to a tracker and says what came out, the end last.
func run(t testing.TB, a turn.Anchor, lines ...string) []turn.Observation {
	t.Helper()
	tr := newTracker(a)
	for i, l := range lines {
		r, err := rollout.Parse([]byte(l))
		mark := turn.LogMark{Path: "f", Offset: int64(i)}
		if err != nil {
			tr.distrust(0, rollout.CodeBadRecord, publicText(err), &mark)
			continue
		}
		tr.feed(0, r, mark)
	}
	if tr.end != nil {
		tr.out = append(tr.out, *tr.end)
	}
	return tr.out
}

func show(os []turn.Observation) string {
	var b strings.Builder
	for _, o := range os {
		fmt.Fprintf(&b, "%s", o.Kind)
		for _, s := range []string{o.Code, o.Text} {
			if s != "" {
				fmt.Fprintf(&b, " %q", s)
			}
		}
		b.WriteString("; ")
	}
	return strings.TrimSuffix(b.String(), "; ")
}

func expect(t *testing.T, got []turn.Observation, want string) {
	t.Helper()
	if d := cmp.Diff(want, show(got)); d != "" {
		t.Error(d)
	}
}

func fixture(t testing.TB, name string) []string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
}

// Every prompt of every recorded rollout is followed from the end of what came before it.
// The golden files say how each turn of the four versions ends, failures included.
func TestEveryRecordedTurnIsFollowedToItsEnd(t *testing.T) {
	for _, name := range []string{"0.98.0", "0.130.0", "0.150.0", "0.171.0-failures", "0.171.0-steer-plan", "0.171.0-killed"} {
		t.Run(name, func(t *testing.T) {
			all := fixture(t, "rollout-"+name+".jsonl")
			var got strings.Builder
			from := 0
			for i, l := range all {
				r, err := rollout.Parse([]byte(l))
				if err != nil {
					t.Fatalf("line %d: %v", i+1, err)
				}
				if r.Kind == rollout.User {
					fmt.Fprintf(&got, "%.60q\n    %s\n", r.Text, show(run(t, anchorFor("  "+r.Text+"\n"), all[from:]...)))
				}
				switch r.Kind {
				case rollout.Complete, rollout.Aborted, rollout.Session:
					from = i + 1
				case rollout.Answer:
					if r.Final && strings.HasPrefix(name, "0.98") {
						from = i + 1
					}
				}
			}
			golden := filepath.Join("testdata", "turns-"+name+".golden")
			if *update {
				if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), got.String()); d != "" {
				t.Error(d)
			}
		})
	}
}

// Builders of records in the form of 0.171.
const testThread = "01a233cc-bf4a-78b1-8502-31e12f25fe95"

func event(kind string, fields ...any) string {
	m := map[string]any{"type": kind}
	for i := 0; i < len(fields); i += 2 {
		m[fields[i].(string)] = fields[i+1]
	}
	b, err := json.Marshal(map[string]any{"timestamp": "2026-12-01T22:10:23.594Z", "type": "event_msg", "payload": m})
	if err != nil {
		panic(err)
	}
	return string(b)
}

func started(id string) string { return event("task_started", "turn_id", id) }
func complete(id, text string) string {
	return event("task_complete", "turn_id", id, "last_agent_message", text)
}
func aborted(id string) string { return event("turn_aborted", "turn_id", id, "reason", "interrupted") }
func user(id, client, text string) string {
	return event("item_completed", "thread_id", testThread, "turn_id", id, "item", map[string]any{
		"type": "UserMessage", "client_id": client, "content": []any{map[string]any{"type": "text", "text": text}}})
}

func TestOnlyTheAcceptedTurnCounts(t *testing.T) {
	a := anchorFor("do it")
	socket := a
	socket.Channel, socket.ClientID, socket.ThreadID = turn.ChannelCodexSocket, "msg-1", testThread
	mine := []string{started("T"), user("T", "x", "do it")}
	for _, tc := range []struct {
		name  string
		a     turn.Anchor
		lines []string
		want  string
	}{
		{"task_started alone accepts nothing", a, []string{started("T"), complete("T", "hi")}, ""},
		{"another prompt is not ours", a, []string{started("T"), user("T", "x", "do that"), complete("T", "hi")}, ""},
		{"case 46, H8 d: the completion of another turn is ignored", a, append(mine, complete("U", "no"), complete("T", "yes")), `accepted; completed "yes"`},
		{"the same completion twice counts once", a, append(mine, complete("T", "yes"), complete("T", "yes")), `accepted; completed "yes"`},
		{"case 46: two endings that differ are both worthless", a, append(mine, complete("T", "yes"), complete("T", "no"), complete("T", "yes")), `accepted; trouble "duplicate_completion"`},
		{"H8 c, E03: an abort ends it", a, append(mine, aborted("U"), aborted("T")), `accepted; interrupted "interrupted"`},
		{"H8 f: after a broken line nothing is guessed", a, append(mine, `{"type":`, complete("T", "yes")), `accepted; trouble "invalid_rollout_record"`},
		{"a needed record with a field of another type", a, append(mine, event("task_complete", "turn_id", 7)), `accepted; trouble "invalid_rollout_record"`},
		{"unknown records and fields are passed over", a, append(mine, `{"type":"new_thing","payload":[1]}`, event("item_completed", "item", map[string]any{"type": "New", "content": 7}), event("brand_new", "turn_id", 7), complete("T", "yes")), `accepted; completed "yes"`},
		{"the same request in two turns", a, append(mine, aborted("T"), started("U"), user("U", "y", "do it"), complete("U", "2")), `accepted; interrupted "interrupted"`},
		{"the same request in two turns, ours open", a, append(mine, started("U"), user("U", "y", "do it")), `accepted; trouble "turn_left_open"; trouble "multiple_request_matches"`},
		{"a steer by a person keeps our turn", a, append(mine, user("T", "y", "and this"), complete("T", "both")), `accepted; completed "both"`},
		{"our request joined a running turn", a, []string{started("T"), user("T", "h", "human"), user("T", "x", "do it"), complete("T", "both")}, `accepted; completed "both"`},
		{"a killed turn never ends", a, append(mine, started("U"), user("U", "h", "again"), complete("U", "later")), `accepted; trouble "turn_left_open"`},
		{"by socket our id decides, not the text", socket, []string{started("S"), user("S", "human", "do it"), complete("S", "no"), started("T"), user("T", "msg-1", "do it"), complete("T", "yes")}, `accepted; completed "yes"`},
		{"by socket the same id twice is trouble", socket, []string{started("T"), user("T", "msg-1", "do it"), started("U"), user("U", "msg-1", "do it")}, `accepted; trouble "turn_left_open"; trouble "multiple_request_matches"`},
		{"a server that drops our id: the text decides", socket, []string{started("T"), user("T", "", "do it"), complete("T", "yes")}, `accepted; completed "yes"`},
		{"a success without words since 0.150", a, append(mine, event("task_complete", "turn_id", "T", "last_agent_message", nil)), `accepted; completed`},
		{"0.130 has no error field: no text is failure", a, []string{started("T"), event("user_message", "message", "do it"), event("task_complete", "turn_id", "T", "last_agent_message", nil)}, `accepted; failed "no_answer"`},
		{"a plan is the answer", a, append(mine, event("item_completed", "turn_id", "T", "item", map[string]any{"type": "Plan", "text": "# Plan"}), event("task_complete", "turn_id", "T", "last_agent_message", nil)), `accepted; completed "# Plan"`},
		{"an unknown prompt record: the model's message with the turn id accepts late", a, []string{started("T"),
			`{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"do it"}],"internal_chat_message_metadata_passthrough":{"turn_id":"T"}}}`,
			complete("T", "yes")}, `accepted; completed "yes"`},
	} {
		t.Run(tc.name, func(t *testing.T) { expect(t, run(t, tc.a, tc.lines...), tc.want) })
	}
}

func TestRecordsOfAnotherThreadAreIgnored(t *testing.T) {
	a := anchorFor("do it")
	a.ThreadID = "01a233cc-0000-7000-8000-000000000000"
	expect(t, run(t, a, started("T"), user("T", "x", "do it"), complete("T", "hi")), "")
}

func TestAWatchTakesTheTurnThatRuns(t *testing.T) {
	a := anchorFor("")
	a.Extra[extraWatch] = "1"
	expect(t, run(t, a, started("T"), user("T", "x", "whatever"), complete("U", "no"), complete("T", "yes")), `accepted; completed "yes"`)
}

func TestALongAnswerIsCutAtARuneAndSaysSo(t *testing.T) {
	text := strings.Repeat("é", turn.MaxText/2) + "x"
	got := run(t, anchorFor("do it"), started("T"), user("T", "x", "do it"), complete("T", "a"+text))
	o := got[len(got)-1]
	if !o.Truncated || o.FullBytes != len(text)+1 || len(o.Text) != turn.MaxText-1 || !strings.HasSuffix(o.Text, "é") {
		t.Errorf("truncated=%v full=%d kept=%d", o.Truncated, o.FullBytes, len(o.Text))
	}
}
