package profile

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/agent-knock-knock/akk/internal/fault"
)

const (
	maxRange       = 256
	maxComparators = 4
)

// comparator is one condition on a Host version.
type comparator struct {
	operator string
	operand  version
}

// version is an exact SemVer version as golang.org/x/mod/semver writes it: with a leading v.
// That package compiles nothing at the start of the process, which every start would pay.
type version string

// parseVersion takes exactly three numbers of 64 bits and what SemVer lets follow, without a
// leading v.
func parseVersion(text string) (version, bool) {
	v := "v" + text
	// Canonical completes v1 and v1.2, which are not exact.
	if len(text) > maxRange || !semver.IsValid(v) || semver.Canonical(v)+semver.Build(v) != v {
		return "", false
	}
	for _, n := range strings.Split(version(v).release()[1:], ".") {
		if _, err := strconv.ParseUint(n, 10, 64); err != nil {
			return "", false
		}
	}
	return version(v), true
}

// release is v without what marks it as a prerelease or a build.
func (v version) release() string {
	return strings.TrimSuffix(semver.Canonical(string(v)), semver.Prerelease(string(v)))
}

func (v version) prerelease() bool { return semver.Prerelease(string(v)) != "" }

// operators, longest first: >= must not be read as >.
var operators = []string{">=", "<=", ">", "<", "="}

// parseRange reads one to four comparators with exactly one blank between them. Unlike a
// package manager's range it has no ^, ~, x, || and no leading v: an administrator says
// both ends. The error's text is a rule and holds nothing of the input.
func parseRange(text string) ([]comparator, error) {
	if length(text) > maxRange {
		return nil, fmt.Errorf("must not be longer than %d characters", maxRange)
	}
	parts := strings.Split(text, " ")
	if len(parts) > maxComparators {
		return nil, fmt.Errorf("must have 1 to %d comparators with one blank between them", maxComparators)
	}
	list := make([]comparator, 0, len(parts))
	for _, part := range parts {
		c := comparator{operator: "="}
		for _, o := range operators {
			if rest, found := strings.CutPrefix(part, o); found {
				c.operator, part = o, rest
				break
			}
		}
		v, ok := parseVersion(part)
		if !ok {
			return nil, errors.New("must be comparators such as >=1.8.0 <2.0.0: >=, >, <=, <, = or nothing, then an exact SemVer version, one blank between them")
		}
		c.operand = v
		list = append(list, c)
	}
	return list, nil
}

func (c comparator) holds(v version) bool {
	order := semver.Compare(string(v), string(c.operand)) // build metadata has no order
	switch c.operator {
	case ">=":
		return order >= 0
	case ">":
		return order > 0
	case "<=":
		return order <= 0
	case "<":
		return order < 0
	default:
		return order == 0
	}
}

// sameRelease reports whether c names a prerelease of v's own release.
func (c comparator) sameRelease(v version) bool {
	return c.operand.prerelease() && c.operand.release() == v.release()
}

// satisfies reports whether every comparator holds. A prerelease matches only when some
// comparator speaks of a prerelease of the same release: >=1.8.0 says nothing about
// 1.9.0-beta.1.
func satisfies(v version, list []comparator) bool {
	named := !v.prerelease()
	for _, c := range list {
		if !c.holds(v) {
			return false
		}
		named = named || c.sameRelease(v)
	}
	return named
}

// CheckHost returns CodeIncompatible unless host is exactly the Profile's Host and hostVersion
// is an exact SemVer version inside its range.
func (p Profile) CheckHost(host, hostVersion string) error {
	const op = "profile.check_host"
	if host != p.Compatibility.Host {
		return fault.New(CodeIncompatible, op, "--host is not the Host of this Profile, %q", p.Compatibility.Host).
			WithHint("pass the exact Host id, or choose the Profile of your Host")
	}
	v, ok := parseVersion(hostVersion)
	if !ok {
		return fault.New(CodeIncompatible, op, "--host-version is not an exact SemVer version").
			WithHint("pass three numbers such as 1.8.0, without a leading v")
	}
	list, err := parseRange(p.Compatibility.Range)
	if err != nil {
		return invalid("$.compatibility.range", "%s", err)
	}
	if !satisfies(v, list) {
		return fault.New(CodeIncompatible, op, "Host version %s is outside the Profile's range %q", hostVersion, p.Compatibility.Range).
			WithHint("run a Host version inside the range, or a Profile that supports this one")
	}
	return nil
}
