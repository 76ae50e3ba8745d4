package wire

import (
	"unicode/utf8"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/outbox"
	handoffv1 "github.com/agent-knock-knock/akk/proto/akk/handoff/v1"
)

// Handoff is what a worker is told in its first call. Environment and ControllerSession
// go to akk-callback only, never to a monitor, never to a file, an argument or a log.
type Handoff struct {
	ProfileDocument []byte
	Fingerprint     string
	Selection       string
	Source          string // "file", "built_in"
	Host            string
	HostVersion     string
	Route           outbox.Route
	BridgeID        ids.BridgeID

	// Environment holds the profile's allowed variables that are present.
	Environment map[string]string
	// ControllerSession is the value of the Host's session variable.
	ControllerSession string
}

func (h Handoff) check() error {
	const op = "wire.handoff"
	if len(h.ProfileDocument) == 0 || len(h.ProfileDocument) > maxDocument {
		return fault.New(fault.Invalid, op, "the profile document has %d bytes, allowed are 1 to %d", len(h.ProfileDocument), maxDocument)
	}
	if h.Fingerprint == "" {
		return fault.New(fault.Invalid, op, "the handoff has no fingerprint")
	}
	if len(h.Environment) > maxEntries {
		return fault.New(fault.Invalid, op, "the handoff has %d environment variables, allowed are %d", len(h.Environment), maxEntries)
	}
	return checkText(op, map[string]string{
		"fingerprint": h.Fingerprint, "selection": h.Selection, "source": h.Source, "host": h.Host,
		"host_version": h.HostVersion, "transport": h.Route.Transport, "profile_id": h.Route.ProfileID,
		"profile_revision": h.Route.ProfileRevision, "profile_fingerprint": h.Route.ProfileFingerprint,
		"session_digest": h.Route.SessionDigest, "bridge_id": string(h.BridgeID),
	})
}

// checkText refuses fields that are too long or that proto3 could not carry.
func checkText(op string, fields map[string]string) error {
	for name, v := range fields {
		if len(v) > maxShort {
			return fault.New(fault.Invalid, op, "%s has %d bytes, allowed are %d", name, len(v), maxShort)
		}
		if !utf8.ValidString(v) {
			return fault.New(fault.Invalid, op, "%s is not UTF-8 text", name)
		}
	}
	return nil
}

func handoffToProto(h Handoff) *handoffv1.Handoff {
	return &handoffv1.Handoff{
		ProfileDocument: h.ProfileDocument, Fingerprint: h.Fingerprint, Selection: h.Selection,
		Source: h.Source, Host: h.Host, HostVersion: h.HostVersion,
		Route: routeToProto(h.Route), BridgeId: string(h.BridgeID),
	}
}

func handoffFromProto(p *handoffv1.Handoff) Handoff {
	return Handoff{
		ProfileDocument: p.GetProfileDocument(), Fingerprint: p.GetFingerprint(), Selection: p.GetSelection(),
		Source: p.GetSource(), Host: p.GetHost(), HostVersion: p.GetHostVersion(),
		Route: routeFromProto(p.GetRoute()), BridgeID: ids.BridgeID(p.GetBridgeId()),
	}
}

func routeToProto(r outbox.Route) *handoffv1.Route {
	return &handoffv1.Route{
		Transport: r.Transport, ProfileId: r.ProfileID, ProfileRevision: r.ProfileRevision,
		ProfileFingerprint: r.ProfileFingerprint, SessionDigest: r.SessionDigest,
	}
}

func routeFromProto(p *handoffv1.Route) outbox.Route {
	return outbox.Route{
		Transport: p.GetTransport(), ProfileID: p.GetProfileId(), ProfileRevision: p.GetProfileRevision(),
		ProfileFingerprint: p.GetProfileFingerprint(), SessionDigest: p.GetSessionDigest(),
	}
}
