package sessions

import (
	"context"
	"encoding/json"
	"time"

	"github.com/agent-knock-knock/akk/internal/harness"
	"github.com/agent-knock-knock/akk/internal/harness/quirks"
)

// probeLimit bounds the question who is logged in. An agent that does not answer in time
// cannot tell.
const probeLimit = 3 * time.Second

// withAgentsWord adds what the agent itself says of its login. Its yes names the account; its
// no is told and takes nothing from the session, for only a refused call proves it.
func (s *Service) withAgentsWord(ctx context.Context, st AuthStatus) AuthStatus {
	l := s.find(st.SessionID)
	if l == nil {
		return st
	}
	switch yes, account := l.whoIsLoggedIn(ctx); {
	case yes == nil:
	case *yes:
		st.Account = account
	default:
		st.State, st.Authenticated = harness.AuthNone, yes
	}
	return st
}

// whoIsLoggedIn asks an agent that is ready and idle. Nil means that it cannot tell: most
// agents have no such method.
func (l *live) whoIsLoggedIn(ctx context.Context) (yes *bool, account map[string]any) {
	agent, _ := quirks.Find(l.secrets.Harness)
	l.mu.Lock()
	conn := l.conn
	free := l.rec.State == harness.StateReady && l.slot() == harness.SlotIdle && !l.ending
	l.mu.Unlock()
	if agent.StatusMethod == "" || conn == nil || !free {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	raw, err := conn.Call(ctx, agent.StatusMethod, map[string]any{})
	if err != nil {
		return nil, nil
	}
	yes = agent.LoggedIn(raw)
	var facts map[string]any
	if yes != nil && *yes && json.Unmarshal(raw, &facts) == nil {
		account = harness.Account(facts)
	}
	return yes, account
}
