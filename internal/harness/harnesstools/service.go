package harnesstools

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/harness"
	"github.com/agent-knock-knock/akk/internal/harness/client"
	"github.com/agent-knock-knock/akk/internal/toolkit"
	"github.com/agent-knock-knock/akk/schemas"
)

// Pace is the times of waiting. The zero value means the product's.
type Pace struct {
	LongPoll  time.Duration // what the server may wait before it answers a status
	FirstPoll time.Duration // between polls of a server without long-poll, growing up to
	LastPoll  time.Duration
	Watch     time.Duration // between looks at a question while a person is asked
	Robot     time.Duration // a refusal faster than this is no person's
	Tries     int           // polls that may fail in a row
}

func (p Pace) orDefaults() Pace {
	or := func(d *time.Duration, def time.Duration) {
		if *d == 0 {
			*d = def
		}
	}
	or(&p.LongPoll, 20*time.Second)
	or(&p.FirstPoll, 500*time.Millisecond)
	or(&p.LastPoll, 2*time.Second)
	or(&p.Watch, time.Second)
	or(&p.Robot, 400*time.Millisecond)
	if p.Tries == 0 {
		p.Tries = 5
	}
	return p
}

// Options of the tools.
type Options struct {
	Caller        Caller
	Finder        Finder
	Elicit        string        // client.ElicitAuto, ElicitAlways or ElicitNever
	ElicitTimeout time.Duration // 0 is none
	Pace          Pace
	Log           *slog.Logger
}

// service is what the tools share: one for each connection of a Host.
type service struct {
	gate    *gateway
	options Options
	pace    Pace
	key     [32]byte      // signs what a Host sends back
	dialog  chan struct{} // one question to the person at a time
	mute    atomic.Bool   // the Host answered like a machine: it is asked no more
}

// Register adds the tools to an empty registry, in their order, and sets its form of
// failures.
func Register(r *toolkit.Registry, o Options) {
	s := &service{gate: newGateway(o.Caller, o.Finder), options: o, pace: o.Pace.orDefaults(), dialog: make(chan struct{}, 1)}
	_, _ = rand.Read(s.key[:]) // it does not fail
	r.RenderFailures(toolkit.Failures{Render: render, Schema: json.RawMessage(failureSchema)})
	for _, add := range []func(*toolkit.Registry, *service){ping, searchTemplate, createTemplate, createSession, closeSession, authenticate, authStatus,
		setSessionOptions, sendMessage, cancelMessage, messageStatus, answerQuestion, wait} {
		add(r, s)
	}
}

// Names are the tools, in the order in which a Host sees them.
var Names = []string{"ping", "search_template", "create_template", "create_session", "close_session", "authenticate", "auth_status",
	"set_session_options", "send_message", "cancel_message", "message_status", "answer_question", "wait"}

// maxResult bounds a result: a reply of the server fits.
const maxResult = client.MaxReply

// spec fills what all tools have in common.
func spec(s toolkit.Spec) toolkit.Spec {
	s.Input, s.Output, s.OpenOutput = schemas.HarnessToolInput(s.Name), schemas.HarnessToolOutput(s.Name), true
	s.Unlimited, s.Unordered, s.MaxResult = true, true, maxResult
	s.Unknown = func(argument string) error {
		if e := harness.UnknownKey(argument); !fault.Is(e, harness.UnknownParam) {
			return e
		}
		return nil
	}
	return s
}

// params are arguments as the Host wrote them.
type params map[string]json.RawMessage

// trimmed returns the arguments with trimmed strings; a blank one is absent. A prompt and an
// id of the agent stay as they
// are written. It refuses when one of the needed is absent.
func (p params) trimmed(needed ...string) (params, error) {
	out := make(params, len(p))
	for name, raw := range p {
		var text string
		if name != "text" && name != "option_id" && len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &text) == nil {
			text = strings.TrimSpace(text)
			if text == "" {
				continue
			}
			raw = quote(text)
		}
		out[name] = raw
	}
	for _, name := range needed {
		if out[name] == nil {
			return nil, harness.Refuse(harness.InvalidParam, "%s is required and must not be blank", name)
		}
	}
	return out, nil
}

func (p params) text(name string) (text string) {
	_ = json.Unmarshal(p[name], &text) // the schema says that it is a string
	return text
}

func quote(s string) json.RawMessage {
	b, err := json.Marshal(s)
	if err != nil { // a string always marshals
		return json.RawMessage(`""`)
	}
	return b
}

// forward registers a tool that is one operation.
func forward(r *toolkit.Registry, s *service, op string, t toolkit.Spec, needed ...string) {
	toolkit.Register(r, spec(t), func(ctx context.Context, _ toolkit.Call, in params) (any, error) {
		p, err := in.trimmed(needed...)
		if err != nil {
			return nil, err
		}
		return s.gate.call(ctx, op, p, 0)
	})
}
