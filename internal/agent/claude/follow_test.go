package claude

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/agent-knock-knock/akk/internal/agent/claude/known"
	"github.com/agent-knock-knock/akk/internal/agent/claude/transcript"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/turn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// h8 brings a rig to the point where the second prompt is accepted and its answer is not
// on disk yet.
func h8(t *testing.T) (*rig, *run) {
	r := newRig(t)
	r.append(prompt("u1", "", "first prompt") + answer("a1", "u1", "ANSWER-1") + endOf("s0", "a1"))
	u := r.follow(r.anchor("second prompt"))
	r.append(prompt("u2", "s0", "second prompt"))
	u.until("acceptance", func() bool { return u.has(turn.ObsAccepted, "") })
	return r, u
}

func TestH8aAnswerOfThisTurnIsReportedOnceWhenTheLogIsLate(t *testing.T) {
	r, u := h8(t)
	r.say("busy", "")
	r.say("idle", "") // the signal comes before the record
	u.settled(2)
	late := answer("a2", "u2", "ANSWER-2 日本")
	r.append(late[:60])
	u.settled(2)
	u.expect("accepted") // half a line is pending, no error
	r.append(late[60:])
	u.settled(1)
	u.expect("accepted")
	r.append(endOf("s1", "a2") + hookNote("s2", "s1") + sidechain(answer("x1", "u2", "SIDECHAIN")))
	if err := u.ended(); err != nil {
		t.Fatal(err)
	}
	u.expect("accepted", "completed ANSWER-2 日本")
	for _, o := range u.seen() {
		if o.Kind == turn.ObsCompleted && (o.NativeTurnID != "u2" || o.ThreadID != thread || o.FullBytes != len("ANSWER-2 日本") || o.Log == nil) {
			t.Errorf("got %+v", o)
		}
	}
}

func TestH8bNoAnswerIsNeverDone(t *testing.T) {
	r, u := h8(t)
	r.say("busy", "")
	u.until("busy", func() bool { return u.has(turn.ObsActivity, "busy") })
	r.say("idle", "")
	u.untilQuiet("trouble", func() bool { return u.has(turn.ObsTrouble, "") })
	u.settled(20)
	u.expect("accepted", "trouble "+transcript.CodeIdleNoEnd)
}

func TestH8eAgentKilledAfterTheRecordIsWholeIsDone(t *testing.T) {
	r, u := h8(t)
	r.append(answer("a2", "u2", "ANSWER-2 日本"))
	close(u.gone)
	if err := u.ended(); err != nil {
		t.Fatal(err)
	}
	u.expect("accepted", "completed "+transcript.CodeEndAtExit+" ANSWER-2 日本")
}

func TestH8eAgentKilledBeforeTheRecordIsWholeIsGone(t *testing.T) {
	r, u := h8(t)
	late := answer("a2", "u2", "ANSWER-2 日本")
	r.append(late[:len(late)-9])
	close(u.gone)
	if err := u.ended(); err != nil {
		t.Fatal(err)
	}
	u.expect("accepted", "gone")
}

func TestH8eEndAndDeathAtTheSameMomentIsDone(t *testing.T) {
	r, u := h8(t)
	r.append(answer("a2", "u2", "ANSWER-2") + endOf("s1", "a2"))
	close(u.gone)
	if err := u.ended(); err != nil {
		t.Fatal(err)
	}
	u.expect("accepted", "completed ANSWER-2")
}

func TestH8fBrokenCompleteLineIsTroubleAndNoGuess(t *testing.T) {
	r, u := h8(t)
	r.append(`{"type":"assistant","uuid":"a2","parentUuid":"u2",` + "\n" + answer("a2", "u2", "ANSWER-2") + endOf("s1", "a2"))
	u.until("trouble", func() bool { return u.has(turn.ObsTrouble, "") })
	u.settled(5)
	u.expect("accepted", "trouble "+transcript.CodeBroken)
	close(u.gone)
	if err := u.ended(); err != nil {
		t.Fatal(err)
	}
	u.expect("accepted", "trouble "+transcript.CodeBroken, "gone")
}

// Case 47 and the restart of a monitor: the same anchor gives the same observations.
func TestIdenticalPromptBeforeTheAnchorIsIgnoredAndARestartSeesTheSame(t *testing.T) {
	r := newRig(t)
	r.append(prompt("u0", "", "again") + answer("a0", "u0", "OLD") + endOf("s0", "a0"))
	an := r.anchor("again")
	first := r.follow(an)
	first.settled(2)
	first.expect()
	r.append(prompt("u1", "s0", "again"))
	first.until("acceptance", func() bool { return first.has(turn.ObsAccepted, "") })
	first.stop()
	if err := first.ended(); !errors.Is(err, context.Canceled) {
		t.Fatalf("stopped: %v", err)
	}
	r.append(answer("a1", "u1", "NEW") + endOf("s1", "a1"))
	second := r.follow(an)
	if err := second.ended(); err != nil {
		t.Fatal(err)
	}
	second.expect("accepted", "completed NEW")
}

// E05: the project directory does not exist before the first prompt.
func TestVirginSessionIsFollowedFromItsFirstByteE05(t *testing.T) {
	r := newRig(t)
	an := r.anchor("hello")
	if an.Log != nil || an.ThreadID != thread || an.Extra[extraTranscript] != r.log() {
		t.Fatalf("anchor %+v", an)
	}
	u := r.follow(an)
	u.settled(3)
	u.expect()
	r.append(prompt("u1", "", "hello"))
	u.untilQuiet("acceptance", func() bool { return u.has(turn.ObsAccepted, "") })
	r.append(answer("a1", "u1", "hi") + endOf("s1", "a1"))
	if err := u.ended(); err != nil {
		t.Fatal(err)
	}
	u.expect("accepted", "completed hi")
}

func TestVirginSessionWrittenToAnotherProjectDirectoryIsFound(t *testing.T) {
	r := newRig(t)
	u := r.follow(r.anchor("hello"))
	other := filepath.Join(r.dir, known.ProjectsDir, "-elsewhere", thread+known.TranscriptExt)
	r.appendTo(other, prompt("u1", "", "hello")+answer("a1", "u1", "hi")+endOf("s1", "a1"))
	u.untilQuiet("completion", func() bool { return u.has(turn.ObsCompleted, "") })
	u.expect("accepted", "completed hi")
}

func TestFileEventsAloneBringTheEndWithoutATick(t *testing.T) {
	r, u := h8(t) // the clock of the rig never moves here
	r.append(answer("a2", "u2", "fast") + endOf("s1", "a2"))
	if err := u.ended(); err != nil {
		t.Fatal(err)
	}
	u.expect("accepted", "completed fast")
}

// Esc within the first moments: the agent worked, is idle, and no record says so.
func TestWorkWithoutAnyRecordIsTroubleAndNotProvedNotAccepted(t *testing.T) {
	r := newRig(t)
	u := r.follow(r.anchor("hello"))
	r.say("busy", "")
	u.until("busy", func() bool { return u.has(turn.ObsActivity, "busy") })
	r.say("idle", "")
	u.untilQuiet("trouble", func() bool { return u.has(turn.ObsTrouble, "") })
	u.settled(5)
	u.expect("trouble " + transcript.CodeIdleNoRecord)
	// The person presses Enter on the restored prompt after all.
	r.append(prompt("u1", "", "hello") + answer("a1", "u1", "hi") + endOf("s1", "a1"))
	u.untilQuiet("completion", func() bool { return u.has(turn.ObsCompleted, "") })
	u.expect("trouble "+transcript.CodeIdleNoRecord, "accepted", "completed hi")
}

// T11, T17, T18: an Enter that did nothing, or a prompt parked in the queue, proves nothing.
func TestIdleAgentThatNeverWorkedSaysNothing(t *testing.T) {
	r := newRig(t)
	u := r.follow(r.anchor("hello"))
	r.append(`{"type":"queue-operation","operation":"enqueue","content":"hello","sessionId":"` + thread + `"}` + "\n")
	u.settled(30)
	u.expect()
}

func TestWaitingStatusIsReportedAsActivity(t *testing.T) {
	r, u := h8(t)
	r.say("busy", "")
	u.until("busy", func() bool { return u.has(turn.ObsActivity, "busy") })
	r.say("waiting", "permission prompt")
	u.until("waiting", func() bool { return u.has(turn.ObsActivity, "waiting") })
	for _, o := range u.seen() {
		if o.Code == "waiting" && (o.Source != sourceStatus || o.Detail != "permission prompt") {
			t.Errorf("got %+v", o)
		}
	}
	u.settled(20) // a person may take their time
	u.expect("accepted")
}

func TestSessionChangedByAPersonDoesNotMoveOurTurn(t *testing.T) {
	r, u := h8(t)
	other := func(m map[string]any) { m["sessionId"] = "99999999-2222-3333-4444-555555555555" }
	r.say("idle", "", other) // /clear
	u.until("the change", func() bool { return u.has(turn.ObsActivity, "idle") })
	r.append(answer("a2", "u2", "still ours") + endOf("s1", "a2"))
	if err := u.ended(); err != nil {
		t.Fatal(err)
	}
	u.expect("accepted", "completed still ours")
}

func TestSessionChangedBeforeAcceptanceIsTrouble(t *testing.T) {
	r := newRig(t)
	r.append(prompt("u0", "", "old"))
	u := r.follow(r.anchor("hello"))
	r.say("idle", "", func(m map[string]any) { m["sessionId"] = "99999999-2222-3333-4444-555555555555" })
	u.untilQuiet("trouble", func() bool { return u.has(turn.ObsTrouble, codeThreadChanged) })
	u.settled(3)
	u.expect("trouble " + codeThreadChanged)
}

func TestLaterHumanPromptInterruptsOursCase48(t *testing.T) {
	r, u := h8(t)
	r.append(prompt("u3", "", "something else") + answer("a3", "u3", "NOT OURS") + endOf("s3", "a3"))
	u.untilQuiet("the end", func() bool { return u.has(turn.ObsInterrupted, "") })
	u.expect("accepted", "interrupted "+transcript.CodeSuperseded)
}

func TestReplacedTranscriptIsTrouble(t *testing.T) {
	r, u := h8(t)
	b, err := os.ReadFile(r.log())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(r.log()+".new", append(b, []byte(answer("a2", "u2", "FORGED")+endOf("s1", "a2"))...), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(r.log()+".new", r.log()); err != nil {
		t.Fatal(err)
	}
	u.untilQuiet("trouble", func() bool { return u.has(turn.ObsTrouble, "") })
	u.settled(3)
	u.expect("accepted", "trouble "+string(transcript.CodeReplaced))
}

func TestUnknownVersionWithoutAnEndRecordCompletesByItsIdleStatus(t *testing.T) {
	for version, want := range map[string]string{
		"3.0.0":   "completed " + transcript.CodeDegradedEnd + " the end",
		"2.1.250": "trouble " + transcript.CodeIdleNoEnd, // this line always writes the end
	} {
		r, u := h8(t)
		v := func(m map[string]any) { m["version"] = version }
		r.say("busy", "", v)
		u.until("busy", func() bool { return u.has(turn.ObsActivity, "busy") })
		r.append(answer("a2", "u2", "the end"))
		r.say("idle", "", v)
		u.untilQuiet(version, func() bool { return len(u.brief()) > 1 })
		u.expect("accepted", want)
	}
}

// E06: without a status file, two sessions of one directory are told apart by the text.
func TestWithoutAStatusFileTheRequestsOwnTextFindsTheTranscriptE06(t *testing.T) {
	r := newRig(t)
	old := "aaaaaaaa-2222-3333-4444-555555555555"
	r.appendTo(r.logOf(old), strings.ReplaceAll(prompt("o1", "", "mine"), thread, old))
	if err := os.Remove(r.statusPath()); err != nil {
		t.Fatal(err)
	}
	an := r.anchor("mine")
	if an.ThreadID != "" || len(an.Candidates) != 1 || an.Log != nil {
		t.Fatalf("anchor %+v", an)
	}
	u := r.follow(an)
	neighbour, ours := "bbbbbbbb-2222-3333-4444-555555555555", "cccccccc-2222-3333-4444-555555555555"
	say := func(id, line string) { r.appendTo(r.logOf(id), strings.ReplaceAll(line, thread, id)) }
	say(neighbour, prompt("n1", "", "theirs")+answer("n2", "n1", "THEIRS")+endOf("n3", "n2"))
	say(ours, prompt("m1", "", "mine"))
	u.untilQuiet("acceptance", func() bool { return u.has(turn.ObsAccepted, "") })
	say(neighbour, prompt("n4", "n3", "mine")) // too late to matter
	say(ours, answer("m2", "m1", "MINE")+endOf("m3", "m2"))
	u.untilQuiet("completion", func() bool { return u.has(turn.ObsCompleted, "") })
	u.expect("accepted", "completed MINE")
	for _, o := range u.seen() {
		if o.Kind == turn.ObsAccepted && o.ThreadID != ours {
			t.Errorf("bound to %q", o.ThreadID)
		}
	}
}

func TestRequestInTwoTranscriptsAtOnceIsTrouble(t *testing.T) {
	r := newRig(t)
	if err := os.Remove(r.statusPath()); err != nil {
		t.Fatal(err)
	}
	a, b := "bbbbbbbb-2222-3333-4444-555555555555", "cccccccc-2222-3333-4444-555555555555"
	an := r.anchor("mine")
	r.appendTo(r.logOf(a), strings.ReplaceAll(prompt("n1", "", "mine"), thread, a))
	r.appendTo(r.logOf(b), strings.ReplaceAll(prompt("m1", "", "mine"), thread, b))
	u := r.follow(an)
	u.untilQuiet("trouble", func() bool { return u.has(turn.ObsTrouble, "") })
	u.expect("trouble " + transcript.CodeTwoMatches)
}

func TestAnErrorOfEmitEndsFollow(t *testing.T) {
	r := newRig(t)
	boom := errors.New("boom")
	n := 0
	err := r.a.Follow(t.Context(), r.ref, r.anchor("x"), nil, func(turn.Observation) error { n++; return boom })
	if !errors.Is(err, boom) || n != 1 {
		t.Errorf("%v after %d", err, n)
	}
}

func TestForeignOrEmptyAnchorIsRefused(t *testing.T) {
	r := newRig(t)
	for _, an := range []turn.Anchor{{Agent: "codex"}, {Agent: "claude"}} {
		err := r.a.Follow(t.Context(), r.ref, an, nil, func(turn.Observation) error { return nil })
		if !fault.Is(err, fault.Invalid) {
			t.Errorf("%+v: %v", an, err)
		}
	}
}
