package outbox

import (
	"strings"
	"testing"
)

// A route knows its session again and tells nobody which one it is: without the Store's
// key the same session has another digest.
func TestADigestOfASessionIsOfOneStoreAndHidesTheValue(t *testing.T) {
	const session = "canary-session"
	a := SessionDigest([]byte("key a"), session)
	if a != SessionDigest([]byte("key a"), session) || a == SessionDigest([]byte("key a"), session+"x") || a == SessionDigest([]byte("key b"), session) {
		t.Error("a digest must be of this key and this session")
	}
	if len(a) != 64 || strings.Contains(a, session) {
		t.Errorf("%q", a)
	}
}
