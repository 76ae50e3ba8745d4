package sessions

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/harness"
	"github.com/agent-knock-knock/akk/internal/harness/acp"
	"github.com/agent-knock-knock/akk/internal/harness/launch"
)

const (
	// terminalQuiet is how long a login program writes nothing before it is taken to wait
	// for a person, and terminalLong how long it may write without a pause until then.
	terminalQuiet = 300 * time.Millisecond
	terminalLong  = 3 * time.Second
	// terminalOutput ends a login program that floods, and terminalAsks one that asks for
	// ever.
	terminalOutput = 4 << 20
	terminalAsks   = 50
)

// terminalKeys are what a person can press beside Enter.
var terminalKeys = map[string]string{"enter": "\r", "up": "\x1b[A", "down": "\x1b[B", "right": "\x1b[C", "left": "\x1b[D", "tab": "\t", "escape": "\x1b", "space": " "}

// terminalSchema is the form of what a person enters: a line, or one key.
var terminalSchema = json.RawMessage(`{"type":"object","properties":{` +
	`"input":{"type":"string","title":"Line to enter","description":"It is sent with Enter. Empty: Enter alone.","maxLength":4000,"pattern":"^[^\\x00-\\x1f\\x7f]*$"},` +
	`"key":{"type":"string","title":"Or one key","enum":["enter","up","down","left","right","tab","escape","space"]}}}`)

// terminal is a login program of an agent in a terminal. live.mu guards it, but for screen,
// which its own loop alone reads and writes.
type terminal struct {
	process Program // nil until it runs
	screen  screen
	output  string // what is shown
	shown   string // what the last question showed
	asks    int
	typed   []string      // since the last look at the screen
	kick    chan struct{} // somebody typed
	done    chan struct{} // nothing of it is left
}

// tryTerminal spends an attempt and starts the agent's login program.
func (l *live) tryTerminal(n *login, m acp.AuthMethod) error {
	if l.ending {
		return harness.Refuse(harness.SessionClosed, "the session is ending")
	}
	spec, err := specOf(l.secrets)
	if err != nil {
		return err
	}
	spec.Argv = append(slices.Clone(spec.Argv), m.Args...)
	spec.Env = maps.Clone(spec.Env)
	if spec.Env == nil {
		spec.Env = map[string]string{}
	}
	maps.Copy(spec.Env, m.Env)
	if err := l.spend(n); err != nil {
		return err
	}
	t := &terminal{kick: make(chan struct{}, 1), done: make(chan struct{})}
	n.terminal = t
	ctx, conn := l.loginContext(n), l.conn
	l.svc.group.Go(func(context.Context) { l.runTerminal(ctx, n, t, conn, spec, m.ID) })
	return nil
}

// runTerminal is the login program from its start to its end, and what it proves: a program
// that ends well is a login only when the agent then opens a session.
func (l *live) runTerminal(ctx context.Context, n *login, t *terminal, conn *acp.Conn, spec launch.Spec, method string) {
	process, err := l.svc.launch.StartTerminal(ctx, spec)
	if err != nil {
		close(t.done)
		l.concludeLogin(n, launchFault(err))
		return
	}
	l.mu.Lock()
	t.process = process
	l.mu.Unlock()
	chunks := make(chan []byte, 16)
	go readTerminal(process.Stdout(), chunks)
	err = l.followTerminal(ctx, n, t, chunks)
	exit := process.Close(ctx) // after the end of ctx without any grace
	for range chunks {
	} // the reader ends with the output that Close closed
	close(t.done)
	if ctx.Err() != nil {
		return // whoever ended the login says how
	}
	l.mu.Lock()
	l.event(harness.EventAuth, "", map[string]any{"login_program": method, "exit_code": exit.Code, "left": exit.Left}, true)
	earlier := l.rec.AgentSessionID
	l.showTerminal(n, t, false)
	l.mu.Unlock()
	switch {
	case err != nil:
	case exit.Code != 0:
		err = harness.Refuse(harness.AuthFailed, "the login program ended with status %d", exit.Code).With(harness.Detail{"exit_code": exit.Code, "output": t.screen.text()})
	default:
		if err = l.openSession(ctx, earlier); fault.Is(err, harness.AuthRequired) && conn.Authenticate(ctx, method, nil) == nil {
			err = l.openSession(ctx, earlier)
		}
	}
	if ctx.Err() == nil {
		l.concludeLogin(n, err)
	}
}

// followTerminal shows what the program writes, and asks when it waits, until it ends.
func (l *live) followTerminal(ctx context.Context, n *login, t *terminal, chunks <-chan []byte) error {
	var since time.Time // of the first words that nobody was shown
	var timer <-chan time.Time
	stop := func() {}
	defer func() { stop() }()
	for {
		select {
		case <-ctx.Done():
			return nil
		case chunk, open := <-chunks:
			if !open {
				return nil // its terminal is closed: it is over, or Close ends it
			}
			t.screen.add(chunk)
			if t.screen.total > terminalOutput {
				return harness.Refuse(harness.OutputLimit, "the login program wrote more than %d bytes", terminalOutput)
			}
			now := l.svc.clock.Now()
			if since.IsZero() {
				since = now
			}
			stop()
			timer, stop = l.svc.after(max(min(terminalQuiet, since.Add(terminalLong).Sub(now)), time.Millisecond))
		case <-t.kick:
			stop() // a program that says nothing to it wants more
			timer, stop = l.svc.after(terminalLong)
		case <-timer:
			timer, since = nil, time.Time{}
			l.mu.Lock()
			l.showTerminal(n, t, true)
			tooMany := t.asks > terminalAsks
			l.mu.Unlock()
			if tooMany {
				return harness.Refuse(harness.OutputLimit, "the login program asked more than %d times", terminalAsks)
			}
		}
	}
}

// readTerminal reads until the program is gone or from is closed. Somebody takes every chunk.
func readTerminal(from io.Reader, chunks chan<- []byte) {
	defer close(chunks)
	for {
		buf := make([]byte, 4<<10)
		n, err := from.Read(buf)
		if n > 0 {
			chunks <- buf[:n]
		}
		if err != nil { // a terminal ends with an error
			return
		}
	}
}

// showTerminal publishes the newest output. ask: the program waits, so a person is asked for
// what it wants; a question about older output is replaced.
func (l *live) showTerminal(n *login, t *terminal, ask bool) {
	for _, text := range t.typed {
		t.screen.entered(text)
	}
	t.typed = nil
	if l.login != n || !n.state.InFlight() {
		return
	}
	t.output = t.screen.text()
	l.facts.visible = true
	if ask && t.output != t.shown {
		for _, a := range l.openQuestions("") {
			l.endQuestion(a, harness.QuestionWithdrawn, "", harness.EventWithdrawn)
		}
		t.shown = t.output
		t.asks++
		q := harness.Question{Kind: harness.AskAuthTerminal, Style: harness.StyleAuth, Sensitive: true, Title: "The login program says", Message: t.output, Schema: terminalSchema}
		if page := t.screen.page(); page != "" {
			q.Message += "\n\nPage: " + page
		}
		l.newQuestion(q, 0)
		n.to(l, harness.AuthAsked)
	}
	l.svc.nudge()
	_ = l.flush() // retried by the loop
}

// enter gives the program what a person entered. It is kept nowhere.
func (l *live) enter(n *login, content json.RawMessage) error {
	var in struct{ Input, Key string }
	if json.Unmarshal(content, &in) != nil {
		return harness.Refuse(harness.InvalidResponse, "content must be {\"input\": ...} or {\"key\": ...}")
	}
	t := n.terminal
	if t == nil || t.process == nil {
		return harness.Refuse(harness.NoPendingRequest, "the login program has ended")
	}
	if in.Input != "" {
		t.typed = append(t.typed, in.Input)
	}
	select {
	case t.kick <- struct{}{}:
	default:
	}
	keys := in.Input + terminalKeys["enter"]
	if in.Key != "" {
		keys = in.Input + terminalKeys[in.Key]
	}
	t.shown = "" // what follows is news, even when it reads the same
	n.to(l, harness.AuthAnswered)
	to := t.process.Stdin()
	l.svc.group.Go(func(context.Context) { // it ends with the terminal, when nobody reads
		if _, err := io.WriteString(to, keys); err != nil {
			l.svc.log.Warn("a login program took no input", "session", l.id, "error", err)
		}
	})
	return nil
}

// haltTerminal ends the login program and waits until nothing of it is left. The caller makes
// sure that no other one starts.
func (l *live) haltTerminal() {
	l.mu.Lock()
	n := l.login
	if n == nil || n.terminal == nil {
		l.mu.Unlock()
		return
	}
	n.cancel()
	done := n.terminal.done
	l.mu.Unlock()
	<-done
}
