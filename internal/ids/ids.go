// Package ids mints, parses and derives the identifiers of this module.
//
// Ids are typed strings: they cross JSON, gRPC and SQLite as text and are never parsed
// by a domain that did not make them. The package knows no domain rule.
package ids

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
)

// The id types. Each is opaque outside the package that documents its meaning.
type (
	SessionID  string // session-YYYYMMDDTHHMMSS-<8 hex>
	TurnID     string // turn-YYYYMMDDTHHMMSS-<8 hex>
	MessageID  string // msg-<32 hex>
	DeliveryID string // callback-delivery-<64 hex>
	RouteID    string // route-<64 hex>
	BridgeID   string // bridge-<16 hex>
	BindingID  string // binding-<16 hex>
	AttemptID  string // attempt-<16 hex>
	// TransitionID is transition-<16 hex>.
	TransitionID string
	TerminalID   string // terminal:v2:tmux:<agent>:<target>:<pid>
	WatchID      string // terminal-watch-<uuid>
	SubjectID    string // what a monitor serves: a TurnID or a WatchID
)

func stamped(prefix string, now time.Time) string {
	return prefix + "-" + now.Local().Format("20060102T150405") + "-" + random(4)
}

func random(n int) string {
	b := make([]byte, n)
	rand.Read(b) // never fails since Go 1.24
	return hex.EncodeToString(b)
}

// NewSession mints a session id stamped with now in local time.
func NewSession(now time.Time) SessionID { return SessionID(stamped("session", now)) }

// NewTurn mints a turn id stamped with now in local time.
func NewTurn(now time.Time) TurnID { return TurnID(stamped("turn", now)) }

// NewBridge mints the identity of one Bridge process.
func NewBridge() BridgeID { return BridgeID("bridge-" + random(8)) }

// NewBinding mints the identity of one binding of a Session to a terminal.
func NewBinding() BindingID { return BindingID("binding-" + random(8)) }

// NewAttempt mints the identity of one delivery attempt.
func NewAttempt() AttemptID { return AttemptID("attempt-" + random(8)) }

// NewWatch mints the id of a Terminal Watch: a random UUID behind its prefix.
func NewWatch() WatchID {
	b := make([]byte, 16)
	rand.Read(b)
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return WatchID(fmt.Sprintf("%s%x-%x-%x-%x-%x", watchPrefix, b[:4], b[4:6], b[6:8], b[8:10], b[10:]))
}

const watchPrefix = "terminal-watch-"

// Watch returns the Watch that a monitor's subject is, if it is one; otherwise it is a
// Turn.
func (s SubjectID) Watch() (WatchID, bool) {
	return WatchID(s), strings.HasPrefix(string(s), watchPrefix)
}

// Kind is the word for what it names, turn or watch: the key of its id in logs.
func (s SubjectID) Kind() string {
	if _, ok := s.Watch(); ok {
		return "watch"
	}
	return "turn"
}

// NewTransition mints the identity of one change of a terminal's native thread.
func NewTransition() TransitionID { return TransitionID("transition-" + random(8)) }

// Derive returns prefix-<hex sha256> over the parts. Parts are length-prefixed, so that
// ("ab","c") and ("a","bc") differ. The same parts always give the same id.
func Derive(prefix string, parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return prefix + "-" + hex.EncodeToString(h.Sum(nil))
}

// DeriveMessage returns the deterministic message id of the parts: msg-<32 hex>.
func DeriveMessage(parts ...string) MessageID {
	return MessageID(Derive("msg", parts...)[:len("msg-")+32])
}

// TextHash returns the lower-case hex sha256 of text.
func TextHash(text string) string {
	s := sha256.Sum256([]byte(text))
	return hex.EncodeToString(s[:])
}

// ShortRef returns "@" and ten hex digits: the human's short name for a full id.
func ShortRef(full string) string {
	s := sha256.Sum256([]byte("agent-knock-knock/session-ref/v1\x00" + full))
	return "@" + hex.EncodeToString(s[:])[:10]
}

// NewTerminal builds the id of an agent process in a tmux pane. The target is escaped so
// that the id holds no blank whatever the tmux session is called.
func NewTerminal(agent, target string, pid int) TerminalID {
	return TerminalID(fmt.Sprintf("terminal:v2:tmux:%s:%s:%d", agent, escapeTarget(target), pid))
}

func escapeTarget(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		if c <= ' ' || c == '%' || c == 0x7f {
			fmt.Fprintf(&b, "%%%02X", c)
			continue
		}
		b.WriteByte(c)
	}
	return b.String()
}
