// Package script reads the directives that a test writes into a prompt and says how a
// scripted model (or a stand-in agent) answers it. It is the common language of the test
// kits; it knows no protocol, no screen and no file.
//
// Directives are separated by a newline or ";;":
//
//	SAY:text          the final text ("\n" becomes a newline)
//	ASK:text          like SAY, kept apart so that a test can mark a question
//	RUN:cmd           a shell tool call that the agent asks a person about; several are
//	                  allowed, one a round trip
//	TOOL:name {json}  any tool call with raw JSON arguments
//	CUSTOM:name text  a free-form tool call ("\n" becomes a newline)
//	PRE:text          text before the tool call, in the same reply
//	THINK:text        reasoning first
//	SLEEP:secs        wait before the content, with the stream already open
//	LINGER:secs       wait between the content and the end of the stream
//	HOLD:secs         wait before anything at all
//	GATE:name         wait before the content until the gate is released
//	STREAM:n[@ms]     n chunks of text, ms apart (200 when not given)
//	FAIL:status       an HTTP error
//	FAILEVENT:text    the stream opens and then reports a failure
//	DROP:n            n chunks, then the connection is cut
//
// Without SAY, ASK or a tool call the text is "OK: " and the start of the prompt.
package script

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Kind is the form of a tool call.
type Kind string

// The forms of a tool call.
const (
	Run    Kind = "run"    // a shell command; the tool's name depends on what is offered
	Tool   Kind = "tool"   // a function call
	Custom Kind = "custom" // a free-form call
)

// Call is one tool call of a script.
type Call struct {
	Kind Kind
	Name string // "" for Run
	Arg  string // the command, JSON arguments, or free text
}

// Script is what the directives of one prompt ask for.
type Script struct {
	Say     string
	HasText bool // SAY or ASK was given
	Calls   []Call
	Pre     string
	Think   string
	Sleep   time.Duration
	Linger  time.Duration
	Hold    time.Duration
	Gate    string
	Chunks  int
	Every   time.Duration
	Fail    int
	FailEv  string
	Drop    int
}

const defaultEvery = 200 * time.Millisecond

var directive = regexp.MustCompile(`(?:^|[\s"'(;>])(SAY|ASK|RUN|TOOL|CUSTOM|PRE|THINK|SLEEP|LINGER|HOLD|GATE|STREAM|FAIL|FAILEVENT|DROP):`)

// Parse reads the directives of text. Text without any is a valid, empty Script.
func Parse(text string) Script {
	sc := Script{Every: defaultEvery}
	for _, line := range strings.Split(text, "\n") {
		for _, part := range strings.Split(line, ";;") {
			if m := directive.FindStringSubmatchIndex(part); m != nil {
				sc.set(part[m[2]:m[3]], strings.TrimSpace(part[m[1]:]))
			}
		}
	}
	return sc
}

func (sc *Script) set(name, v string) {
	switch name {
	case "SAY", "ASK":
		sc.Say, sc.HasText = lines(v), true
	case "RUN":
		sc.Calls = append(sc.Calls, Call{Kind: Run, Arg: v})
	case "TOOL":
		n, arg, _ := strings.Cut(v, " ")
		if arg == "" {
			arg = "{}"
		}
		sc.Calls = append(sc.Calls, Call{Kind: Tool, Name: n, Arg: arg})
	case "CUSTOM":
		n, arg, _ := strings.Cut(v, " ")
		sc.Calls = append(sc.Calls, Call{Kind: Custom, Name: n, Arg: lines(arg)})
	case "PRE":
		sc.Pre = v
	case "THINK":
		sc.Think = v
	case "SLEEP":
		sc.Sleep = seconds(v)
	case "LINGER":
		sc.Linger = seconds(v)
	case "HOLD":
		sc.Hold = seconds(v)
	case "GATE":
		sc.Gate = v
	case "STREAM":
		n, ms, timed := strings.Cut(v, "@")
		sc.Chunks, _ = strconv.Atoi(strings.TrimSpace(n))
		if k, err := strconv.Atoi(strings.TrimSpace(ms)); timed && err == nil {
			sc.Every = time.Duration(k) * time.Millisecond
		}
	case "FAIL":
		sc.Fail, _ = strconv.Atoi(v)
	case "FAILEVENT":
		sc.FailEv = v
	case "DROP":
		sc.Drop, _ = strconv.Atoi(v)
	}
}

func lines(s string) string { return strings.ReplaceAll(s, `\n`, "\n") }

func seconds(s string) time.Duration {
	f, _ := strconv.ParseFloat(strings.TrimSpace(s), 64)
	return time.Duration(f * float64(time.Second))
}

// Text is the final text for a prompt. last is the result of the last tool call, used
// when the script has calls and no SAY.
func (sc Script) Text(prompt, last string) string {
	switch {
	case sc.HasText:
		return sc.Say
	case len(sc.Calls) > 0:
		return "DONE after tool: " + tail(strings.TrimSpace(last), 80)
	default:
		return "OK: " + head(strings.TrimSpace(prompt), 60)
	}
}

// Pieces cuts the final text into the chunks that STREAM asks for; without STREAM it is
// the text in one piece.
func (sc Script) Pieces(text string) []string {
	if sc.Chunks <= 0 {
		return []string{text}
	}
	out := make([]string, 0, sc.Chunks+1)
	for i := 1; i <= sc.Chunks; i++ {
		out = append(out, fmt.Sprintf("chunk %d of %d. ", i, sc.Chunks))
	}
	if sc.HasText {
		out = append(out, "\n\n"+text)
	}
	return out
}

func head(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n])
	}
	return s
}

func tail(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[len(r)-n:])
	}
	return s
}
