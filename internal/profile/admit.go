package profile

import "log/slog"

// Admitted is what a Bridge may start with. Session is the trusted controller session:
// it goes into routes as a digest and into the callback's argv, and nowhere else.
type Admitted struct {
	*Loaded
	Session string `json:"-"`
}

// String names the Profile. It, GoString and LogValue keep the session out of whatever
// formats an Admitted by mistake.
func (a *Admitted) String() string {
	return a.Profile.ID + " " + a.Profile.Revision + " " + a.Fingerprint
}

// GoString is String.
func (a *Admitted) GoString() string { return a.String() }

// LogValue is String.
func (a *Admitted) LogValue() slog.Value { return slog.StringValue(a.String()) }

// Admit makes every check that must pass before a standalone Bridge speaks MCP, in the
// order in which an administrator can mend them: the Profile, the Host and its version,
// the scope, the trusted session, the callback program. It returns the first refusal.
func Admit(selection, host, version string, lookup func(string) (string, bool)) (*Admitted, error) {
	loaded, err := Load(selection)
	if err != nil {
		return nil, err
	}
	p := loaded.Profile
	if err := p.CheckHost(host, version); err != nil {
		return nil, err
	}
	if err := p.CheckStandalone(); err != nil {
		return nil, err
	}
	session, err := ResolveSession(p, lookup)
	if err != nil {
		return nil, err
	}
	if err := CheckExecutable(p); err != nil {
		return nil, err
	}
	return &Admitted{Loaded: loaded, Session: session}, nil
}
