// Package doctor answers whether this Host can run a Bridge, and whether this machine and
// the Bridges that run on it are well.
//
// It looks and reports: it writes nothing, starts nothing but programs that print their
// version, sends no callback, and never shows the controller session or a credential.
package doctor

import (
	"context"
	"slices"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/profile"
)

// Status is the result of one check.
type Status string

const (
	OK     Status = "ok"
	Failed Status = "error"
)

// ModeHostBridge is the mode of the Host Profile checks.
const ModeHostBridge = "host_bridge"

// The names of the checks, in the order in which they are made.
const (
	CheckProfile           = "profile"
	CheckHostCompatibility = "host_compatibility"
	CheckStandaloneScope   = "standalone_bridge_scope" // a row only when the scope is route-bound
	CheckController        = "controller_context"
	CheckCallback          = "callback_executable"
)

// Check is one row. Detail says what was found, Hint what to do about an error. The other
// fields belong to one check each.
type Check struct {
	Name   string     `json:"name"`
	Status Status     `json:"status"`
	Detail string     `json:"detail"`
	Code   fault.Code `json:"code,omitempty"`
	Hint   string     `json:"hint,omitempty"`

	Selection string `json:"selection,omitempty"` // profile: the real path or built-in id
	Scope     string `json:"scope,omitempty"`     // standalone_bridge_scope
	Variable  string `json:"variable,omitempty"`  // controller_context: the name, never the value
	Path      string `json:"path,omitempty"`      // callback_executable, as the Profile says it; agents
	Version   string `json:"version,omitempty"`   // agents: what the program prints
}

// Report is the whole answer of a doctor with a Profile. When the Profile cannot be read, only its own row is there
// and the fields about the Profile are null.
type Report struct {
	OK                   bool    `json:"ok"`
	Mode                 string  `json:"mode"`
	ProfileID            *string `json:"profile_id"`
	ProfileRevision      *string `json:"profile_revision"`
	ProfileFingerprint   *string `json:"profile_fingerprint"`
	Scope                *string `json:"controller_context_scope"`
	StandaloneCompatible *bool   `json:"standalone_bridge_compatible"`
	Checks               []Check `json:"checks"`
	// Version and Bridges are there when the machine was checked, too: see WithMachine.
	Version string        `json:"version,omitempty"`
	Bridges []BridgeState `json:"bridges,omitzero"` // empty when none runs
	// TestCallback is there when a person asked for one.
	TestCallback *TestCallback `json:"test_callback,omitempty"`
}

// WithMachine is the report with the checks of the machine after its own.
func (r Report) WithMachine(m MachineReport) Report {
	r.Checks = slices.Concat(r.Checks, m.Checks)
	r.Version, r.Bridges, r.OK = m.Version, m.Bridges, r.OK && m.OK
	return r
}

// HostMode checks what a standalone Bridge needs from a Host: the Profile, the exact Host
// and version, the scope, the trusted session, the callback program. After the Profile,
// every check is made, so that one run shows all that must be mended. lookup reads the
// environment.
func HostMode(ctx context.Context, selection, host, version string, lookup func(string) (string, bool)) Report {
	r := Report{Mode: ModeHostBridge, OK: true, Checks: []Check{}}
	loaded, err := profile.Load(selection)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		r.add(Check{Name: CheckProfile}, err)
		return r
	}
	p := loaded.Profile
	scope, standalone := p.Scope(), p.StandaloneCompatible()
	r.ProfileID, r.ProfileRevision, r.ProfileFingerprint = &p.ID, &p.Revision, &loaded.Fingerprint
	r.Scope, r.StandaloneCompatible = &scope, &standalone

	r.add(Check{Name: CheckProfile, Detail: "the Profile is valid", Selection: loaded.Selection}, nil)
	r.add(Check{Name: CheckHostCompatibility, Detail: "the Host and its version match"}, p.CheckHost(host, version))
	if !standalone {
		r.add(Check{Name: CheckStandaloneScope, Scope: scope}, p.CheckStandalone())
	}
	_, err = profile.ResolveSession(p, lookup)
	r.add(Check{Name: CheckController, Detail: "the trusted session is set", Variable: p.ControllerContext.SessionIDVariable}, err)
	r.add(Check{Name: CheckCallback, Detail: "the callback program is ready; it was not started", Path: p.Callback.Executable}, profile.CheckExecutable(p))
	return r
}

// add completes a row with the result of its check.
func (r *Report) add(c Check, err error) {
	c.Status = OK
	if err != nil {
		c.Status = Failed
		c.Code, c.Detail, c.Hint = fault.Public(err)
		r.OK = false
	}
	r.Checks = append(r.Checks, c)
}

// Failures names the checks that found an error, in order.
func (r Report) Failures() []string { return Named(r.Checks, Failed) }

// Named are the names of the checks with a status, in order.
func Named(checks []Check, s Status) (out []string) {
	for _, c := range checks {
		if c.Status == s {
			out = append(out, c.Name)
		}
	}
	return out
}
