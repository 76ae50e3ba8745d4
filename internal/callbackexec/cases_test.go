package callbackexec_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/callbackexec"
	"github.com/agent-knock-knock/akk/internal/outbox"
)

// Case C08: an exit status proves nothing.
func TestCase23TheExitStatusIsEvidenceOnly(t *testing.T) {
	e := newExecutor(t)
	for _, c := range []struct {
		exit, say string
		kind      outbox.OutcomeKind
		code      string
	}{
		{"7", accepted, outbox.Accepted, ""},
		{"0", "", outbox.Uncertain, callbackexec.CodeAckInvalid},
		{"1", "text", outbox.Uncertain, callbackexec.CodeUnacknowledged},
		{"0", strings.Replace(accepted, "MESSAGE", "", 1), outbox.Uncertain, callbackexec.CodeAckInvalid},
	} {
		j := newJob(t, nil)
		j.Env[envSay], j.Env[envExit] = c.say, c.exit
		check(t, e.Run(t.Context(), j), c.kind, c.code)
	}
}

func TestCase25ForeignOrMissingIDsAreUncertainWhateverTheWord(t *testing.T) {
	e := newExecutor(t)
	j := newJob(t, withMapping(map[string]string{"accepted": "accepted", "retry": "retryable_failure"}))
	j.Env[envSay] = strings.Replace(accepted, "MESSAGE", "another", 1)
	check(t, e.Run(t.Context(), j), outbox.Uncertain, callbackexec.CodeAckIdentity)
	j.Env[envSay] = `{"result":{"status":"retry"}}`
	check(t, e.Run(t.Context(), j), outbox.Uncertain, callbackexec.CodeAckInvalid)
}

func TestCase26PointersSeeOnlyWhatTheDocumentHas(t *testing.T) {
	e := newExecutor(t)
	j := newJob(t, nil)
	for _, word := range []string{"toString", "__proto__", "constructor", "hasOwnProperty"} {
		j.Env[envSay] = strings.Replace(accepted, `"accepted"`, `"`+word+`"`, 1)
		check(t, e.Run(t.Context(), j), outbox.Uncertain, callbackexec.CodeAckUnknown)
	}
	pointers := func(disposition string) func(map[string]any) {
		return func(cb map[string]any) {
			ack := cb["acknowledgement"].(map[string]any)
			ack["disposition"].(map[string]any)["jsonPointer"] = disposition
		}
	}
	say := strings.Replace(accepted, `{"result"`, `{"log":["x",{"a/b~c":"accepted"}],"":{"":"accepted"},"result"`, 1)
	for pointer, want := range map[string]string{
		"/log/1/a~1b~0c":  "",
		"//":              "", // keys may be empty
		"/log/01/a~1b~0c": callbackexec.CodeAckInvalid,
		"/log/-/a~1b~0c":  callbackexec.CodeAckInvalid,
		"/log/2/a~1b~0c":  callbackexec.CodeAckInvalid,
		"/log/length":     callbackexec.CodeAckInvalid,
		"/log/0/0":        callbackexec.CodeAckInvalid,
		"/log":            callbackexec.CodeAckInvalid,
	} {
		j := newJob(t, pointers(pointer))
		j.Env[envSay] = say
		kind := outbox.Uncertain
		if want == "" {
			kind = outbox.Accepted
		}
		t.Run(pointer, func(t *testing.T) { check(t, e.Run(t.Context(), j), kind, want) })
	}
}

// Case C07, too: a body is data, whatever it looks like.
func TestCase27TheChildGetsExactlyItsArgumentsEnvironmentAndBody(t *testing.T) {
	t.Setenv("AKK_CB_SECRET", "of the Bridge")
	e := newExecutor(t)
	file := filepath.Join(t.TempDir(), "report")
	j := newJob(t, nil)
	j.Body = []byte("echo ${HOME} $(x) `y` ${envelope.body} \"quotes\" 'x'\r\n\x00😀" + strings.Repeat("m", 1<<20) + "\n")
	j.Session = "session ${envelope.message_id} $(x)" // a value is never rendered again
	j.Env = map[string]string{
		envDo: "report", envSay: accepted, "AKK_CB_FILE": file,
		"NOT_ALLOWED": "x", "MY_AGENT_TOKEN": "",
	}
	check(t, e.Run(t.Context(), j), outbox.Accepted, "")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Argv, Env []string
		Body      []byte
	}
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if want := []string{"--session=" + j.Session, delivery, message, "--key=" + idemKey}; !slices.Equal(got.Argv, want) {
		t.Errorf("argv %q, want %q", got.Argv, want)
	}
	slices.Sort(got.Env)
	if want := []string{envDo + "=report", "AKK_CB_FILE=" + file, envSay + "=" + accepted, "MY_AGENT_TOKEN="}; !slices.Equal(got.Env, want) {
		t.Errorf("environment %q, want %q", got.Env, want)
	}
	if !bytes.Equal(got.Body, j.Body) {
		t.Errorf("the body changed: %d bytes, want %d", len(got.Body), len(j.Body))
	}
}

// Cases 28 and C05, and the whole list of checks before a start.
func TestCase28WhatDoesNotMatchTheRouteIsPermanentAndStartsNothing(t *testing.T) {
	e := newExecutor(t)
	other := func(edit func(*outbox.Route)) func(*callbackexec.Job) {
		return func(j *callbackexec.Job) { edit(&j.Route); j.RouteID = j.Route.ID() }
	}
	for code, edits := range map[string][]func(*callbackexec.Job){
		callbackexec.CodeRouteInvalid: {
			func(j *callbackexec.Job) { j.Route = outbox.Route{} },
			other(func(r *outbox.Route) { r.SessionDigest = "" }),
		},
		callbackexec.CodeTransportUnsupported: {other(func(r *outbox.Route) { r.Transport = "chat_send" })},
		callbackexec.CodeProfileMismatch:      {other(func(r *outbox.Route) { r.ProfileID = "another" })},
		callbackexec.CodeRevisionMismatch:     {other(func(r *outbox.Route) { r.ProfileRevision = "2" })},
		callbackexec.CodeFingerprintMismatch: {
			other(func(r *outbox.Route) { r.ProfileFingerprint = "sha256:other" }),
			func(j *callbackexec.Job) { j.Live.ProfileFingerprint = "sha256:edited" },
		},
		callbackexec.CodeSessionMismatch:       {other(func(r *outbox.Route) { r.SessionDigest = "digest-of-another" })},
		callbackexec.CodeEnvelopeRouteMismatch: {func(j *callbackexec.Job) { j.RouteID = "route-other" }},
		callbackexec.CodeAttemptInvalid: {
			func(j *callbackexec.Job) { j.Attempt = 0 },
			func(j *callbackexec.Job) { j.AttemptID = " " },
		},
		callbackexec.CodeConfiguration: {
			func(j *callbackexec.Job) { j.Session = "a\x00b" },
			func(j *callbackexec.Job) { j.Session = "" },
			func(j *callbackexec.Job) { j.DeliveryID = "" },
			func(j *callbackexec.Job) { j.Profile.Callback.Arguments = []string{"${HOME}"} },
			func(j *callbackexec.Job) { j.Profile.Callback.Stdin = "" },
		},
	} {
		for _, edit := range edits {
			file := filepath.Join(t.TempDir(), "report")
			j := newJob(t, nil)
			j.Env[envDo], j.Env["AKK_CB_FILE"] = "report", file
			edit(&j)
			check(t, e.Run(t.Context(), j), outbox.PermanentFailure, code)
			if _, err := os.Stat(file); err == nil {
				t.Errorf("%s: the program was started", code)
			}
		}
	}
}

func TestARouteBoundProfileTakesTheSessionOfTheRoute(t *testing.T) {
	j := newJob(t, nil)
	j.Profile.ControllerContext.DeclaredScope = "route_bound_v1"
	j.Route.SessionDigest = "digest-of-another"
	j.RouteID = j.Route.ID()
	check(t, newExecutor(t).Run(t.Context(), j), outbox.Accepted, "")
}

func TestCase29AnExecutableDeletedAfterTheStartIsPermanent(t *testing.T) {
	e := newExecutor(t)
	j := newJob(t, nil)
	check(t, e.Run(t.Context(), j), outbox.Accepted, "")
	j.Profile.Callback.Executable = filepath.Join(t.TempDir(), "deleted")
	check(t, e.Run(t.Context(), j), outbox.PermanentFailure, callbackexec.CodeExecutableUnavailable)
}

func TestHostileProgramsChangeNothingButTheirOwnOutcome(t *testing.T) {
	e := newExecutor(t)
	j := newJob(t, nil)
	j.Body = make([]byte, 1<<20)
	j.Env[envDo] = "ignore input"
	check(t, e.Run(t.Context(), j), outbox.Accepted, "")

	j.Env[envDo] = "flood"
	check(t, e.Run(t.Context(), j), outbox.Uncertain, callbackexec.CodeLimit)

	// Case S10: children that keep the pipes open, one in a session of its own.
	j.Env[envDo] = "answer and leave children"
	start := time.Now()
	check(t, e.Run(t.Context(), j), outbox.Accepted, "")
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("settled after %s although the program ended at once", took)
	}
}

func TestAStopEndsTheProgramAndIsUncertainOnlyIfItRan(t *testing.T) {
	e := newExecutor(t)
	j := newJob(t, nil)
	file := filepath.Join(t.TempDir(), "ran")
	j.Env[envDo], j.Env["AKK_CB_FILE"] = "answer and hang", file
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for tick := time.NewTicker(5 * time.Millisecond); ctx.Err() == nil; <-tick.C {
			if _, err := os.Stat(file); err == nil {
				cancel()
			}
		}
	}()
	check(t, e.Run(ctx, j), outbox.Uncertain, callbackexec.CodeExecution)
	check(t, e.Run(ctx, j), outbox.RetryableFailure, callbackexec.CodeNotStarted)
}
