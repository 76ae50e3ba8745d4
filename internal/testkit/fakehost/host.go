package fakehost

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/testkit/gobuild"
)

// The identity of the stand-in Host, as its Profile and the Bridge's flags name it.
const (
	HostName    = "fake-host"
	HostVersion = "1.8.0"
	EnvSession  = "FAKE_HOST_SESSION_ID"
	program     = "github.com/agent-knock-knock/akk/internal/testkit/fakehost/cmd/callback"
)

// Host is one stand-in Host with its own folder, callback program and case id. It starts
// nothing by itself.
type Host struct {
	tb       testing.TB
	Dir      string
	CaseID   string
	Session  string // the controller session value; a secret to the product
	Profile  string // path of the Profile document
	Log      string // of the callback program
	modeFile string
	Store    string // a folder for --store-dir; it does not exist yet
	Callback string // the callback executable
	Env      []string
}

// New makes a Host. Options may be nil.
func New(tb testing.TB, opts *ProfileOptions) *Host {
	tb.Helper()
	dir := tb.TempDir()
	h := &Host{
		tb: tb, Dir: dir, CaseID: rand.Text(), Session: "session-secret-" + rand.Text(),
		Log: filepath.Join(dir, "callbacks.jsonl"), modeFile: filepath.Join(dir, "mode"),
		Store: filepath.Join(dir, "store"), Callback: gobuild.Link(tb, program, "callback"),
	}
	h.Profile = WriteProfile(tb, dir, h.Callback, opts)
	h.Env = []string{
		EnvSession + "=" + h.Session, EnvLog + "=" + h.Log, EnvModeFile + "=" + h.modeFile, EnvCase + "=" + h.CaseID,
		"FAKE_HOST_NOT_ALLOWED=1", // must not reach the callback program
	}
	return h
}

// SetMode switches the callback program from its next call on.
func (h *Host) SetMode(m Mode) {
	h.tb.Helper()
	tmp := h.modeFile + ".new"
	if err := os.WriteFile(tmp, []byte(m), 0o600); err != nil {
		h.tb.Fatal(err)
	}
	if err := os.Rename(tmp, h.modeFile); err != nil {
		h.tb.Fatal(err)
	}
}

// Deliveries are the calls of the callback program so far.
func (h *Host) Deliveries() []Delivery {
	h.tb.Helper()
	log, err := ReadLog(h.Log)
	if err != nil {
		h.tb.Fatal(err)
	}
	return log
}

const poll = 10 * time.Millisecond

// WaitDeliveries waits until the callback program was called n times and returns all
// calls; the test fails after limit.
func (h *Host) WaitDeliveries(n int, limit time.Duration) []Delivery {
	h.tb.Helper()
	deadline := time.Now().Add(limit)
	for {
		log := h.Deliveries()
		if len(log) >= n {
			return log
		}
		if time.Now().After(deadline) {
			h.tb.Fatalf("callback program was called %d of %d times in %v: %+v", len(log), n, limit, log)
		}
		time.Sleep(poll)
	}
}

// ProfileOptions change single points of the Profile; zero values keep the default.
type ProfileOptions struct {
	ID         string        // "fake-host-command"
	Revision   string        // "1"
	Range      string        // ">=1.8.0 <2.0.0"
	Scope      string        // not in the document
	Timeout    time.Duration // 10 s
	MaxOutput  int           // 65536
	Allow      []string      // more names for the callback's environment
	Executable string        // another callback program
	Arguments  []string      // Arguments
}

// WriteProfile writes a valid Host Profile v1 for the callback program into dir and
// returns its path.
func WriteProfile(tb testing.TB, dir, callback string, opts *ProfileOptions) string {
	tb.Helper()
	o := ProfileOptions{
		ID: "fake-host-command", Revision: "1", Range: ">=1.8.0 <2.0.0", Timeout: 10 * time.Second,
		MaxOutput: 65536, Executable: callback, Arguments: Arguments,
	}
	if opts != nil {
		o.override(*opts)
	}
	context := map[string]any{"driver": "environment_v1", "sessionIdVariable": EnvSession}
	if o.Scope != "" {
		context["scope"] = o.Scope
	}
	doc := map[string]any{
		"schema": "agent-knock-knock/host-profile", "version": 1, "id": o.ID, "revision": o.Revision,
		"compatibility":     map[string]any{"host": HostName, "range": o.Range},
		"controllerContext": context,
		"callback": map[string]any{
			"driver": "command_json_v1", "executable": o.Executable, "arguments": o.Arguments, "stdin": "${envelope.body}",
			"environment": map[string]any{"allow": append([]string{EnvLog, EnvMode, EnvModeFile, EnvCase}, o.Allow...)},
			"timeoutMs":   o.Timeout.Milliseconds(), "maxOutputBytes": o.MaxOutput,
			"acknowledgement": map[string]any{
				"disposition": map[string]any{"jsonPointer": "/result/status", "mapping": map[string]any{
					"accepted": "accepted", "retry": "retryable_failure", "rejected": "permanent_failure", "unknown": "uncertain",
				}},
				"acceptanceId":           map[string]any{"jsonPointer": "/result/acceptance_id"},
				"acknowledgedDeliveryId": map[string]any{"jsonPointer": "/request/delivery_id"},
				"acknowledgedMessageId":  map[string]any{"jsonPointer": "/request/message_id"},
			},
		},
	}
	b, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		tb.Fatal(err)
	}
	path := filepath.Join(dir, fmt.Sprintf("profile-%s.json", o.ID))
	if err := os.WriteFile(path, b, 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
}

func (o *ProfileOptions) override(by ProfileOptions) {
	for to, from := range map[*string]string{&o.ID: by.ID, &o.Revision: by.Revision, &o.Range: by.Range, &o.Scope: by.Scope, &o.Executable: by.Executable} {
		if from != "" {
			*to = from
		}
	}
	if by.Timeout > 0 {
		o.Timeout = by.Timeout
	}
	if by.MaxOutput > 0 {
		o.MaxOutput = by.MaxOutput
	}
	if by.Arguments != nil {
		o.Arguments = by.Arguments
	}
	o.Allow = by.Allow
}
