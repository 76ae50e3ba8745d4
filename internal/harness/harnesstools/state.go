package harnesstools

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"

	"github.com/agent-knock-knock/akk/internal/harness"
	"github.com/agent-knock-knock/akk/internal/harness/client"
)

// thread is what a waiting call is about. It travels through the Host when the question is
// the result of the call.
type thread struct {
	Tool      string `json:"t"`
	SessionID string `json:"s"`
	MessageID string `json:"m,omitempty"`
	RequestID string `json:"r"`
	AskedAt   int64  `json:"a"` // milliseconds
}

// seal signs a thread with the key of this process: a Host can only send back what it got.
func (s *service) seal(t thread, now time.Time) string {
	t.AskedAt = now.UnixMilli()
	b, err := json.Marshal(t)
	if err != nil { // strings and a number always marshal
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(b) + "." + base64.RawURLEncoding.EncodeToString(s.mac(b))
}

func (s *service) mac(b []byte) []byte {
	h := hmac.New(sha256.New, s.key[:])
	h.Write(b)
	return h.Sum(nil)
}

// unseal reads a state that comes back. One that is not ours, or of another call, is refused,
// and then nothing is submitted.
func (s *service) unseal(state, tool, session string) (t thread, err error) {
	body, sum, _ := strings.Cut(state, ".")
	b, errBody := base64.RawURLEncoding.DecodeString(body)
	m, errSum := base64.RawURLEncoding.DecodeString(sum)
	if errBody != nil || errSum != nil || !hmac.Equal(m, s.mac(b)) || json.Unmarshal(b, &t) != nil || t.Tool != tool || t.SessionID != session {
		return thread{}, harness.Refuse(client.ElicitationFailed, "the request state is not one that this process gave to this call; nothing was submitted").
			Advise("call wait with the message_id, or authenticate again")
	}
	return t, nil
}
