package main

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// trail prints what happened, with the time since the start.
type trail struct {
	w     io.Writer
	start time.Time
}

func newTrail(w io.Writer) *trail { return &trail{w: w, start: time.Now()} }

func (t *trail) say(format string, args ...any) {
	line := strings.TrimRight(fmt.Sprintf(format, args...), " ")
	fmt.Fprintf(t.w, "%8.3fs  %s\n", time.Since(t.start).Seconds(), line)
}

// quote prints text that came from the agent, so that it is not taken for the Host's own.
func (t *trail) quote(text string) {
	for _, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		fmt.Fprintf(t.w, "           | %s\n", line)
	}
}
