package profile

import (
	"errors"
	"fmt"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/agent-knock-knock/akk/internal/fault"
)

const (
	maxRange       = 256
	maxComparators = 4
)

// comparator is one condition on a Host version.
type comparator struct {
	operator string
	operand  *semver.Version
}

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
		v, err := semver.StrictNewVersion(part)
		if err != nil {
			return nil, errors.New("must be comparators such as >=1.8.0 <2.0.0: >=, >, <=, <, = or nothing, then an exact SemVer version, one blank between them")
		}
		c.operand = v
		list = append(list, c)
	}
	return list, nil
}

func (c comparator) holds(v *semver.Version) bool {
	order := v.Compare(c.operand) // build metadata has no order
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
func (c comparator) sameRelease(v *semver.Version) bool {
	o := c.operand
	return o.Prerelease() != "" && o.Major() == v.Major() && o.Minor() == v.Minor() && o.Patch() == v.Patch()
}

// satisfies reports whether every comparator holds. A prerelease matches only when some
// comparator speaks of a prerelease of the same release: >=1.8.0 says nothing about
// 1.9.0-beta.1.
func satisfies(v *semver.Version, list []comparator) bool {
	named := v.Prerelease() == ""
	for _, c := range list {
		if !c.holds(v) {
			return false
		}
		named = named || c.sameRelease(v)
	}
	return named
}

// CheckHost returns CodeIncompatible unless host is exactly the Profile's Host and version
// is an exact SemVer version inside its range.
func (p Profile) CheckHost(host, version string) error {
	const op = "profile.check_host"
	if host != p.Compatibility.Host {
		return fault.New(CodeIncompatible, op, "--host is not the Host of this Profile, %q", p.Compatibility.Host).
			WithHint("pass the exact Host id, or choose the Profile of your Host")
	}
	v, err := semver.StrictNewVersion(version)
	if err != nil {
		return fault.New(CodeIncompatible, op, "--host-version is not an exact SemVer version").
			WithHint("pass three numbers such as 1.8.0, without a leading v")
	}
	list, err := parseRange(p.Compatibility.Range)
	if err != nil {
		return invalid("$.compatibility.range", "%s", err)
	}
	if !satisfies(v, list) {
		return fault.New(CodeIncompatible, op, "Host version %s is outside the Profile's range %q", v, p.Compatibility.Range).
			WithHint("run a Host version inside the range, or a Profile that supports this one")
	}
	return nil
}
