package sessions

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/harness"
	"github.com/agent-knock-knock/akk/internal/harness/acp"
	"github.com/agent-knock-knock/akk/internal/harness/config"
	"github.com/agent-knock-knock/akk/internal/harness/harnesssql"
	"github.com/agent-knock-knock/akk/internal/harness/quirks"
	"github.com/agent-knock-knock/akk/internal/store"
)

// reasonLogin closes a session whose login took too long.
const reasonLogin = "authentication_timeout"

// retryLogin is what a caller is told to wait when another session logs in.
const retryLogin = 2

// login is one authentication workflow. live.mu guards it.
type login struct {
	state   harness.AuthState
	methods []harness.Method
	problem *harness.Problem
	cancel  context.CancelFunc
	target  string
	pages   pages
	// terminal is the agent's login program, nil without one.
	terminal *terminal
}

// logins are the targets that a login is in flight for.
type logins struct {
	max    int
	rate   harness.RateLimit
	mu     sync.Mutex
	holder map[string]string // target to session
}

func newLogins(c config.Authentication) *logins {
	return &logins{max: c.MaxConcurrentTargets, holder: map[string]string{},
		rate: harness.RateLimit{MinInterval: c.RateLimit.MinIntervalSeconds.Duration(), MaxAttempts: c.RateLimit.MaxAttempts, Window: c.RateLimit.WindowSeconds.Duration()}}
}

// take makes session the one that logs in at target.
func (g *logins) take(target, session string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if by, taken := g.holder[target]; taken && by != session || !taken && len(g.holder) >= g.max {
		return harness.Refuse(harness.AuthInProgress, "another session logs in").Advise("try again in %d seconds", retryLogin).
			With(harness.Detail{"poll_after_seconds": retryLogin})
	}
	g.holder[target] = session
	return nil
}

func (g *logins) release(target, session string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.holder[target] == session {
		delete(g.holder, target)
	}
}

// to moves the login and logs it.
func (n *login) to(l *live, e harness.AuthEvent) bool {
	next, ok := n.state.Next(e)
	if !ok {
		return false
	}
	n.state = next
	l.event(harness.EventAuth, "", map[string]any{"state": next}, true)
	if next.Terminal() {
		l.svc.logins.release(n.target, l.id)
	}
	return true
}

// methods are the agent's ways to log in, and which of them we can drive.
func (l *live) methods() []harness.Method {
	out := []harness.Method{}
	agent, _ := quirks.Find(l.secrets.Harness)
	given, keyed := agent.KeyLogin(l.secrets.Env) // with the key in its environment nobody is asked
	for _, m := range l.agent.AuthMethods {
		h := harness.Method{ID: m.ID, Name: m.Name, Description: m.Description, Type: m.Type, Kind: harness.LoginAgent, Supported: true}
		switch {
		case m.Type == "terminal":
			h.Kind = harness.LoginTerminal
		case takesKey(m) && !(keyed && m.ID == given):
			h.Kind = harness.LoginToken
		case m.Type != "" && m.Type != "agent":
			h.Supported, h.Reason = false, "its type is not known"
		}
		out = append(out, h)
	}
	return out
}

// takesKey recognises a method that wants a key with the call.
func takesKey(m acp.AuthMethod) bool {
	var meta map[string]json.RawMessage
	if json.Unmarshal(m.Meta, &meta) == nil && meta["api-key"] != nil {
		return true
	}
	id := strings.ToLower(m.ID)
	return strings.Contains(id, "api-key") || strings.Contains(id, "api_key") || strings.Contains(id, "token")
}

// Authenticate begins a login, or shows the one that is in flight. It does not wait for a
// person: questions are answered with Answer. A session that is logged in is ready.
func (s *Service) Authenticate(ctx context.Context, session, method string) (AuthStatus, error) {
	l, err := s.liveSession(ctx, session)
	if err != nil {
		return AuthStatus{}, err
	}
	l.mu.Lock()
	l.usedAt = l.now()
	if l.login != nil && l.login.state.InFlight() || l.rec.State == harness.StateReady {
		l.mu.Unlock()
		return s.knownAuth(ctx, session)
	}
	if l.rec.State != harness.StateAuthRequired || l.ending {
		l.mu.Unlock()
		return AuthStatus{}, harness.Refuse(harness.NotReady, "the session is %s", l.rec.State)
	}
	want := l.secrets
	n := &login{state: harness.AuthNone, methods: l.methods(), target: harness.TargetKey(want.Harness, want.Target+"/"+want.Runtime, want.RemoteHost)}
	if err := s.logins.take(n.target, l.id); err != nil {
		l.mu.Unlock()
		return AuthStatus{}, err
	}
	l.login = n
	n.to(l, harness.AuthBegan)
	run, cancel := context.WithCancel(s.group.Context())
	n.cancel = cancel
	s.group.Go(func(context.Context) { l.boundLogin(run, n) })
	supported := slices.ContainsFunc(n.methods, func(m harness.Method) bool { return m.Supported })
	switch {
	case method != "":
		err = l.pick(n, method)
	case !supported:
		err = harness.Refuse(harness.AuthMethodUnsupported, "the agent offers no login that can be driven from here").With(harness.Detail{"methods": n.methods})
	default:
		l.newQuestion(harness.MethodQuestion(n.methods), 0)
	}
	if err != nil {
		n.problem = harness.ProblemOf(err)
		n.to(l, harness.AuthBroke)
		n.cancel()
	}
	if flushErr := l.flush(); err == nil {
		err = flushErr
	}
	l.mu.Unlock()
	if err != nil {
		return AuthStatus{}, err
	}
	return s.knownAuth(ctx, session)
}

func (s *Service) liveSession(ctx context.Context, session string) (*live, error) {
	if err := harness.CheckSessionID(session); err != nil {
		return nil, err
	}
	if l := s.find(session); l != nil {
		return l, nil
	}
	rec, err := s.stored(ctx, session)
	if err == nil {
		err = harness.MayStart(rec, harness.SlotIdle)
	}
	return nil, err
}

// pick chooses a method: it is tried at once, or a key is asked for first.
func (l *live) pick(n *login, id string) error {
	m, err := harness.PickMethod(n.methods, id)
	if err != nil {
		return err
	}
	n.to(l, harness.AuthPicked)
	if m.Kind == harness.LoginToken {
		l.newQuestion(harness.Question{Kind: harness.AskAuthToken, Style: harness.StyleAuth, Sensitive: true, Title: "Key for " + m.Name,
			Message: "Enter the key. It is given to the agent and kept nowhere else.", Elicitation: m.ID,
			Schema: json.RawMessage(`{"type":"object","properties":{"token":{"type":"string","minLength":1}},"required":["token"]}`)}, 0)
		n.to(l, harness.AuthAsked)
		return nil
	}
	if i := slices.IndexFunc(l.agent.AuthMethods, func(a acp.AuthMethod) bool { return a.ID == m.ID }); m.Kind == harness.LoginTerminal && i >= 0 {
		return l.tryTerminal(n, l.agent.AuthMethods[i])
	}
	return l.try(n, m.ID, nil)
}

// spend takes an attempt. One that is not allowed ends the login, and whoever asked for it is
// told.
func (l *live) spend(n *login) error {
	rate := l.svc.logins.rate
	err := l.svc.update(func(tx *store.Tx) error {
		attempts, err := harnesssql.AuthAttempts(tx, n.target, tx.Now.Add(-rate.Window))
		if err != nil {
			return err
		}
		if err := rate.Allow(attempts, tx.Now); err != nil {
			return err
		}
		return harnesssql.AddAuthAttempt(tx, n.target, tx.Now.Add(-rate.Window))
	})
	if err != nil {
		end := harness.AuthBroke
		if fault.Is(err, harness.AuthRateLimited) {
			end = harness.AuthBarred
		}
		n.problem = harness.ProblemOf(err)
		n.to(l, end)
		n.cancel()
	}
	return err
}

// try spends an attempt and calls the agent.
func (l *live) try(n *login, method string, meta json.RawMessage) error {
	if err := l.spend(n); err != nil {
		return err
	}
	ctx, conn := l.loginContext(n), l.conn
	l.svc.group.Go(func(context.Context) { l.authenticate(ctx, n, conn, method, meta) })
	return nil
}

// loginContext ends with the login.
func (l *live) loginContext(n *login) context.Context {
	ctx, cancel := context.WithCancel(l.svc.group.Context())
	before := n.cancel
	n.cancel = func() { cancel(); before() }
	return ctx
}

// authenticate is the agent's login. Its success proves nothing: a session must open.
func (l *live) authenticate(ctx context.Context, n *login, conn *acp.Conn, method string, meta json.RawMessage) {
	err := conn.Authenticate(ctx, method, meta)
	if err == nil {
		l.mu.Lock()
		earlier := l.rec.AgentSessionID
		l.mu.Unlock()
		err = l.openSession(ctx, earlier)
	}
	l.concludeLogin(n, err)
}

// concludeLogin ends a login that worked out or did not, unless somebody ended it before.
func (l *live) concludeLogin(n *login, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.login != n || !n.state.InFlight() {
		return
	}
	l.dropQuestions("")
	if refused, opened := proved(err); opened {
		if refused != nil {
			n.problem = problemOf(refused)
			l.keepOwn(n.problem)
		}
		n.to(l, harness.AuthProved)
		l.moved(harness.SessionOpened, n.problem)
	} else {
		p := problemOf(err)
		switch {
		case fault.Is(err, acp.AuthRequired):
			p.Message = "the agent still demands a login"
		case n.terminal == nil:
			p.Message = "the agent's login failed"
		}
		if n.terminal == nil || p.Code != harness.OutputLimit && p.Code != harness.SpawnFailed {
			p.Code = harness.AuthFailed
		}
		n.problem = p
		n.to(l, harness.AuthBroke)
	}
	n.cancel()
	_ = l.flush() // retried by the loop
}

// boundLogin closes the session when the login takes too long.
func (l *live) boundLogin(ctx context.Context, n *login) {
	limit := l.svc.cfg.Authentication.TimeoutSeconds.Duration()
	timer, stop := l.svc.after(limit)
	defer stop()
	select {
	case <-ctx.Done():
		return
	case <-timer:
	}
	l.mu.Lock()
	ours := l.login == n && n.state.InFlight()
	if ours {
		l.rec.Problem = &harness.Problem{Code: harness.AuthTimedOut, Message: "the login was not done within " + limit.String()}
		n.problem = l.rec.Problem
	}
	l.mu.Unlock()
	if ours {
		l.close(l.svc.group.Context(), reasonLogin)
	}
}

// endLogin ends a login with its session.
func (l *live) endLogin(e harness.AuthEvent, p *harness.Problem) {
	n := l.login
	if n == nil || !n.state.InFlight() {
		return
	}
	if p != nil {
		n.problem = p
	}
	n.to(l, e)
	n.cancel()
}

// answerLogin takes an answer to a question of a login. What it says is given to the agent
// and kept nowhere.
func (l *live) answerLogin(a *asked, r harness.Route) error {
	n := l.login
	if n == nil || !n.state.InFlight() {
		return harness.Refuse(harness.NoPendingRequest, "the login has ended")
	}
	if r.As == harness.RoutedSelected {
		if _, err := harness.PickMethod(n.methods, r.OptionID); err != nil {
			return err
		}
	}
	l.endQuestion(a, harness.QuestionAnswered, r.As, harness.EventAnswered)
	var err error
	switch {
	case r.As == harness.RoutedDecline || r.As == harness.RoutedCancel:
		n.to(l, harness.AuthDeclined)
		l.dropQuestions("")
		n.cancel()
	case a.Kind == harness.AskAuthMethod:
		err = l.pick(n, r.OptionID)
	case a.Kind == harness.AskAuthToken:
		var in struct {
			Token string `json:"token"`
		}
		if json.Unmarshal(r.Content, &in) != nil {
			return harness.Fail(nil, harness.InvalidResponse, "content must be {\"token\": ...}")
		}
		meta, encErr := json.Marshal(map[string]any{"api-key": map[string]string{"apiKey": in.Token}})
		if encErr != nil {
			return encErr
		}
		n.to(l, harness.AuthAnswered)
		err = l.try(n, a.Elicitation, meta)
	case a.Kind == harness.AskAuthTerminal:
		err = l.enter(n, r.Content)
	default: // a page was opened; the agent says when it is enough
		n.to(l, harness.AuthAnswered)
	}
	_ = l.flush() // retried by the loop
	return err
}
