package telemetry

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }

// told writes spans as "name parent start-end outcome", the parent by its name.
func told(tr Trace) []string {
	names := map[SpanID]string{{}: "-", tr.Root.ID: tr.Root.Name}
	for _, s := range tr.Spans {
		names[s.ID] = s.Name
	}
	var out []string
	for _, s := range tr.Spans {
		out = append(out, fmt.Sprintf("%s %s %v-%v %s", s.Name, names[s.Parent], s.Start.Sub(noon), s.End.Sub(noon), word(s.Attrs, KeyOutcome)))
	}
	return out
}

func delivery(queued, ended int) Delivery {
	return Delivery{ID: "d1", Kind: "terminal", Status: "accepted", Queued: at(queued), Settled: at(ended),
		Attempts: []Attempt{{ID: "a1", Number: 1, Began: at(queued), Ended: at(ended), Outcome: "accepted"}}}
}

func TestAStoryBecomesOneTrace(t *testing.T) {
	began, accepted := Step{Kind: Began, At: at(0)}, Step{Kind: Accepted, At: at(1)}
	cases := []struct {
		name       string
		steps      []Step
		deliveries []Delivery
		want       []string
		over       bool
	}{
		{"done and heard", []Step{began, accepted, {Kind: Ended, At: at(9), Code: "completed"}}, []Delivery{delivery(9, 10)}, []string{
			"akk.submit akk.turn 0s-1s accepted", "akk.work akk.turn 1s-9s completed", "akk.callback akk.turn 9s-10s accepted"}, true},
		{"done, its callback on its way", []Step{began, accepted, {Kind: Ended, At: at(9), Code: "completed"}},
			[]Delivery{{ID: "d1", Kind: "terminal", Status: "queued", Queued: at(9)}}, []string{
				"akk.submit akk.turn 0s-1s accepted", "akk.work akk.turn 1s-9s completed"}, false},
		{"a question parts the work", []Step{began, accepted, {Kind: Waits, At: at(3), Code: "question"}, {Kind: Resumed, At: at(5)}}, nil, []string{
			"akk.submit akk.turn 0s-1s accepted", "akk.work akk.turn 1s-3s needs_decision"}, false},
		{"uncertain, then seen after all", []Step{began, {Kind: Refused, At: at(2), Code: "uncertain"}, {Kind: Accepted, At: at(4)}}, nil, []string{
			"akk.submit akk.turn 0s-2s uncertain", "akk.submit akk.turn 0s-4s accepted_late"}, false},
		{"a clock that was set back", []Step{began, {Kind: Accepted, At: at(-5)}}, nil, []string{"akk.submit akk.turn 0s-0s accepted"}, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			tr := TraceOfTurn(Turn{ID: "turn_1", Agent: "codex", Channel: "daemon", Steps: c.steps, Deliveries: c.deliveries})
			if got := told(tr); !slices.Equal(got, c.want) {
				t.Errorf("\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
			if tr.ID != TraceOf("turn_1") || tr.Root.End.IsZero() == c.over {
				t.Errorf("trace %x, root ends %v", tr.ID, tr.Root.End)
			}
		})
	}
}

// A story grows; whoever tells it after each step, or only at its end, tells the same spans,
// each once.
func TestALongerStoryTellsTheSameSpansAndMore(t *testing.T) {
	kinds := []Step{{Kind: Began}, {Kind: Accepted}, {Kind: Refused, Code: "uncertain"}, {Kind: Waits, Code: "question"}, {Kind: Waits, Code: "stalled"},
		{Kind: Resumed}, {Kind: Ended, Code: "completed"}, {Kind: Ended, Code: "failed"}, {Kind: Ended, Code: "closed"}}
	rapid.Check(t, func(t *rapid.T) {
		story, round := Turn{ID: "turn_1", Agent: "claude", Channel: "pane", Steps: []Step{{Kind: Began, At: at(0)}}}, 0
		var once Once
		seen := map[SpanID]Span{}
		for i := range rapid.IntRange(1, 12).Draw(t, "steps") {
			s := rapid.SampledFrom(kinds).Draw(t, "step")
			if s.At = at(i + 1); s.Kind == Began {
				round++
				s.Round = round
			}
			story.Steps = append(story.Steps, s)
			now := s.At
			n := Read(Fact{At: now, Turn: &story}, Window{}, &once)
			if n.Trace == nil {
				continue
			}
			for _, s := range n.Trace.Spans {
				if _, twice := seen[s.ID]; twice {
					t.Fatalf("%s is told twice", s.Name)
				}
				seen[s.ID] = s
			}
		}
		for _, s := range TraceOfTurn(story).Spans {
			if was, ok := seen[s.ID]; !ok || was.Name != s.Name || !was.End.Equal(s.End) || was.Parent != s.Parent {
				t.Fatalf("%s of the whole story: %+v, told %+v", s.Name, s, was)
			}
		}
	})
}

func TestAFactIsReadAsItWasWrittenAndNothingElse(t *testing.T) {
	line, err := Encode(Fact{At: at(3), Turn: &Turn{ID: "turn_1", Agent: "codex", Channel: "daemon", Steps: []Step{{Kind: Began, At: at(0)}}, Deliveries: []Delivery{delivery(1, 2)}}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(line)
	if err != nil || got.Turn == nil || len(got.Turn.Steps) != 1 || !got.Turn.Deliveries[0].Attempts[0].Ended.Equal(at(2)) {
		t.Fatalf("%v %+v", err, got)
	}
	good := string(line)
	for what, bad := range map[string]string{
		"another version":   strings.Replace(good, `"v":1`, `"v":2`, 1),
		"an unknown field":  strings.Replace(good, `"agent"`, `"text"`, 1),
		"a sentence":        strings.Replace(good, `"codex"`, `"please delete my files"`, 1),
		"a path":            strings.Replace(good, `"codex"`, `"/home/me/secret"`, 1),
		"no JSON":           "akk",
		"more than MaxLine": strings.Repeat(" ", MaxLine) + good,
	} {
		if bad == good {
			t.Fatalf("%s: nothing was changed in %s", what, good)
		}
		if f, err := Decode([]byte(bad)); err == nil {
			t.Errorf("%s is read: %+v", what, f)
		}
	}
}

func TestTelemetryIsWantedOnlyWhenTheStandardVariablesSaySo(t *testing.T) {
	const endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318"
	cases := []struct {
		env             string
		traces, metrics bool
		refused         int
	}{
		{"", false, false, 0},
		{endpoint, true, true, 0},
		{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://localhost:4318/v1/traces", true, false, 0},
		{"OTEL_METRICS_EXPORTER=otlp", false, true, 0},
		{endpoint + " OTEL_TRACES_EXPORTER=none", false, true, 0},
		{endpoint + " OTEL_SDK_DISABLED=TRUE", false, false, 0},
		{endpoint + " OTEL_TRACES_EXPORTER=zipkin", false, true, 1},
		{endpoint + " OTEL_EXPORTER_OTLP_PROTOCOL=grpc", false, false, 2},
		{endpoint + " OTEL_EXPORTER_OTLP_PROTOCOL=grpc OTEL_EXPORTER_OTLP_METRICS_PROTOCOL=http/protobuf", false, true, 1},
	}
	for _, c := range cases {
		env := map[string]string{}
		for _, kv := range strings.Fields(c.env) {
			k, v, _ := strings.Cut(kv, "=")
			env[k] = v
		}
		w := Want(func(name string) string { return env[name] })
		if w.Traces != c.traces || w.Metrics != c.metrics || len(w.Refused) != c.refused || w.On() != (c.traces || c.metrics) {
			t.Errorf("%q: %+v", c.env, w)
		}
	}
}

func TestATraceparentIsReadAsTheStandardSays(t *testing.T) {
	const good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	if id, span, sampled, ok := TraceParent(good); !ok || !sampled || fmt.Sprintf("%x-%x", id, span) != good[3:52] {
		t.Errorf("%x %x %v %v", id, span, sampled, ok)
	}
	if _, _, sampled, ok := TraceParent(strings.TrimSuffix(good, "1") + "0"); !ok || sampled {
		t.Error("a parent that is not sampled")
	}
	for _, bad := range []string{"", "00", strings.ToUpper(good), good + "-x", "ff" + good[2:], strings.Replace(good, "4bf92f", "zzzzzz", 1),
		"00-" + strings.Repeat("0", 32) + "-00f067aa0ba902b7-01", "00-4bf92f3577b34da6a3ce929d0e0e4736-" + strings.Repeat("0", 16) + "-01", good[:50]} {
		if _, _, _, ok := TraceParent(bad); ok {
			t.Errorf("%q is read", bad)
		}
	}
}
