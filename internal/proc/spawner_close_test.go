package proc

import (
	"testing"
	"time"
)

func TestAStartThatHangsDoesNotKeepTheProcess(t *testing.T) {
	s := NewSpawner()
	free, began := make(chan struct{}), make(chan struct{})
	defer close(free)
	s.reqs <- startRequest{start: func() error { close(began); <-free; return nil }, reply: make(chan error, 1)}
	<-began
	closed := make(chan struct{})
	go func() { s.Close(); close(closed) }()
	select {
	case <-closed:
	case <-time.After(closeLimit + 20*time.Second):
		t.Fatal("Close waits for a start that hangs")
	}
}
