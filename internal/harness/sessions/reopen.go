package sessions

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/harness"
	"github.com/agent-knock-knock/akk/internal/harness/harnesssql"
	"github.com/agent-knock-knock/akk/internal/store"
)

// Again is what reopen_session asks for. Secret values are stored nowhere, so a caller gives
// them again.
type Again struct {
	SessionID  string              `json:"session_id"`
	Env        map[string]string   `json:"env,omitempty"`
	Args       []string            `json:"args,omitempty"`
	MCPServers []harness.MCPServer `json:"mcp_servers,omitempty"`
}

// Reopened is a session with a new agent. Resumed says that the agent took up its earlier
// session; otherwise it began a new one and knows nothing of the past.
type Reopened struct {
	SessionStatus
	Resumed bool `json:"resumed"`
}

// Reopen starts a new agent for a session that has none, and lets it take up where the last
// one was. Its messages and its log go on. On an error the session is as it was, but for
// authentication_required, as in Create.
func (s *Service) Reopen(ctx context.Context, again Again) (Reopened, error) {
	if err := harness.CheckSessionID(again.SessionID); err != nil {
		return Reopened{}, err
	}
	if s.find(again.SessionID) != nil {
		return Reopened{}, harness.Refuse(harness.Busy, "the session has an agent").Advise("close it first, or just use it")
	}
	before, err := s.stored(ctx, again.SessionID)
	if err != nil {
		return Reopened{}, err
	}
	want, err := restored(before, again)
	if err != nil {
		return Reopened{}, err
	}
	if err := checkPlace(want); err != nil {
		return Reopened{}, err
	}
	rec, ok := before.Moved(harness.SessionReopening, nil, s.clock.Now())
	if !ok {
		return Reopened{}, harness.Refuse(harness.NotReady, "the session is %s", before.State)
	}
	l, err := s.reserve(rec, want)
	if err != nil {
		return Reopened{}, err
	}
	if err := s.update(func(tx *store.Tx) error { return harnesssql.SaveSession(tx, rec) }); err != nil {
		s.forget(l)
		close(l.ended)
		return Reopened{}, err
	}
	err = s.begin(l, before.AgentSessionID)
	if err != nil && !fault.Is(err, harness.AuthRequired) {
		l.mu.Lock()
		before.Seq, before.Questions = l.rec.Seq, l.rec.Questions
		l.mu.Unlock()
		if backErr := s.update(func(tx *store.Tx) error { return harnesssql.SaveSession(tx, before) }); backErr != nil {
			s.log.Error("a session that did not reopen is not stored as before", "session", before.ID, "error", backErr)
		}
	}
	if err != nil {
		return Reopened{}, err
	}
	st, err := s.Status(ctx, again.SessionID)
	return Reopened{st, before.AgentSessionID != "" && st.AgentSessionID == before.AgentSessionID}, err
}

// restored is the launch of a session with the values that were not stored.
func restored(rec harness.Session, again Again) (harness.Launch, error) {
	want := rec.Launch
	want.Env = maps.Clone(want.Env)
	if want.Env == nil {
		want.Env = map[string]string{}
	}
	maps.Copy(want.Env, again.Env)
	if again.Args != nil {
		want.Args = again.Args
	}
	if again.MCPServers != nil {
		want.MCPServers = again.MCPServers
	}
	var missing []string
	for _, name := range rec.WithheldEnv {
		variable, isEnv := strings.CutPrefix(name, "env.")
		_, there := again.Env[variable]
		if isEnv && !there || name == "args" && again.Args == nil || name == "mcp_servers" && again.MCPServers == nil {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return want, harness.Refuse(harness.InvalidParam, "give again what is not stored: %s", strings.Join(missing, ", ")).With(harness.Detail{"missing": missing})
	}
	return want.Check(want.Harness)
}

// holds names a live session, but not l, that has the agent's session: two agents in one
// conversation would write over each other. It is empty when there is none.
func (s *Service) holds(agentSession string, l *live) string {
	if agentSession == "" {
		return ""
	}
	s.mu.Lock()
	others := slices.Collect(maps.Values(s.live))
	s.mu.Unlock()
	for _, o := range others {
		if o == l {
			continue
		}
		o.mu.Lock()
		same := o.rec.AgentSessionID == agentSession && o.rec.Launch.Harness == l.secrets.Harness
		o.mu.Unlock()
		if same {
			return o.id
		}
	}
	return ""
}
