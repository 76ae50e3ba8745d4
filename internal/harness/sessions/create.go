package sessions

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"net/url"
	"os"
	"slices"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/harness"
	"github.com/agent-knock-knock/akk/internal/harness/acp"
	"github.com/agent-knock-knock/akk/internal/harness/harnesssql"
	"github.com/agent-knock-knock/akk/internal/harness/launch"
	"github.com/agent-knock-knock/akk/internal/harness/quirks"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/redact"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/strictjson"
	"github.com/agent-knock-knock/akk/internal/version"
)

func newID(prefix string, n int) string {
	b := make([]byte, n)
	rand.Read(b) // never fails since Go 1.24
	return prefix + hex.EncodeToString(b)
}

// Create starts an agent and opens its session. An agent that demands a login stays alive:
// the error is authentication_required with the session's id. After any other error nothing
// is left. The work does not end with the caller.
func (s *Service) Create(ctx context.Context, want harness.Launch) (SessionStatus, error) {
	want, err := want.Check(s.cfg.DefaultHarness)
	if err != nil {
		return SessionStatus{}, err
	}
	key := want.IdempotencyKey
	if key, err = harness.CheckIdempotencyKey(key, key != ""); err != nil {
		return SessionStatus{}, err
	}
	if err := checkPlace(want); err != nil {
		return SessionStatus{}, err
	}
	if _, err := specOf(want); err != nil { // an unknown harness is said before anything is stored
		return SessionStatus{}, err
	}
	if key != "" {
		want.IdempotencyKey = "" // it is no part of what is asked for, and never stored
		if id, ok, err := s.createdBefore(ctx, key, want); err != nil || ok {
			if err != nil {
				return SessionStatus{}, err
			}
			return s.Status(ctx, id)
		}
	}
	if want.SessionID == "" {
		want.SessionID = newID(s.clock.Now().UTC().Format(time.DateOnly)+"-", 4)
	}
	now := s.clock.Now().UTC().Truncate(time.Millisecond)
	rec := harness.Session{ID: want.SessionID, State: harness.StateStarting, ModelID: want.ModelID, Thinking: want.ThinkingLevel,
		PermissionMode: want.PermissionMode, CreatedAt: now, UpdatedAt: now}
	rec.Launch, rec.WithheldEnv = withoutSecrets(want)
	l, err := s.reserve(rec, want)
	if err != nil {
		return SessionStatus{}, err
	}
	err = s.update(func(tx *store.Tx) error {
		if err := harnesssql.AddSession(tx, rec); err != nil || key == "" {
			return err
		}
		hash, err := launchHash(want)
		if err != nil {
			return err
		}
		return harnesssql.AddCreateKey(tx, ids.TextHash(key), hash, rec.ID)
	})
	if err != nil {
		s.forget(l)
		close(l.ended)
		if exists(err) {
			return SessionStatus{}, harness.Refuse(harness.SessionExists, "the session id, or the idempotency key, is in use").Advise("choose another one")
		}
		return SessionStatus{}, err
	}
	err = s.begin(l, want.ResumeSessionID)
	if err != nil && !fault.Is(err, harness.AuthRequired) {
		// What never started leaves nothing behind.
		if dropErr := s.update(func(tx *store.Tx) error { return harnesssql.DropSession(tx, rec.ID) }); dropErr != nil {
			s.log.Error("a session that did not start is still stored", "session", rec.ID, "error", dropErr)
		}
		return SessionStatus{}, err
	}
	if err != nil {
		return SessionStatus{}, err
	}
	return s.Status(ctx, rec.ID)
}

// checkPlace refuses what this release cannot start, and a directory that is not there,
// before anything is stored.
func checkPlace(want harness.Launch) error {
	if want.Target != harness.TargetLocal || want.Runtime != harness.RuntimeDirect {
		return harness.Refuse(harness.UnsupportedTarget, "this release starts agents on this machine only").Advise("use target local and runtime direct")
	}
	info, err := os.Stat(want.Cwd)
	if err != nil || !info.IsDir() {
		return harness.Fail(err, harness.InvalidCwd, "cwd is not an existing directory").Advise("make it first, or name another one")
	}
	return nil
}

func launchHash(want harness.Launch) (string, error) {
	want.SessionID = ""
	return strictjson.Hash(want)
}

// createdBefore finds the session that an idempotency key created. Another request under
// the same key is a conflict.
func (s *Service) createdBefore(ctx context.Context, key string, want harness.Launch) (id string, ok bool, err error) {
	hash, err := launchHash(want)
	if err != nil {
		return "", false, err
	}
	var before string
	err = s.db.View(ctx, func(tx *store.Tx) (err error) {
		id, before, ok, err = harnesssql.CreateKey(tx, ids.TextHash(key))
		return err
	})
	if err == nil && ok && before != hash {
		return "", false, harness.Refuse(harness.IdempotencyConflict, "the idempotency key created session %s with other parameters", id).
			With(harness.Detail{"session_id": id})
	}
	return id, ok, err
}

// reserve takes a place for a session.
func (s *Service) reserve(rec harness.Session, want harness.Launch) (*live, error) {
	l := &live{svc: s, id: rec.ID, rec: rec, secrets: want, ended: make(chan struct{}), changed: make(chan struct{}), usedAt: s.clock.Now()}
	l.shown = shown{rec: rec, slot: harness.SlotIdle, auth: authView{State: harness.AuthNone}}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.stopping:
		return nil, harness.Refuse(fault.Unavailable, "the server is ending")
	case s.live[rec.ID] != nil:
		return nil, harness.Refuse(harness.SessionExists, "the session exists")
	case len(s.live) >= s.cfg.Sessions.MaxConcurrency:
		return nil, harness.Refuse(harness.MaxSessions, "%d sessions are live, which is the limit", len(s.live)).Advise("close one, or raise sessions.max_concurrency")
	}
	s.live[rec.ID] = l
	return l, nil
}

// begin starts the agent of a reserved session and opens it, or takes up agentSession. On
// every error but authentication_required the agent is gone and the place is free.
func (s *Service) begin(l *live, agentSession string) error {
	// The whole start has one bound, and it does not end with the caller.
	limit := s.cfg.Transport.StartupTimeoutSeconds.Duration() + s.cfg.Transport.SessionTimeoutSeconds.Duration()*2 + s.cfg.Transport.OptionTimeoutSeconds.Duration()
	ctx, cancel := context.WithTimeout(s.group.Context(), limit)
	defer cancel()
	l.mu.Lock()
	if l.ending {
		l.mu.Unlock()
		return s.abandon(l, harness.Refuse(harness.SessionClosed, "the session was closed while it started"))
	}
	l.starting = cancel
	l.rec.AgentSessionID = agentSession // taken: its replayed history is known as such
	l.mu.Unlock()
	if other := s.holds(agentSession, l); other != "" {
		return s.abandon(l, harness.Refuse(harness.Busy, "session %s has that conversation of the agent, and is live", other).
			Advise("use that session, or close it first").With(harness.Detail{"session_id": other}))
	}
	err := l.start(ctx)
	if err == nil {
		err = l.openSession(ctx, agentSession)
	}
	l.mu.Lock()
	l.starting = nil
	closed := l.ending
	switch {
	case closed:
		err = harness.Refuse(harness.SessionClosed, "the session was closed while it started")
	case err == nil:
		l.moved(harness.SessionOpened, nil)
		err = l.flush()
	case fault.Is(err, harness.AuthRequired):
		l.moved(harness.SessionLoggedOut, nil)
		if flushErr := l.flush(); flushErr != nil {
			err = flushErr
			break
		}
		err = harness.NeedLogin(l.id).With(harness.Detail{"methods": l.methods()})
		l.mu.Unlock()
		return err
	}
	if err != nil {
		l.ending = true
	}
	l.mu.Unlock()
	if err != nil {
		return s.abandon(l, err)
	}
	return nil
}

// abandon ends an agent whose session did not come to be. err gets the agent's last words.
func (s *Service) abandon(l *live, err error) error {
	l.mu.Lock()
	process := l.process
	l.mu.Unlock()
	if process != nil {
		exit := l.endAgent(s.group.Context())
		d := harness.Detail{"exit_code": exit.Code}
		if tail := process.StderrTail(); len(tail) > 0 {
			d["stderr_tail"] = tail
		}
		var known *harness.Error
		if errors.As(err, &known) {
			err = known.With(d)
		}
	}
	s.forget(l)
	close(l.ended)
	return err
}

// start starts the program and shakes hands.
func (l *live) start(ctx context.Context) error {
	spec, err := specOf(l.secrets)
	if err != nil {
		return err
	}
	spec.EachError = l.errorLines()
	process, err := l.svc.launch.Start(ctx, spec)
	if err != nil {
		return launchFault(err)
	}
	buffers := l.svc.cfg.Buffers
	conn := acp.Open(context.WithoutCancel(ctx), process.Stdout(), process.Stdin(), l,
		acp.Options{Limits: acp.Limits{LineBytes: int(buffers.MaxReadBytes), QueueBytes: int(buffers.MaxQueueBytes)}})
	l.mu.Lock()
	l.process, l.conn = process, conn
	ending := l.ending
	l.mu.Unlock()
	if ending {
		return harness.Refuse(harness.SessionClosed, "the session was closed while it started")
	}
	limit := l.svc.cfg.Transport.StartupTimeoutSeconds.Duration()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	us := acp.Info{Name: "agent-knock-knock", Title: "Agent Knock Knock", Version: version.Version}
	agent, err := conn.Initialize(ctx, us, acp.ClientCaps{ElicitForm: true, ElicitURL: true, BooleanOptions: true, TerminalAuth: true})
	if err != nil {
		return startFault(err, "initialize", limit)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.agent = agent
	l.rec.AgentName, l.rec.AgentVersion = agent.Agent.Name, agent.Agent.Version
	l.rec.CanResume = agent.Caps.Resume || agent.Caps.Load
	return nil
}

// openSession opens a new session of the agent, or takes up an old one, and applies what
// was asked for. Only its success proves a login.
func (l *live) openSession(ctx context.Context, agentSession string) error {
	limit := l.svc.cfg.Transport.SessionTimeoutSeconds.Duration()
	short, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	// Some agents open nothing before a login call, although their key is in the environment.
	if agent, _ := quirks.Find(l.secrets.Harness); agent.LoginBeforeSession {
		if method, ok := agent.KeyLogin(l.secrets.Env); ok {
			if err := l.conn.Authenticate(short, method, nil); err != nil {
				return startFault(err, "authenticate", limit)
			}
		}
	}
	open, resumed, err := l.openOrResume(short, agentSession)
	if err != nil {
		return startFault(err, "session/new", limit)
	}
	l.mu.Lock()
	l.open, l.rec.AgentSessionID = open, open.ID
	if agentSession != "" {
		l.event(harness.EventRestarted, "", map[string]any{"resumed": resumed}, true)
	}
	want := Change{ModelID: l.rec.ModelID, ThinkingLevel: l.rec.Thinking, PermissionMode: l.rec.PermissionMode}
	l.mu.Unlock()
	_, err = l.apply(ctx, want, true)
	return openedBut(err)
}

func (l *live) openOrResume(ctx context.Context, agentSession string) (open acp.Session, resumed bool, err error) {
	params := acp.SessionParams{CWD: l.secrets.Cwd, MCPServers: mcpServers(l.secrets.MCPServers), AdditionalDirectories: l.secrets.AdditionalDirectories}
	if agentSession != "" {
		l.mu.Lock()
		caps := l.agent.Caps
		l.rec.AgentSessionID = agentSession
		l.mu.Unlock()
		switch {
		case caps.Resume:
			open, err = l.conn.ResumeSession(ctx, agentSession, params)
		case caps.Load:
			open, err = l.conn.LoadSession(ctx, agentSession, params)
		default:
			err = harness.Refuse(harness.NotResumable, "the agent cannot take up an earlier session")
		}
		if err == nil {
			if open.ID == "" {
				open.ID = agentSession
			}
			return open, true, nil
		}
		if !fault.Is(err, acp.RPCFailed) && !fault.Is(err, harness.NotResumable) {
			return open, false, err
		}
	}
	open, err = l.conn.NewSession(ctx, params)
	return open, false, err
}

// mcpServers writes the servers as the protocol wants them.
func mcpServers(list []harness.MCPServer) []json.RawMessage {
	type pair struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	pairs := func(m map[string]string) []pair {
		out := []pair{}
		for _, name := range slices.Sorted(maps.Keys(m)) {
			out = append(out, pair{name, m[name]})
		}
		return out
	}
	out := []json.RawMessage{}
	for _, s := range list {
		v := map[string]any{"name": s.Name}
		if s.Command != "" {
			args := s.Args
			if args == nil {
				args = []string{}
			}
			v["command"], v["args"], v["env"] = s.Command, args, pairs(s.Env)
		} else {
			kind := s.Type
			if kind == "" {
				kind = "http"
			}
			v["type"], v["url"], v["headers"] = kind, s.URL, pairs(s.Headers)
		}
		raw, err := json.Marshal(v)
		if err != nil {
			continue // strings always marshal
		}
		out = append(out, raw)
	}
	return out
}

// withoutSecrets is what may be stored of a launch, and the names of what may not.
func withoutSecrets(want harness.Launch) (harness.Launch, []string) {
	var withheld []string
	clean := func(m map[string]string, where string) map[string]string {
		out := map[string]string{}
		for _, name := range slices.Sorted(maps.Keys(m)) {
			if secret(name + "=" + m[name]) {
				withheld = append(withheld, where+name)
				continue
			}
			out[name] = m[name]
		}
		return out
	}
	want.Env = clean(want.Env, "env.")
	if secretArgs(want.Args) {
		withheld, want.Args = append(withheld, "args"), nil
	}
	servers := want.MCPServers
	want.MCPServers = nil
	for _, s := range servers {
		n := len(withheld)
		s.Env, s.Headers = clean(s.Env, "mcp_servers."), clean(s.Headers, "mcp_servers.")
		if len(withheld) > n || secret(s.Command) || secretArgs(s.Args) || secretURL(s.URL) {
			withheld = append(withheld[:n], "mcp_servers")
			want.MCPServers = nil
			break
		}
		want.MCPServers = append(want.MCPServers, s)
	}
	return want, withheld
}

func secret(line string) bool { return redact.Strict(line) != line }

// secretArgs looks at each argument behind the one before it, which may be its name.
func secretArgs(args []string) bool {
	before := ""
	for _, a := range args {
		if secret(before + a) {
			return true
		}
		before = a + " "
	}
	return false
}

// secretURL is true for one with a user, even without a password: some services take the
// key there.
func secretURL(raw string) bool {
	if raw == "" {
		return false
	}
	u, err := url.Parse(raw)
	return err != nil || u.User != nil || secret(raw)
}

// launchFault gives a failed start its place in the catalogue.
func launchFault(err error) error {
	code, msg, hint := fault.Public(err)
	e := harness.Fail(err, code, "%s", msg)
	if hint != "" {
		e = e.Advise("%s", hint)
	}
	var spawn *launch.SpawnError
	if errors.As(err, &spawn) {
		e = e.With(harness.Detail{"argv0": spawn.Program, "errno": spawn.Errno.Error()})
	}
	return e
}

// startFault gives a failed handshake its place in the catalogue.
func startFault(err error, what string, limit time.Duration) error {
	switch code := fault.CodeOf(err); code {
	case acp.AuthRequired:
		return harness.Fail(err, harness.AuthRequired, "the agent demands a login")
	case fault.Timeout:
		return harness.Fail(err, harness.StartupTimeout, "the agent did not answer %s within %s", what, limit)
	case acp.Transport:
		return harness.Fail(err, harness.Transport, "the agent ended before it answered %s", what).Advise("read stderr_tail")
	default:
		var known *harness.Error
		if errors.As(err, &known) {
			return err
		}
		p := problemOf(err)
		return harness.Fail(err, code, "%s failed: %s", what, p.Message).With(p.Detail)
	}
}
