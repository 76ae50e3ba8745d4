package sessions

import (
	"context"

	"github.com/agent-knock-knock/akk/internal/harness"
)

// authView is what a status shows of a login.
type authView struct {
	State   harness.AuthState
	Methods []harness.Method
	Problem *harness.Problem
	Output  string
}

// AuthStatus is a login as a caller sees it.
type AuthStatus struct {
	SessionID     string             `json:"session_id"`
	State         harness.AuthState  `json:"state"`
	Authenticated *bool              `json:"authenticated"`
	Methods       []harness.Method   `json:"methods"`
	Questions     []harness.Question `json:"questions"`
	Account       map[string]any     `json:"account,omitempty"`
	Error         *harness.Problem   `json:"error,omitempty"`
	Output        string             `json:"output,omitempty"` // the newest of what a login program wrote, masked
	Seq           int64              `json:"seq"`
}

func (l *live) authView() authView {
	if l.login == nil {
		return authView{State: harness.AuthNone, Methods: l.methods()}
	}
	v := authView{State: l.login.state, Methods: l.login.methods, Problem: l.login.problem}
	if t := l.login.terminal; t != nil {
		v.Output = t.output
	}
	return v
}

// AuthStatus shows a login, or, when there is none, what the session's state proves and what
// an idle agent says of itself.
func (s *Service) AuthStatus(ctx context.Context, session string) (AuthStatus, error) {
	st, err := s.knownAuth(ctx, session)
	if err != nil {
		return st, err
	}
	return s.withAgentsWord(ctx, st), nil
}

// knownAuth is AuthStatus without asking the agent.
func (s *Service) knownAuth(ctx context.Context, session string) (AuthStatus, error) {
	if err := harness.CheckSessionID(session); err != nil {
		return AuthStatus{}, err
	}
	var v shown
	if l := s.find(session); l != nil {
		v, _, _, _ = l.view()
	} else {
		rec, err := s.stored(ctx, session)
		if err != nil {
			return AuthStatus{}, err
		}
		v = shown{rec: rec, seq: rec.Seq, auth: authView{State: harness.AuthNone}}
		if p := rec.Problem; p != nil && p.Code == harness.AuthTimedOut { // which closed it
			v.auth.State, v.auth.Problem = harness.AuthStateTimedOut, p
		}
	}
	st := AuthStatus{SessionID: session, State: v.auth.State, Methods: v.auth.Methods, Questions: []harness.Question{}, Error: v.auth.Problem,
		Output: v.auth.Output, Seq: v.seq}
	if st.Methods == nil {
		st.Methods = []harness.Method{}
	}
	for _, q := range v.questions {
		if q.MessageID == "" {
			st.Questions = append(st.Questions, q)
		}
	}
	switch v.rec.State {
	case harness.StateReady:
		yes := true
		st.Authenticated = &yes
		if st.State == harness.AuthNone || st.State.Terminal() {
			st.State = harness.AuthReady
		}
	case harness.StateAuthRequired:
		no := false
		st.Authenticated = &no
		if st.State == harness.AuthReady { // that login was lost since
			st.State = harness.AuthNone
		}
	}
	if v.auth.Problem != nil && st.State == harness.AuthLimited {
		return st, harness.Refuse(v.auth.Problem.Code, "%s", v.auth.Problem.Message).With(v.auth.Problem.Detail)
	}
	return st, nil
}

// AwaitAuth is AuthStatus that waits for news first.
func (s *Service) AwaitAuth(ctx context.Context, session string, w Wait) (AuthStatus, error) {
	st, err := s.awaitAuth(ctx, session, w)
	if err != nil {
		return st, err
	}
	return s.withAgentsWord(ctx, st), nil
}

func (s *Service) awaitAuth(ctx context.Context, session string, w Wait) (AuthStatus, error) {
	timer, stop := s.after(w.For)
	defer stop()
	var first *int64
	for {
		var changed <-chan struct{}
		if l := s.find(session); l != nil {
			_, changed, _, _ = l.view()
		}
		st, err := s.knownAuth(ctx, session)
		if err != nil || changed == nil || !st.State.InFlight() || w.For <= 0 {
			return st, err
		}
		if w.AfterSeq != nil && st.Seq > *w.AfterSeq || w.AfterSeq == nil && (len(st.Questions) > 0 || first != nil && st.Seq != *first) {
			return st, nil
		}
		if first == nil {
			first = &st.Seq
		}
		select {
		case <-changed:
		case <-timer:
			return s.knownAuth(ctx, session)
		case <-ctx.Done():
			return st, nil
		}
	}
}
