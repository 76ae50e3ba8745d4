package offer

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agent-knock-knock/akk/internal/clock"
)

func TestAnOfferIsTakenOnceAndDiesOfAge(t *testing.T) { // spec part 2.0
	synctest.Test(t, func(t *testing.T) {
		b := New[int](clock.System{}, Life)
		b.Put("a", 1)
		b.Put("a", 2)
		if v, _, ok := b.Get("a"); !ok || v != 2 {
			t.Errorf("%d %v", v, ok)
		}
		if v, ok := b.Take("a"); !ok || v != 2 {
			t.Errorf("%d %v", v, ok)
		}
		if _, ok := b.Take("a"); ok {
			t.Error("taken twice")
		}
		b.Put("b", 3)
		time.Sleep(Life)
		if _, _, ok := b.Get("b"); ok {
			t.Error("it is too old")
		}
	})
}

func TestAFullBookForgetsTheOldest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New[int](clock.System{}, Life)
		for i := range Max + 1 {
			b.Put(fmt.Sprint(i), i)
			time.Sleep(time.Millisecond)
		}
		if _, _, ok := b.Get("0"); ok {
			t.Error("the oldest is kept")
		}
		if _, _, ok := b.Get(fmt.Sprint(Max)); !ok {
			t.Error("the newest is not")
		}
	})
}
