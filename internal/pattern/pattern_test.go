package pattern

import (
	"slices"
	"sync"
	"testing"
)

func TestAPatternMatchesAsItsExpression(t *testing.T) {
	p := New(`^(\w+)=(\d+)$`)
	if !p.MatchString("a=1") || p.MatchString("a=b") || p.String() != `^(\w+)=(\d+)$` {
		t.Error("wrong match")
	}
	if got := p.FindStringSubmatch("a=1"); !slices.Equal(got, []string{"a=1", "a", "1"}) {
		t.Error(got)
	}
	if got := p.FindSubmatch([]byte("a=1")); len(got) != 3 || string(got[2]) != "1" {
		t.Errorf("%q", got)
	}
}

func TestAWrongExpressionFailsTheTestsOfItsPackageAtOnce(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	New(`(`)
}

func TestOnlyTheFirstUseCompiles(t *testing.T) {
	defer func(v bool) { inTest = v }(inTest)
	inTest = false
	wrong := New(`(`) // not compiled, so not noticed
	defer func() {
		if recover() == nil {
			t.Error("the first use did not compile")
		}
	}()
	good := New(`x`)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { good.MatchString("x") })
	}
	wg.Wait()
	wrong.MatchString("")
}
