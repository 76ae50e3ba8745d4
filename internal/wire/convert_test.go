package wire

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/outbox"
	"github.com/agent-knock-knock/akk/internal/turn"
	callbackv1 "github.com/agent-knock-knock/akk/proto/akk/callback/v1"
	handoffv1 "github.com/agent-knock-knock/akk/proto/akk/handoff/v1"
	monitorv1 "github.com/agent-knock-knock/akk/proto/akk/monitor/v1"
)

// fill sets every field of v, however deep, to something that is not its zero value. A
// field that a conversion forgets then differs after the round trip.
func fill(t *testing.T, v reflect.Value, n *int) {
	t.Helper()
	*n++
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem(), n)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(int64(1700000000+*n), int64(*n)).UTC()))
			return
		}
		for i := range v.NumField() {
			fill(t, v.Field(i), n)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(t, v.Index(0), n)
		fill(t, v.Index(1), n)
	case reflect.Map:
		k, e := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(t, k, n)
		fill(t, e, n)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(k, e)
	case reflect.String:
		v.SetString(fmt.Sprintf("s%d", *n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Uint64:
		v.SetUint(uint64(*n) | 1<<63)
	case reflect.Uint8:
		v.SetUint(uint64('a' + *n%26))
	default:
		t.Fatalf("fill does not know %s", v.Type())
	}
}

func filled[T any](t *testing.T) T {
	t.Helper()
	var v T
	n := 0
	fill(t, reflect.ValueOf(&v).Elem(), &n)
	return v
}

// through sends a message as bytes.
func through[M proto.Message](t *testing.T, m, into M) M {
	t.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	if err := proto.Unmarshal(b, into); err != nil {
		t.Fatal(err)
	}
	return into
}

func TestEveryFieldSurvivesTheWire(t *testing.T) {
	spec := filled[MonitorSpec](t)
	if d := cmp.Diff(spec, specFromProto(through(t, specToProto(spec), &monitorv1.WatchRequest{}))); d != "" {
		t.Errorf("monitor spec:\n%s", d)
	}
	o := filled[turn.Observation](t)
	if d := cmp.Diff(o, observationFromProto(through(t, observationToProto(o), &monitorv1.Observation{}))); d != "" {
		t.Errorf("observation:\n%s", d)
	}
	j := filled[CallbackJob](t)
	if d := cmp.Diff(j, jobFromProto(through(t, jobToProto(j), &callbackv1.Job{}))); d != "" {
		t.Errorf("job:\n%s", d)
	}
	out := filled[outbox.Outcome](t)
	out.Kind = outbox.Accepted
	got, err := outcomeFromProto(through(t, outcomeToProto(out), &callbackv1.Outcome{}))
	if d := cmp.Diff(out, got); d != "" || err != nil {
		t.Errorf("outcome: %v\n%s", err, d)
	}
	// What is secret is no part of the handoff that every worker gets.
	h := filled[Handoff](t)
	back := handoffFromProto(through(t, handoffToProto(h), &handoffv1.Handoff{}))
	h.Environment, h.ControllerSession = nil, ""
	if d := cmp.Diff(h, back); d != "" {
		t.Errorf("handoff:\n%s", d)
	}
}

func TestZeroValuesSurviveTheWire(t *testing.T) {
	var spec MonitorSpec
	if d := cmp.Diff(spec, specFromProto(through(t, specToProto(spec), &monitorv1.WatchRequest{}))); d != "" {
		t.Errorf("monitor spec:\n%s", d)
	}
	var o turn.Observation
	if d := cmp.Diff(o, observationFromProto(through(t, observationToProto(o), &monitorv1.Observation{}))); d != "" {
		t.Errorf("observation:\n%s", d)
	}
}

// filledTurn is the spec of a Turn: what belongs to a Watch only is not set.
func filledTurn(t *testing.T) MonitorSpec {
	t.Helper()
	s := filled[MonitorSpec](t)
	s.WatchID, s.Mode = "", ""
	return s
}

func TestAMonitorServesATurnOrAWatchForWhichNothingWasTyped(t *testing.T) {
	watch := filled[MonitorSpec](t)
	watch.TurnID, watch.Pasted, watch.EnteredAt, watch.Mode = "", "", time.Time{}, WatchTask
	if err := watch.check(); err != nil || watch.Subject() != ids.SubjectID(watch.WatchID) {
		t.Errorf("%s: %v", watch.Subject(), err)
	}
	for name, spoil := range map[string]func(*MonitorSpec){
		"both":           func(s *MonitorSpec) { s.TurnID = "turn-1" },
		"neither":        func(s *MonitorSpec) { s.WatchID = "" },
		"typed text":     func(s *MonitorSpec) { s.Pasted = "x" },
		"a pressed key":  func(s *MonitorSpec) { s.EnteredAt = time.Unix(1, 0) },
		"unknown mode":   func(s *MonitorSpec) { s.Mode = "type_for_me" },
		"mode of a turn": func(s *MonitorSpec) { s.TurnID, s.WatchID = "turn-1", "" },
	} {
		s := watch
		spoil(&s)
		if err := s.check(); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTextThatIsNotUTF8IsRefusedOrMadeReadable(t *testing.T) {
	spec := filledTurn(t)
	spec.Ref.Cwd, spec.Ref.Endpoint.Socket = "/tmp/\xff", "/tmp/\xfe" // paths are bytes
	spec.Ref.Title = "\xff title"                                     // for people only
	back := specFromProto(through(t, specToProto(spec), &monitorv1.WatchRequest{}))
	if back.Ref.Cwd != spec.Ref.Cwd || back.Ref.Endpoint.Socket != spec.Ref.Endpoint.Socket || back.Ref.Title != "\uFFFD title" {
		t.Errorf("came back as %+v", back.Ref)
	}
	if err := spec.check(); err != nil {
		t.Error(err)
	}
	spec.Pasted = "\xff"
	if err := spec.check(); !fault.Is(err, fault.Invalid) {
		t.Errorf("a request that would change on the way: %v", err)
	}
}

func TestMessagesOverTheirLimitsAreRefused(t *testing.T) {
	long := string(make([]byte, maxPasted+1))
	spec := filledTurn(t)
	spec.Pasted = long
	job := filled[CallbackJob](t)
	job.Event.Body = []byte(long)
	meta := filled[CallbackJob](t)
	meta.Event.Metadata = map[string]string{"k": long}
	hand := filled[Handoff](t)
	hand.ProfileDocument = []byte(long)
	for name, err := range map[string]error{
		"request":     spec.check(),
		"body":        job.check(),
		"metadata":    meta.check(),
		"document":    hand.check(),
		"observation": checkObservation(turn.Observation{Kind: turn.ObsCompleted, Text: long}),
		"no kind":     checkObservation(turn.Observation{}),
	} {
		if !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := outcomeFromProto(&callbackv1.Outcome{Kind: "fine"}); !fault.Is(err, CodeUncertain) {
		t.Errorf("an outcome of unknown kind: %v", err)
	}
}
