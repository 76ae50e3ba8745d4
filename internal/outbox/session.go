package outbox

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
)

// SessionDigest stands for a controller session in routes: HMAC-SHA256 under the Store's
// own key. Equal digests mean equal sessions; the value cannot be read back.
func SessionDigest(key []byte, session string) string {
	m := hmac.New(sha256.New, key)
	m.Write([]byte("agent-knock-knock/controller-session/v1\x00" + session))
	return hex.EncodeToString(m.Sum(nil))
}
