// Command host is a complete, small Host for Agent Knock Knock: it delegates one task to
// a coding agent in tmux and waits for the knock.
//
//	host --bridge agent-knock-knock --task "Say hello" [--agent codex] [--timeout 5m]
//
// It shows everything that a Host has to do, in this order:
//
//  1. have a Profile that names its callback program and its trusted session;
//  2. start `agent-knock-knock host-bridge` as a child and speak MCP with it over stdio;
//  3. list the terminals and send the task to one that can take it;
//  4. go on with its life until the callback program is run with the agent's answer;
//  5. accept the answer, and look at the Turn once more.
//
// The callback program is this same executable, called as `host callback ...` (file
// callback.go). There is no polling between 3 and 4: the callback is the event.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// This Host's identity. The Profile says which versions of which Host it is made for, and
// the Bridge refuses to start for another one.
const (
	hostName    = "example-host"
	hostVersion = "1.0.0"
)

type options struct {
	bridge, task, agent string
	timeout             time.Duration
	bridgeArgs          []string
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "callback" {
		os.Exit(callback(os.Args[2:]))
	}
	var o options
	flag.StringVar(&o.bridge, "bridge", "agent-knock-knock", "the Bridge's executable")
	flag.StringVar(&o.task, "task", "", "what the agent shall do")
	flag.StringVar(&o.agent, "agent", "", "only an agent of this kind: codex or claude")
	flag.DurationVar(&o.timeout, "timeout", 10*time.Minute, "give up after this long")
	flag.Usage = func() {
		fmt.Fprintf(flag.CommandLine.Output(), "usage: host --task TEXT [flags] [-- further flags of host-bridge]\n")
		flag.PrintDefaults()
	}
	flag.Parse()
	o.bridgeArgs = flag.Args()
	if o.task == "" {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	if err := run(ctx, o, newTrail(os.Stdout)); err != nil {
		fmt.Fprintln(os.Stderr, "host:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options, trail *trail) error {
	// 1. The trusted session, the socket on which the callback program reaches this
	// process, and the Profile.
	dir, err := os.MkdirTemp("", "akk-host-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	box, err := openMailbox(filepath.Join(dir, "mail.sock"))
	if err != nil {
		return err
	}
	defer box.close()
	profile := filepath.Join(dir, "profile.json")
	if err := writeProfile(profile); err != nil {
		return err
	}

	// 2. The Bridge. The session value and the socket are in its environment only: the
	// Profile lets the Bridge read the one and the callback program inherit the other.
	args := append([]string{"host-bridge", "--profile", profile, "--host", hostName, "--host-version", hostVersion}, o.bridgeArgs...)
	cmd := exec.Command(o.bridge, args...)
	cmd.Env = append(os.Environ(), sessionVariable+"="+box.session, socketVariable+"="+box.path)
	cmd.Stderr = os.Stderr // the Bridge logs there; stdout belongs to MCP
	client := mcp.NewClient(&mcp.Implementation{Name: hostName, Version: hostVersion}, nil)
	session, err := client.Connect(ctx, &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		return fmt.Errorf("start the Bridge: %w", err)
	}
	defer session.Close() // closes the Bridge's stdin, which ends it in order
	trail.say("bridge   pid %d is connected", cmd.Process.Pid)

	// 3. Pick a terminal and send the task.
	term, err := pickTerminal(ctx, session, o.agent, trail)
	if err != nil {
		return err
	}
	turn, err := send(ctx, session, term, o.task, trail)
	if err != nil {
		return err
	}

	// 4. Wait for knocks. A Host may do anything else meanwhile.
	for {
		var k knock
		select {
		case k = <-box.knocks:
		case <-ctx.Done():
			return fmt.Errorf("no answer: %w", ctx.Err())
		}
		trail.say("knock    message %s", k.Message)
		trail.quote(k.Body)

		// 5. The knock is accepted (the mailbox did that); see what became of the Turn.
		status, err := settled(ctx, session, turn)
		if err != nil {
			return err
		}
		trail.say("status   turn %s, submission %s", status.Turn.Status, status.Turn.Submission)
		for _, c := range status.Callbacks {
			trail.say("callback %s: %s after %d attempt(s)", c.Kind, c.Status, c.Attempts)
		}
		switch status.Turn.Status {
		case "idle":
			trail.say("done")
			return nil
		case "failed", "cancelled", "closed":
			return fmt.Errorf("the turn ended as %s", status.Turn.Status)
		}
		trail.say("the agent waits for a person in %s", term.Target)
	}
}

// terminal is the part of a list row that this Host uses.
type terminal struct {
	ID      string         `json:"terminal_id"`
	Agent   string         `json:"agent"`
	Version string         `json:"agent_version"`
	State   string         `json:"activity_state"`
	Reason  string         `json:"activity_reason"`
	Target  string         `json:"target"`
	Actions map[string]any `json:"available_actions"`
}

// pickTerminal takes the first terminal that offers the action "send". Whether a terminal
// can take a task is the Bridge's judgement, never the Host's.
func pickTerminal(ctx context.Context, s *mcp.ClientSession, agent string, trail *trail) (terminal, error) {
	var list struct {
		Terminals []terminal `json:"terminals"`
	}
	if err := call(ctx, s, "agent_knock_knock_list", map[string]any{}, &list); err != nil {
		return terminal{}, err
	}
	var picked *terminal
	for i, t := range list.Terminals {
		trail.say("list     %s %s in %s: %s %s", t.Agent, t.Version, t.Target, t.State, t.Reason)
		if _, ok := t.Actions["send"]; ok && picked == nil && (agent == "" || t.Agent == agent) {
			picked = &list.Terminals[i]
		}
	}
	if picked == nil {
		return terminal{}, errors.New("no agent can take a task now; start codex or claude in tmux and let it come to rest")
	}
	return *picked, nil
}

// send delegates the task and returns the id of its Turn.
func send(ctx context.Context, s *mcp.ClientSession, t terminal, task string, trail *trail) (string, error) {
	trail.say("send     %q to %s", task, t.ID)
	var sent struct {
		TurnID     string `json:"turn_id"`
		Status     string `json:"status"`
		DoNotRetry bool   `json:"do_not_retry"`
		Reason     string `json:"reason"`
	}
	if err := call(ctx, s, "agent_knock_knock_send", map[string]any{"terminal_id": t.ID, "request": task}, &sent); err != nil {
		return "", err
	}
	trail.say("sent     %s as turn %s %s", sent.Status, sent.TurnID, sent.Reason)
	switch sent.Status {
	case "async_pending", "submission_pending_acceptance":
		return sent.TurnID, nil // the callback will tell
	}
	return "", fmt.Errorf("the task was not delivered for sure: %s", sent.Status)
}

type turnStatus struct {
	Turn struct {
		Status     string `json:"status"`
		Submission string `json:"submission"`
	} `json:"turn"`
	Callbacks []struct {
		Kind     string `json:"kind"`
		Status   string `json:"status"`
		Attempts int    `json:"attempts"`
	} `json:"callback_delivery"`
}

// settled reads the Turn until the Bridge has noted that its knock was heard. That takes
// a moment, because the callback program has only just answered, and no event tells.
func settled(ctx context.Context, s *mcp.ClientSession, turn string) (turnStatus, error) {
	const tries, pause = 20, 100 * time.Millisecond
	var status turnStatus
	for range tries {
		status = turnStatus{}
		if err := call(ctx, s, "agent_knock_knock_status", map[string]any{"turn_id": turn}, &status); err != nil {
			return status, err
		}
		pending := 0
		for _, c := range status.Callbacks {
			if c.Status == "pending" || c.Status == "delivering" {
				pending++
			}
		}
		if pending == 0 {
			break
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return status, ctx.Err()
		}
	}
	return status, nil
}

// call calls a tool. A tool's own refusal comes as a result with IsError; its text says
// what is wrong and what to do.
func call(ctx context.Context, s *mcp.ClientSession, tool string, args map[string]any, out any) error {
	res, err := s.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		return fmt.Errorf("%s: %w", tool, err)
	}
	if res.IsError {
		var text []string
		for _, c := range res.Content {
			if t, ok := c.(*mcp.TextContent); ok {
				text = append(text, t.Text)
			}
		}
		return fmt.Errorf("%s: %s", tool, strings.Join(text, " "))
	}
	b, err := json.Marshal(res.StructuredContent)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, out)
}
