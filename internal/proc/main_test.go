package proc_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/proc"
)

// childRole makes the re-executed test binary play a part.
const childRole = "AKK_PROC_TEST_ROLE"

// patience bounds every wait of these tests; it is long because machines are busy.
const patience = 20 * time.Second

func TestMain(m *testing.M) {
	proc.MaybeRunner()
	if role := os.Getenv(childRole); role != "" {
		os.Exit(play(role))
	}
	os.Exit(m.Run())
}

func play(role string) int {
	switch role {
	case "image":
		return releaseImage()
	case "lifeline": // ends with 3 when the starter is gone
		gone := make(chan struct{})
		proc.WatchLifeline(3, func() { close(gone) })
		fmt.Println("ready")
		<-gone
		return 3
	case "parent": // starts "orphan" and waits to be killed
		cmd := self("orphan")
		cmd.Stdout = os.Stdout
		if err := cmd.Start(); err != nil {
			return 1
		}
		_, _ = io.Copy(io.Discard, os.Stdin) // never ends: the test holds the other end
	case "starter": // runs its argument contained, and waits to be killed
		s := proc.NewSpawner()
		runners := proc.NewRunners(s, 1)
		spec := script(os.Getenv("AKK_PROC_TEST_SCRIPT"), os.Getenv("AKK_PROC_TEST_MARK"))
		spec.Stdin = make([]byte, starterInput)
		runners.Run(context.Background(), spec)
		return 0
	case "orphan": // says when its parent is gone, while its stdin and stdout stay open
		gone, err := proc.WatchParent(context.Background())
		if err != nil {
			return 1
		}
		fmt.Println("ready")
		<-gone
		fmt.Println("parent gone")
		return 0
	}
	return 2
}

// starterInput is the input of what "starter" runs: more than any pipe holds.
const starterInput = 1 << 20

const markName = "AKK_PROC_TEST_MARK"

// script runs a shell text with mark in the environment of all that it starts.
func script(text, mark string) proc.Spec {
	return proc.Spec{
		Program: proc.Program{
			Path: "/bin/sh", Args: []string{"sh", "-c", text},
			Env: []string{"PATH=" + os.Getenv("PATH"), markName + "=" + mark},
		},
		Timeout:   patience,
		MaxOutput: 1 << 16,
	}
}

func self(role string) *exec.Cmd {
	exe, err := os.Executable()
	if err != nil {
		panic(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), childRole+"="+role)
	return cmd
}

func expectLine(t *testing.T, r *bufio.Reader, want string) {
	t.Helper()
	got := make(chan string, 1)
	go func() {
		line, _ := r.ReadString('\n')
		got <- strings.TrimSpace(line)
	}()
	select {
	case line := <-got:
		if line != want {
			t.Fatalf("the child said %q, want %q", line, want)
		}
	case <-time.After(patience):
		t.Fatalf("the child did not say %q within %s", want, patience)
	}
}

func signalOf(err error) syscall.Signal {
	if exit, ok := err.(*exec.ExitError); ok {
		if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			return ws.Signal()
		}
	}
	return 0
}
