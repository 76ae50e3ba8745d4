package standin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/agent-knock-knock/akk/internal/testkit/standin/term"
)

// Event is one thing the stand-in did, as STANDIN_EVENTS holds it.
type Event struct {
	T    time.Time `json:"t"`
	PID  int       `json:"pid"`
	Ev   string    `json:"ev"` // start, ready, submit, steer, queue, shell, slash, approve, decline, interrupt, answer, fail, end, exit
	Text string    `json:"text,omitempty"`
}

// journal writes the two files that tests read. Its methods accept a nil file.
type journal struct {
	record *os.File
	events *os.File
}

func openJournal(record, events string) (journal, error) {
	var j journal
	for _, f := range []struct {
		path string
		to   **os.File
	}{{record, &j.record}, {events, &j.events}} {
		if f.path == "" {
			continue
		}
		var err error
		if *f.to, err = os.OpenFile(f.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
			return j, fmt.Errorf("standin: %w", err)
		}
	}
	return j, nil
}

func (j journal) input(b []byte) {
	if j.record != nil {
		j.record.Write(b) // a failed write shows as a missing byte in the test that reads it
	}
}

func (j journal) event(ev, text string) {
	if j.events == nil {
		return
	}
	b, err := json.Marshal(Event{T: time.Now(), PID: os.Getpid(), Ev: ev, Text: text})
	if err == nil {
		j.events.Write(append(b, '\n'))
	}
}

// Input is what a recording of standard input holds.
type Input struct {
	Raw    []byte
	Pastes []string // bracketed pastes, markers removed, in order
	Typed  string   // everything outside the pastes except Enter
	Enters int      // CRs outside a paste
}

// ParseInput reads a recording. An unfinished paste is not in Pastes.
func ParseInput(raw []byte) Input {
	in := Input{Raw: raw}
	rest := raw
	for {
		i := bytes.Index(rest, []byte(term.PasteStart))
		if i < 0 {
			break
		}
		in.loose(rest[:i])
		rest = rest[i+len(term.PasteStart):]
		end := bytes.Index(rest, []byte(term.PasteEnd))
		if end < 0 {
			return in
		}
		in.Pastes = append(in.Pastes, string(rest[:end]))
		rest = rest[end+len(term.PasteEnd):]
	}
	in.loose(rest)
	return in
}

func (in *Input) loose(b []byte) {
	in.Enters += bytes.Count(b, []byte{'\r'})
	in.Typed += string(bytes.ReplaceAll(b, []byte{'\r'}, nil))
}
