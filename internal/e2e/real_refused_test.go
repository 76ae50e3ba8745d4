//go:build e2e

package e2e

import (
	"strings"
	"testing"
	"time"
)

// Case 75: a model server that refuses the key, as each real agent tells it. What comes through
// is the agent's own decision; the message ends as failed with its code, the session goes on or
// says that it is logged out, and the next caller reads the same. Claude is not here: it retries
// for minutes without a word.
func TestRealACPAgentsWhoseKeyIsRefused(t *testing.T) {
	for _, c := range []struct {
		harness string
		codes   []string // of the message's error
	}{
		{"codex", []string{"authentication_required", "acp_rpc_error"}},
		{"opencode", []string{"acp_rpc_error", "authentication_required"}},
		{"gemini", []string{"acp_rpc_error", "authentication_required"}},
	} {
		t.Run(c.harness, func(t *testing.T) {
			b := newBehind(t, c.harness)
			p := b.start("", nil)
			out, code := p.patient("create_session", b.launch())
			if code != "" {
				t.Fatalf("%s %v", code, out)
			}
			s := out["session_id"]
			began := time.Now()
			out, code = p.patient("send_message", obj{"session_id": s, "text": "FAIL:401"})
			t.Logf("after %v: %s %v", time.Since(began).Round(time.Millisecond), code, out)
			e, _ := out["error"].(obj)
			got, _ := e["code"].(string)
			if out["state"] != "failed" || !strings.Contains(strings.Join(c.codes, " "), got) || got == "" {
				t.Fatalf("%s %v", code, out)
			}
			again, _ := p.patient("message_status", obj{"session_id": s, "message_id": out["message_id"]})
			if told(again) != told(out) {
				t.Errorf("told %s, now %s", told(out), told(again))
			}
			if got == "authentication_required" { // the login's workflow is what comes next
				if d, _ := e["detail"].(obj); d["next_action"] != "authenticate" {
					t.Errorf("%v", out)
				}
				if st, _ := p.patient("auth_status", obj{"session_id": s}); st["authenticated"] != false {
					t.Errorf("%v", st)
				}
				_, code = p.patient("send_message", obj{"session_id": s, "text": "SAY x"})
				if code != "authentication_required" {
					t.Errorf("the next message gets %q", code)
				}
				return
			}
			if st := p.says(s.(string), "SAY:back"); st["state"] != "completed" {
				t.Errorf("the session is of no use afterwards: %v", st)
			}
		})
	}
}
