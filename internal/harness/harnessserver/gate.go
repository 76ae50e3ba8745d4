package harnessserver

import (
	"crypto/sha256"
	"crypto/subtle"
	"mime"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/agent-knock-knock/akk/internal/harness"
)

// gate decides who may talk to the server at all. The listener is on loopback, which every
// local user and every page in a browser can reach: a page is stopped by Host (a name that
// was rebound to this machine), Origin and the content type, another user by the token.
type gate struct {
	hosts   []string // host:port, in lower case
	origins []string
	token   [sha256.Size]byte
	open    bool // no token is asked for
}

// newGate allows the three names of loopback at the server's port, and extra names.
func newGate(port string, hosts, origins []string, token string, open bool) gate {
	g := gate{origins: origins, token: sha256.Sum256([]byte(token)), open: open}
	for _, name := range append([]string{"127.0.0.1", "localhost", "::1"}, hosts...) {
		if _, _, err := net.SplitHostPort(name); err == nil {
			g.hosts = append(g.hosts, strings.ToLower(name))
			continue
		}
		g.hosts = append(g.hosts, strings.ToLower(net.JoinHostPort(strings.Trim(name, "[]"), port)))
	}
	return g
}

// check refuses a request before its body is read. Ping is what a client finds a server
// with, so it needs no token.
func (g gate) check(r *http.Request, needsToken bool) error {
	if !slices.Contains(g.hosts, strings.ToLower(r.Host)) {
		return harness.Refuse(harness.ForbiddenHost, "the Host of the request is not this server").Advise("use the address that it listens on")
	}
	for _, origin := range r.Header.Values("Origin") {
		if !slices.Contains(g.origins, origin) {
			return harness.Refuse(harness.ForbiddenOrigin, "requests of web pages are refused").Advise("add the origin to allowed_origins if it is yours")
		}
	}
	if site := r.Header.Get("Sec-Fetch-Site"); site == "cross-site" || site == "same-site" {
		if origin := r.Header.Get("Origin"); origin == "" || !slices.Contains(g.origins, origin) {
			return harness.Refuse(harness.ForbiddenOrigin, "requests of web pages are refused")
		}
	}
	if r.Method != http.MethodPost {
		return harness.Refuse(harness.UnsupportedMethod, "operations are called with POST")
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return harness.Refuse(harness.UnsupportedMedia, "the body must be application/json")
	}
	if !needsToken || g.open {
		return nil
	}
	// Some clients send the word in lower case; the token itself is compared in constant time.
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	sum := sha256.Sum256([]byte(token))
	if !strings.EqualFold(scheme, "Bearer") || subtle.ConstantTimeCompare(sum[:], g.token[:]) != 1 {
		return harness.Refuse(harness.Unauthorized, "the owner's token is missing or wrong").Advise("send the token of the server's state directory as Bearer")
	}
	return nil
}
