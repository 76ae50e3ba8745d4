package callbackexec_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-knock-knock/akk/internal/callbackexec"
	"github.com/agent-knock-knock/akk/internal/outbox"
)

// One row per line of the acknowledgement truth table, each with a real child. Rows that
// come from a limit or from the start are below.
func TestEveryRowOfTheAcknowledgementTable(t *testing.T) {
	e := newExecutor(t)
	const ids = `"request":{"delivery_id":"DELIVERY","message_id":"MESSAGE"}`
	status := func(word string) string { return `{"result":{"status":"` + word + `"},` + ids + `}` }
	rows := []struct {
		row, say, exit string
		kind           outbox.OutcomeKind
		code           string
	}{
		{"B1 exit 0, empty", "", "0", outbox.Uncertain, callbackexec.CodeAckInvalid},
		{"B1 exit 0, blank", " \n\t", "0", outbox.Uncertain, callbackexec.CodeAckInvalid},
		{"B1 exit 0, text", "accepted", "0", outbox.Uncertain, callbackexec.CodeAckInvalid},
		{"B1 exit 0, a key twice", `{"result":{"status":"accepted","status":"accepted","acceptance_id":"a"},` + ids + `}`, "0", outbox.Uncertain, callbackexec.CodeAckInvalid},
		{"B1 exit 0, cut", accepted[:len(accepted)-1], "0", outbox.Uncertain, callbackexec.CodeAckInvalid},
		{"B2 exit 1, empty", "", "1", outbox.Uncertain, callbackexec.CodeUnacknowledged},
		{"B2 exit 1, text", "no such session", "1", outbox.Uncertain, callbackexec.CodeUnacknowledged},
		{"B3 exit 0, two documents", accepted + "\n" + accepted, "0", outbox.Uncertain, callbackexec.CodeAckInvalid},
		{"B3 exit 0, trailing text", accepted + "ok", "0", outbox.Uncertain, callbackexec.CodeAckInvalid},
		{"B3 exit 3, two documents", accepted + accepted, "3", outbox.Uncertain, callbackexec.CodeUnacknowledged},
		{"C1 no disposition", `{` + ids + `}`, "0", outbox.Uncertain, callbackexec.CodeAckInvalid},
		{"C1 no disposition, exit 1", `{` + ids + `}`, "1", outbox.Uncertain, callbackexec.CodeAckInvalid},
		{"C1 disposition is a number", `{"result":{"status":1},` + ids + `}`, "0", outbox.Uncertain, callbackexec.CodeAckInvalid},
		{"C1 disposition is null", `{"result":{"status":null},` + ids + `}`, "0", outbox.Uncertain, callbackexec.CodeAckInvalid},
		{"C1 disposition is blank", status("  "), "0", outbox.Uncertain, callbackexec.CodeAckInvalid},
		{"C1 the document is a string", `"accepted"`, "0", outbox.Uncertain, callbackexec.CodeAckInvalid},
		{"C2 unknown word", status("great"), "0", outbox.Uncertain, callbackexec.CodeAckUnknown},
		{"C2 other case", status("Accepted"), "0", outbox.Uncertain, callbackexec.CodeAckUnknown},
		{"C2 not trimmed", status("accepted "), "0", outbox.Uncertain, callbackexec.CodeAckUnknown},
		{"D1 no ids", `{"result":{"status":"accepted","acceptance_id":"a"}}`, "0", outbox.Uncertain, callbackexec.CodeAckInvalid},
		{"D1 blank message id", strings.Replace(accepted, "MESSAGE", " ", 1), "0", outbox.Uncertain, callbackexec.CodeAckInvalid},
		{"D1 before D2: other delivery, no message", `{"result":{"status":"accepted"},"request":{"delivery_id":"x"}}`, "0", outbox.Uncertain, callbackexec.CodeAckInvalid},
		{"D1 permanent without ids", `{"result":{"status":"rejected"}}`, "0", outbox.Uncertain, callbackexec.CodeAckInvalid},
		{"D2 other delivery id", strings.Replace(accepted, "DELIVERY", "other", 1), "0", outbox.Uncertain, callbackexec.CodeAckIdentity},
		{"D2 padded delivery id", strings.Replace(accepted, "DELIVERY", " DELIVERY", 1), "0", outbox.Uncertain, callbackexec.CodeAckIdentity},
		{"D3 other message id", strings.Replace(accepted, "MESSAGE", "other", 1), "0", outbox.Uncertain, callbackexec.CodeAckIdentity},
		{"E1 no acceptance id", status("accepted"), "0", outbox.Uncertain, callbackexec.CodeAckInvalid},
		{"E1 blank acceptance id", strings.Replace(accepted, "a-42", " ", 1), "0", outbox.Uncertain, callbackexec.CodeAckInvalid},
		{"E2 exit 0", accepted, "0", outbox.Accepted, ""},
		{"E2 exit 7", accepted, "7", outbox.Accepted, ""},
		{"E2 blanks around", "\r\n " + accepted + " \n", "0", outbox.Accepted, ""},
		{"E3", status("retry"), "1", outbox.RetryableFailure, callbackexec.CodeHostRetryable},
		{"E4", status("reject"), "0", outbox.PermanentFailure, callbackexec.CodeHostPermanent},
		{"E5", status("unknown"), "0", outbox.Uncertain, callbackexec.CodeHostUncertain},
	}
	for _, r := range rows {
		t.Run(r.row, func(t *testing.T) {
			j := newJob(t, withMapping(map[string]string{
				"accepted": "accepted", "retry": "retryable_failure", "reject": "permanent_failure", "rejected": "permanent_failure", "unknown": "uncertain",
			}))
			j.Env[envSay], j.Env[envExit] = r.say, r.exit
			out := e.Run(t.Context(), j)
			check(t, out, r.kind, r.code)
			if out.ExitStatus == nil || string(rune('0'+*out.ExitStatus)) != r.exit {
				t.Errorf("evidence of the exit is %v, want %s", out.ExitStatus, r.exit)
			}
			if r.kind == outbox.Accepted && out.AcceptanceID != "a-42" {
				t.Errorf("acceptance id %q", out.AcceptanceID)
			}
		})
	}
}

func withMapping(mapping map[string]string) func(map[string]any) {
	return func(cb map[string]any) {
		cb["acknowledgement"].(map[string]any)["disposition"].(map[string]any)["mapping"] = mapping
	}
}

func TestRowA1AProgramThatCannotStartIsPermanent(t *testing.T) {
	e := newExecutor(t)
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, path := range map[string]string{
		"ENOENT":             filepath.Join(dir, "nothing"),
		"ENOTDIR":            write("file", "", 0o600) + "/below",
		"EACCES":             write("plain", "#!/usr/bin/python3\n", 0o600),
		"EACCES directory":   dir,
		"ENOEXEC":            write("text", "just text\n", 0o700),
		"ENOENT interpreter": write("script", "#!/no/such/interpreter\n", 0o700),
		"ENAMETOOLONG":       "/" + strings.Repeat("n", 300),
	} {
		j := newJob(t, nil)
		j.Profile.Callback.Executable = path
		t.Run(name, func(t *testing.T) {
			out := e.Run(t.Context(), j)
			check(t, out, outbox.PermanentFailure, callbackexec.CodeExecutableUnavailable)
			if out.ExitStatus != nil || out.Signal != "" {
				t.Errorf("evidence of a run that was none: %+v", out)
			}
		})
	}
}

// Row A2 and case 24, first half.
func TestRowA2AcceptedAndThenTooSlowIsUncertain(t *testing.T) {
	j := newJob(t, func(cb map[string]any) { cb["timeoutMs"] = 400 })
	j.Env[envDo] = "answer and hang"
	out := newExecutor(t).Run(t.Context(), j)
	check(t, out, outbox.Uncertain, callbackexec.CodeLimit)
	if out.Signal != "killed" || out.ExitStatus != nil {
		t.Errorf("evidence %+v", out)
	}
}

// Row A3 and case 24, second half.
func TestRowA3OneByteAboveTheOutputLimitIsUncertain(t *testing.T) {
	e := newExecutor(t)
	answer := strings.NewReplacer("DELIVERY", delivery, "MESSAGE", message).Replace(accepted)
	j := newJob(t, func(cb map[string]any) { cb["maxOutputBytes"] = len(answer) })
	check(t, e.Run(t.Context(), j), outbox.Accepted, "")
	j.Env[envSay] = accepted + "\n"
	check(t, e.Run(t.Context(), j), outbox.Uncertain, callbackexec.CodeLimit)
}

// Row A4: what a program did whose runner was lost, or that was ended from outside, is
// unknown. Where nothing started, it is not.
func TestRowA4AnEndFromOutsideIsUncertain(t *testing.T) {
	e := newExecutor(t)
	j := newJob(t, nil)
	j.Env[envDo] = "kill yourself"
	out := e.Run(t.Context(), j)
	check(t, out, outbox.Accepted, "") // E2: a signal is evidence only, the answer was exact
	if out.Signal != "killed" {
		t.Errorf("evidence %+v", out)
	}
	j.Env[envSay] = ""
	check(t, e.Run(t.Context(), j), outbox.Uncertain, callbackexec.CodeUnacknowledged) // B2
}

func TestAnArgumentListThatIsTooLongIsPermanentBecauseNothingStarted(t *testing.T) {
	j := newJob(t, nil)
	j.Env["MY_AGENT_TOKEN"] = strings.Repeat("x", 1<<18) // above the kernel's limit of one string
	out := newExecutor(t).Run(t.Context(), j)
	check(t, out, outbox.PermanentFailure, callbackexec.CodeConfiguration)
}
