package cli

import (
	"testing"
	"time"
)

func TestAnAgeIsAPositiveNumberOfDaysOrADuration(t *testing.T) {
	day := 24 * time.Hour
	for in, want := range map[string]time.Duration{"1d": day, "30d": 30 * day, "12h": 12 * time.Hour, "90m": 90 * time.Minute} {
		if got, ok := parseAge(in); !ok || got != want {
			t.Errorf("%q is %v, %v", in, got, ok)
		}
	}
	for _, in := range []string{"", "0d", "-1d", "d", "1.5d", "0s", "-3h", "7", "99999999d", "9999999h", "30 d"} {
		if got, ok := parseAge(in); ok {
			t.Errorf("%q was taken for %v", in, got)
		}
	}
}
