package callbackexec

import (
	"strings"

	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/outbox"
	"github.com/agent-knock-knock/akk/internal/profile"
)

// Job is one attempt of one delivery.
type Job struct {
	Profile profile.Profile // as profile.Parse proved it
	Live    outbox.Route    // the identity of Profile and of the session that this Bridge serves now

	Route   outbox.Route // captured when the Turn or Watch was made, never rebuilt
	RouteID ids.RouteID  // the route that the envelope names

	// Session is the value behind Route.SessionDigest: the startup session, or for a
	// route-bound Profile the session of the route. It goes into argv and nowhere else.
	Session        string
	DeliveryID     ids.DeliveryID
	MessageID      string
	IdempotencyKey string
	Body           []byte            // to stdin, byte for byte
	Env            map[string]string // present variables; only allowlisted names are passed

	Attempt   int // from 1
	AttemptID ids.AttemptID
}

// refuse returns the code of the first check that forbids to start anything, or "".
func (j *Job) refuse() string {
	r := j.Route
	switch {
	case blank(r.Transport) || blank(r.ProfileID) || blank(r.ProfileRevision) || blank(r.ProfileFingerprint) || blank(r.SessionDigest):
		return CodeRouteInvalid
	case r.Transport != outbox.TransportCommandJSON || j.Profile.Callback.Driver != profile.DriverCommandJSON:
		return CodeTransportUnsupported
	case r.ProfileID != j.Live.ProfileID || r.ProfileID != j.Profile.ID:
		return CodeProfileMismatch
	case r.ProfileRevision != j.Live.ProfileRevision || r.ProfileRevision != j.Profile.Revision:
		return CodeRevisionMismatch
	case r.ProfileFingerprint != j.Live.ProfileFingerprint:
		return CodeFingerprintMismatch
	case j.Profile.Scope() == profile.ScopeStartup && r.SessionDigest != j.Live.SessionDigest:
		return CodeSessionMismatch
	case j.RouteID != r.ID():
		return CodeEnvelopeRouteMismatch
	case j.Attempt < 1 || blank(string(j.AttemptID)):
		return CodeAttemptInvalid
	}
	return ""
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }

// argv renders the templates in one pass: a value is never looked at for placeholders. It
// reports false when a template or a value cannot be an argument.
func (j *Job) argv() ([]string, bool) {
	c := j.Profile.Callback
	if blank(j.Session) || blank(string(j.DeliveryID)) || blank(j.MessageID) || c.Stdin != profile.PlaceholderBody {
		return nil, false
	}
	values := []string{
		profile.PlaceholderSession, j.Session,
		profile.PlaceholderDelivery, string(j.DeliveryID),
		profile.PlaceholderMessage, j.MessageID,
		profile.PlaceholderIdempotencyKey, j.IdempotencyKey,
	}
	erase := make([]string, len(values))
	for i := 0; i < len(values); i += 2 {
		erase[i] = values[i]
	}
	render, bare := strings.NewReplacer(values...), strings.NewReplacer(erase...)
	argv := []string{c.Executable}
	for _, template := range c.Arguments {
		if strings.Contains(bare.Replace(template), "$") {
			return nil, false
		}
		arg := render.Replace(template)
		if strings.IndexByte(arg, 0) >= 0 {
			return nil, false
		}
		argv = append(argv, arg)
	}
	return argv, true
}

// environment is the whole environment of the program: allowed and present.
func (j *Job) environment() []string {
	env := []string{}
	for _, name := range j.Profile.Callback.Environment.Allow {
		if value, ok := j.Env[name]; ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// Present picks the allowlisted variables that lookup knows, for [Job.Env].
func Present(allow []string, lookup func(string) (string, bool)) map[string]string {
	env := make(map[string]string, len(allow))
	for _, name := range allow {
		if value, ok := lookup(name); ok {
			env[name] = value
		}
	}
	return env
}
