package control

import (
	"strings"
	"testing"
)

// Where our own Bridges would be is what must be looked into, also when that is the short
// place.
func TestTheShortPlaceIsOursWhenOursIsTooLong(t *testing.T) {
	long := "/run/" + strings.Repeat("x", 100) + "/bridges"
	for place, want := range map[string]string{"/run/user/1/agent-knock-knock/bridges": "/run/user/1/agent-knock-knock/bridges", long: shortPlace()} {
		if got := ownPlace(place); got != want {
			t.Errorf("%s: %s", place, got)
		}
	}
	own, other := Passed{Place: "a", Own: true, Err: errPassed("ours")}, Passed{Place: "b", Err: errPassed("theirs")}
	if err := (Found{Passed: []Passed{other, own}}).Unseen(); err != own.Err {
		t.Errorf("%v", err)
	}
	if err := (Found{Passed: []Passed{other}}).Unseen(); err != nil {
		t.Errorf("%v", err)
	}
}

type errPassed string

func (e errPassed) Error() string { return string(e) }
