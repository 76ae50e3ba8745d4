package profile

import (
	"fmt"
	"strings"
	"testing"

	"github.com/Masterminds/semver/v3"
	"pgregory.net/rapid"
)

func TestARangeIsOneToFourComparatorsAndNothingElse(t *testing.T) {
	good := []string{"1.8.0", "=1.8.0", ">=1.8.0 <2.0.0", ">1.0.0 <=2.0.0", "1.8.0-rc.1+build.5", "0.0.0", ">=1.0.0 >=1.1.0 <3.0.0 <2.0.0"}
	for _, text := range good {
		mustParse(t, map[string]any{"compatibility/range": text})
	}
	var cases []refusal
	for _, text := range []string{"", " ", "1.8", "1", "v1.8.0", "=v1.8.0", "^1.8.0", "~1.8.0", "1.x.0", "1.8.x", "*", ">=1.8.0 || <2.0.0", ">=1.8.0  <2.0.0", ">=1.8.0,<2.0.0",
		" >=1.8.0", ">=1.8.0 ", ">= 1.8.0", "==1.8.0", "=>1.8.0", "!=1.8.0", "01.8.0", "1.8.0-01", "1.8.0-", "1.8.0+", "1.8.0-a..b", "1.8.0\t<2.0.0", "1.8.0 - 2.0.0", "-1.8.0",
		"1.0.0 1.0.0 1.0.0 1.0.0 1.0.0", "1.0.0+" + strings.Repeat("a", 251)} {
		cases = append(cases, refusal{fmt.Sprintf("%.30q", text), map[string]any{"compatibility/range": text}, "$.compatibility.range"})
	}
	checkRefusals(t, cases)
}

func TestEveryComparatorMustHoldAndAPrereleaseMustBeMeant(t *testing.T) {
	cases := []struct {
		text, version string
		want          bool
	}{
		{">=1.8.0 <2.0.0", "1.8.0", true},
		{">=1.8.0 <2.0.0", "2.0.0", false},
		{">1.8.0", "1.8.0", false},
		{">1.8.0", "1.8.1", true},
		{"<=1.8.0", "1.8.0", true},
		{"<=1.8.0", "1.8.1", false},
		{"1.8.0", "1.8.0", true},
		{"=1.8.0", "1.8.1", false},
		{"1.8.0+a", "1.8.0+b", true},
		{">=1.8.0 <2.0.0", "1.9.0-beta.1", false},
		{">=1.9.0-alpha <2.0.0", "1.9.0-beta.1", true},
		{">=1.9.0-alpha <2.0.0", "1.9.1-beta.1", false},
		{">=1.9.0-rc.1 <2.0.0", "1.9.0-beta.1", false},
		{">=1.9.0-beta.2", "1.9.0-beta.10", true},
		{">=1.8.0 <2.0.0-rc.1", "2.0.0-beta.1", true},
		{">=1.8.0 <2.0.0-rc.1", "2.0.0-rc.1", false},
		{">=1.0.0-a <2.0.0", "1.0.0", true},
		{">=1.0.0 >=1.2.0 <3.0.0 <2.0.0", "1.1.9", false},
		{">=1.0.0 >=1.2.0 <3.0.0 <2.0.0", "1.2.0", true},
	}
	for _, c := range cases {
		p := mustParse(t, map[string]any{"compatibility/range": c.text})
		if err := p.CheckHost("my-agent", c.version); (err == nil) != c.want {
			t.Errorf("%q and %q: %v, want %v", c.text, c.version, err, c.want)
		}
	}
}

// Another library's constraints, where both grammars meet, are an independent witness.
func TestARangeAgreesWithASecondImplementation(t *testing.T) {
	number := rapid.IntRange(0, 3)
	version := rapid.Custom(func(t *rapid.T) string {
		v := fmt.Sprintf("%d.%d.%d", number.Draw(t, "major"), number.Draw(t, "minor"), number.Draw(t, "patch"))
		return v + rapid.SampledFrom([]string{"", "+b1", "+b2"}).Draw(t, "rest")
	})
	rapid.Check(t, func(t *rapid.T) {
		var parts []string
		for range rapid.IntRange(1, 4).Draw(t, "comparators") {
			parts = append(parts, rapid.SampledFrom([]string{">=", ">", "<=", "<", "="}).Draw(t, "operator")+version.Draw(t, "operand"))
		}
		text := strings.Join(parts, " ")
		list, err := parseRange(text)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		constraint, err := semver.NewConstraint(strings.Join(parts, ", "))
		if err != nil {
			t.Fatal(err)
		}
		v := version.Draw(t, "version")
		ours, ok := parseVersion(v)
		if got, want := satisfies(ours, list), constraint.Check(semver.MustParse(v)); !ok || got != want {
			t.Fatalf("%q and %s: %v, the other says %v", text, v, got, want)
		}
	})
}

// Any text: what is an exact version is what the other library's strict reader takes.
func TestAnExactVersionAgreesWithASecondImplementation(t *testing.T) {
	part := rapid.SampledFrom([]string{"0", "1", "01", "10", ".", "..", "-", "+", "rc", "rc.1", "a-b", "v", " ", "x", "é", "-0", "-01", "1.2.3", "1.2.3-rc.1"})
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(part, 0, 7).Draw(t, "parts"), "")
		_, ok := parseVersion(text)
		if _, err := semver.StrictNewVersion(text); ok != (err == nil) {
			t.Fatalf("%q: %v, the other says %v", text, ok, err)
		}
	})
}
