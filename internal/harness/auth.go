package harness

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"slices"
	"strings"
	"time"
)

// AuthState is where a login is.
type AuthState string

// The states of a login. The last five are terminal.
const (
	AuthNone            AuthState = "none"
	AuthMethodSelection AuthState = "method_selection"
	AuthRunning         AuthState = "running"
	AuthWaiting         AuthState = "waiting_input"
	AuthReady           AuthState = "ready"
	AuthStateFailed     AuthState = "failed"
	AuthCancelled       AuthState = "cancelled"
	AuthLimited         AuthState = "rate_limited"
	AuthStateTimedOut   AuthState = "timed_out"
)

// Terminal reports whether the login ended.
func (s AuthState) Terminal() bool {
	return s == AuthReady || s == AuthStateFailed || s == AuthCancelled || s == AuthLimited || s == AuthStateTimedOut
}

// InFlight reports whether the login holds the session and its target.
func (s AuthState) InFlight() bool {
	return s == AuthMethodSelection || s == AuthRunning || s == AuthWaiting
}

// AuthEvent is a fact about a login.
type AuthEvent string

// The facts that move a login.
const (
	AuthBegan    AuthEvent = "began"    // the methods are shown
	AuthPicked   AuthEvent = "picked"   // a method was chosen
	AuthAsked    AuthEvent = "asked"    // the person must do something
	AuthAnswered AuthEvent = "answered" // it was done
	AuthProved   AuthEvent = "proved"   // the agent opened a session: nothing less is a login
	AuthBroke    AuthEvent = "broke"
	AuthDeclined AuthEvent = "declined"
	AuthLate     AuthEvent = "late"
	AuthBarred   AuthEvent = "barred" // the rate limit
)

// authTable is the whole state machine of a login. A login that ended may begin again.
var authTable = map[AuthState]map[AuthEvent]AuthState{
	AuthNone: {AuthBegan: AuthMethodSelection, AuthProved: AuthReady, AuthBarred: AuthLimited},
	AuthMethodSelection: {AuthPicked: AuthRunning, AuthDeclined: AuthCancelled, AuthBroke: AuthStateFailed, AuthLate: AuthStateTimedOut, AuthBarred: AuthLimited,
		AuthProved: AuthReady},
	AuthRunning: {AuthAsked: AuthWaiting, AuthProved: AuthReady, AuthBroke: AuthStateFailed, AuthDeclined: AuthCancelled, AuthLate: AuthStateTimedOut, AuthBarred: AuthLimited},
	AuthWaiting: {AuthAnswered: AuthRunning, AuthProved: AuthReady, AuthBroke: AuthStateFailed, AuthDeclined: AuthCancelled, AuthLate: AuthStateTimedOut, AuthBarred: AuthLimited},
}

// Next is the state after the event, and whether the event is one in this state.
func (s AuthState) Next(e AuthEvent) (AuthState, bool) {
	if s.Terminal() || s == "" {
		s = AuthNone
	}
	to, ok := authTable[s][e]
	if !ok {
		return s, false
	}
	return to, true
}

// MethodKind is how a way to log in is driven.
type MethodKind string

// The kinds of login.
const (
	LoginAgent    MethodKind = "agent"    // the agent's own call; it may show a page
	LoginToken    MethodKind = "token"    // a key that a person enters
	LoginTerminal MethodKind = "terminal" // a program in a terminal
)

// Method is one way to log in. Reason says why it is not supported.
type Method struct {
	ID          string     `json:"id"`
	Name        string     `json:"name"`
	Description string     `json:"description,omitempty"`
	Type        string     `json:"type,omitempty"`
	Kind        MethodKind `json:"-"`
	Supported   bool       `json:"supported"`
	Reason      string     `json:"reason,omitempty"`
}

// MethodQuestion shows every method and offers those that can be driven.
func MethodQuestion(methods []Method) Question {
	q := Question{Kind: AskAuthMethod, Style: StyleAuth, Title: "How should the agent log in?"}
	var b strings.Builder
	for _, m := range methods {
		name := m.Name
		if name == "" {
			name = m.ID
		}
		b.WriteString("- " + name)
		if m.Description != "" {
			b.WriteString(": " + m.Description)
		}
		if m.Supported {
			q.Options = append(q.Options, Option{ID: m.ID, Name: name})
		} else {
			b.WriteString(" (not supported here: " + m.Reason + ")")
		}
		b.WriteString("\n")
	}
	q.Message = strings.TrimSuffix(b.String(), "\n")
	return q
}

// PickMethod finds a method that can be driven.
func PickMethod(methods []Method, id string) (Method, error) {
	i := slices.IndexFunc(methods, func(m Method) bool { return m.ID == id })
	if i < 0 {
		return Method{}, Refuse(InvalidOption, "the agent has no such way to log in").Advise("use one of the methods of auth_status")
	}
	if !methods[i].Supported {
		return Method{}, Refuse(AuthMethodUnsupported, "this way to log in cannot be driven from here: %s", methods[i].Reason)
	}
	return methods[i], nil
}

// TargetKey names what a login is for, without saying it: logins of the same agent in the
// same place share one.
func TargetKey(harness, mode, host string) string {
	if host == "" {
		host = "local"
	}
	sum := sha256.Sum256([]byte(harness + "\x00" + mode + "\x00" + host))
	return hex.EncodeToString(sum[:])
}

// RateLimit bounds attempts to log in at one target. A zero field does not limit.
type RateLimit struct {
	MinInterval time.Duration
	MaxAttempts int
	Window      time.Duration
}

// Allow refuses an attempt that comes too soon or too often. Attempts are the earlier ones,
// in any order; those outside the window do not count.
func (r RateLimit) Allow(attempts []time.Time, now time.Time) error {
	var last, first time.Time
	n := 0
	for _, at := range attempts {
		// A clock that was set back must not open the gate: the future counts as now.
		if at.After(now) {
			at = now
		}
		if r.Window > 0 && now.Sub(at) >= r.Window {
			continue
		}
		n++
		if at.After(last) {
			last = at
		}
		if first.IsZero() || at.Before(first) {
			first = at
		}
	}
	var wait time.Duration
	if n > 0 && r.MinInterval > 0 {
		wait = max(wait, last.Add(r.MinInterval).Sub(now))
	}
	if r.MaxAttempts > 0 && n >= r.MaxAttempts {
		wait = max(wait, first.Add(r.Window).Sub(now))
	}
	if wait <= 0 {
		return nil
	}
	d := Detail{"retry_after_seconds": int(math.Ceil(wait.Seconds())), "remaining_attempts": max(r.MaxAttempts-n, 0)}
	if r.Window > 0 && n > 0 {
		d["window_resets_at"] = first.Add(r.Window).UTC().Format(time.RFC3339)
	}
	return Refuse(AuthRateLimited, "too many attempts to log in").Advise("wait %d seconds, then call authenticate again", int(math.Ceil(wait.Seconds()))).With(d)
}

// accountKeys are the only facts of an account that are shown.
var accountKeys = []string{"userId", "user_id", "username", "userName", "name", "displayName", "nickname", "email"}

// Account keeps what may be shown of an account: a few names with scalar, non-blank values.
func Account(facts map[string]any) map[string]any {
	out := map[string]any{}
	for _, key := range accountKeys {
		switch v := facts[key].(type) {
		case string:
			if strings.TrimSpace(v) != "" {
				out[key] = v
			}
		case float64, bool:
			out[key] = v
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}
