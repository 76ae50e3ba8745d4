package claude

import (
	"testing"

	"github.com/agent-knock-knock/akk/internal/turn"
)

func failure(uuid, parent string) string {
	return record("assistant", uuid, parent, `"isApiErrorMessage":true,"apiErrorStatus":400,"message":{"role":"assistant","model":"<synthetic>",`+
		`"stop_reason":"stop_sequence","content":[{"type":"text","text":"API Error: 400 nope"}]}`)
}

// 2.1.332 writes nothing behind the error of a failed turn.
func TestAFailureWithoutAnEndIsFailedOnceTheAgentIsIdle(t *testing.T) {
	r := newRig(t)
	u := r.follow(r.anchor("a task"))
	r.say("busy", "")
	r.append(prompt("u1", "", "a task") + failure("e1", "u1"))
	u.until("acceptance", func() bool { return u.has(turn.ObsAccepted, "") })
	u.settled(8)
	u.expect("accepted") // still busy: it may try again
	r.say("idle", "")
	u.untilQuiet("the failure", func() bool { return u.has(turn.ObsFailed, "") })
	if err := u.ended(); err != nil {
		t.Fatal(err)
	}
	if got := u.seen(); got[len(got)-1].NativeTurnID != "u1" {
		t.Errorf("%+v", got)
	}
}

func TestAnAnswerWithoutAnEndIsNoEndOfAVersionThatWritesOne(t *testing.T) {
	r := newRig(t)
	u := r.follow(r.anchor("a task"))
	r.say("busy", "")
	r.append(prompt("u1", "", "a task") + failure("e1", "u1") + answer("a1", "e1", "after all"))
	u.until("acceptance", func() bool { return u.has(turn.ObsAccepted, "") })
	r.say("idle", "")
	u.untilQuiet("that there is no end", func() bool { return u.has(turn.ObsTrouble, "idle_without_end") })
	if u.has(turn.ObsFailed, "") || u.has(turn.ObsCompleted, "") {
		t.Errorf("%q", u.brief())
	}
}
