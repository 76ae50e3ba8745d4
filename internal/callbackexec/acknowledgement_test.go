package callbackexec

import (
	"encoding/json"
	"testing"

	"github.com/agent-knock-knock/akk/internal/outbox"
	"github.com/agent-knock-knock/akk/internal/profile"
)

// Whatever a program prints, only a document that says "accepted" for exactly our ids is a
// delivery. encoding/json is the second reader.
func FuzzNothingBecomesAcceptedThatIsNot(f *testing.F) {
	p, err := profile.Parse(profile.Starter())
	if err != nil {
		f.Fatal(err)
	}
	ack := p.Callback.Acknowledgement
	for _, seed := range []string{
		`{"result":{"status":"accepted","acceptance_id":"a"},"request":{"delivery_id":"d","message_id":"m"}}`,
		`{"result":{"status":"accepted","acceptance_id":"a","status":"failed"},"request":{"delivery_id":"d","message_id":"m"}}`,
		`{"result":{"status":"accepted","acceptance_id":"a"},"request":{"delivery_id":"d","message_id":"m"}}{}`,
		"\xef\xbb\xbf{}", `[]`, `"accepted"`, `{"result":null}`, ``,
	} {
		f.Add([]byte(seed), true)
		f.Add([]byte(seed), false)
	}
	f.Fuzz(func(t *testing.T, stdout []byte, exited bool) {
		v := judge(stdout, exited, ack, "d", "m")
		if (v.kind == outbox.Accepted) != (v.code == codeNone) || v.kind == "" {
			t.Fatalf("verdict %+v", v)
		}
		if v.kind != outbox.Accepted {
			return
		}
		var doc struct {
			Result  struct{ Status, Acceptance_ID string }
			Request struct{ Delivery_ID, Message_ID string }
		}
		if err := json.Unmarshal(stdout, &doc); err != nil {
			t.Fatalf("accepted what is no JSON: %v", err)
		}
		if doc.Request.Delivery_ID != "d" || doc.Request.Message_ID != "m" || doc.Result.Status != "accepted" || doc.Result.Acceptance_ID != v.acceptance {
			t.Fatalf("accepted %q as %+v", stdout, doc)
		}
	})
}
