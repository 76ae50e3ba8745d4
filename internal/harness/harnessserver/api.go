package harnessserver

import (
	"context"
	"encoding/json"
	"time"

	"github.com/agent-knock-knock/akk/internal/harness"
	"github.com/agent-knock-knock/akk/internal/harness/sessions"
)

const (
	// maxWait bounds one long-poll: it must be shorter than any client's limit of a request.
	maxWait = 25 * time.Second
	// maxEvents bounds one piece of a session's log.
	maxEvents     = 1000
	defaultEvents = 500
	maxSessions   = 500
)

// operations is the whole API.
func (s *Server) operations() map[string]operation {
	ping := takes(s.ping)
	ping.public = true
	return map[string]operation{
		"ping":                ping,
		"create_session":      takes(s.createSession),
		"reopen_session":      takes(s.reopenSession),
		"close_session":       takes(s.closeSession),
		"list_sessions":       takes(s.listSessions),
		"list_models":         takes(s.listModels),
		"set_session_options": takes(s.setOptions),
		"send_message":        takes(s.sendMessage),
		"cancel_message":      takes(s.cancelMessage),
		"message_status":      takes(s.messageStatus),
		"answer_question":     takes(s.answerQuestion),
		"events":              takes(s.events),
		"authenticate":        takes(s.authenticate),
		"auth_status":         takes(s.authStatus),
		"register_template":   {call: s.registerTemplate},
		"search_template":     takes(s.searchTemplate),
		"delete_template":     takes(s.deleteTemplate),
		"shutdown":            takes(s.shutdown),
	}
}

type sessionParam struct {
	SessionID string `json:"session_id"`
}

// waitParam is the long-poll of an operation. after_seq is the seq of the last answer that
// the caller has seen: then only something newer ends the wait.
type waitParam struct {
	WaitMS   int    `json:"wait_ms"`
	AfterSeq *int64 `json:"after_seq"`
}

func (w waitParam) check() (sessions.Wait, error) {
	if w.WaitMS < 0 || time.Duration(w.WaitMS)*time.Millisecond > maxWait {
		return sessions.Wait{}, harness.Refuse(harness.InvalidParam, "wait_ms must be between 0 and %d", maxWait.Milliseconds())
	}
	return sessions.Wait{For: time.Duration(w.WaitMS) * time.Millisecond, AfterSeq: w.AfterSeq}, nil
}

// createSession does not end with a client that goes away.
func (s *Server) createSession(ctx context.Context, in harness.Launch) (any, error) {
	return result(s.sessions.Create(context.WithoutCancel(ctx), in))
}

func (s *Server) reopenSession(ctx context.Context, in sessions.Again) (any, error) {
	return result(s.sessions.Reopen(context.WithoutCancel(ctx), in))
}

// result makes a typed result one of any type, without a value beside an error.
func result[T any](v T, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return v, nil
}

func (s *Server) closeSession(ctx context.Context, in sessionParam) (any, error) {
	already, err := s.sessions.CloseSession(ctx, in.SessionID)
	if err != nil {
		return nil, err
	}
	return map[string]any{"status": "closed", "session_id": in.SessionID, "already_closed": already}, nil
}

func (s *Server) listSessions(ctx context.Context, in struct {
	Limit int `json:"limit"`
}) (any, error) {
	if in.Limit < 0 || in.Limit > maxSessions {
		return nil, harness.Refuse(harness.InvalidParam, "limit must be between 1 and %d", maxSessions)
	}
	if in.Limit == 0 {
		in.Limit = maxSessions
	}
	list, err := s.sessions.Sessions(ctx, in.Limit)
	if err != nil {
		return nil, err
	}
	return map[string]any{"sessions": list, "count": len(list)}, nil
}

// listModels shows what the agent of a session offers.
func (s *Server) listModels(ctx context.Context, in sessionParam) (any, error) {
	st, err := s.sessions.Status(ctx, in.SessionID)
	if err != nil {
		return nil, err
	}
	models := st.Models
	if models == nil {
		models = []sessions.Value{}
	}
	return map[string]any{"session_id": in.SessionID, "model_id": st.ModelID, "models": models, "config_options": st.ConfigOptions}, nil
}

func (s *Server) setOptions(ctx context.Context, in struct {
	SessionID      string `json:"session_id"`
	ModelID        string `json:"model_id"`
	ThinkingLevel  string `json:"thinking_level"`
	PermissionMode string `json:"permission_mode"`
}) (any, error) {
	st, applied, err := s.sessions.SetOptions(ctx, in.SessionID, sessions.Change{ModelID: in.ModelID, ThinkingLevel: in.ThinkingLevel, PermissionMode: in.PermissionMode})
	if err != nil {
		return nil, err
	}
	return map[string]any{"session_id": in.SessionID, "model_id": st.ModelID, "model_name": st.ModelName, "thinking_level": st.ThinkingLevel,
		"permission_mode": st.PermissionMode, "applied": applied, "config_options": st.ConfigOptions}, nil
}

func (s *Server) sendMessage(ctx context.Context, in struct {
	SessionID      string  `json:"session_id"`
	Text           string  `json:"text"`
	IdempotencyKey *string `json:"idempotency_key"`
}) (any, error) {
	key := ""
	if in.IdempotencyKey != nil {
		key = *in.IdempotencyKey
	}
	return result(s.sessions.Send(ctx, in.SessionID, in.Text, key, in.IdempotencyKey != nil))
}

func (s *Server) cancelMessage(ctx context.Context, in struct {
	SessionID string `json:"session_id"`
	MessageID string `json:"message_id"`
}) (any, error) {
	st, idle, err := s.sessions.Cancel(ctx, in.SessionID, in.MessageID)
	switch {
	case err != nil:
		return nil, err
	case idle:
		return map[string]any{"status": "idle", "session_id": in.SessionID}, nil
	}
	return st, nil
}

func (s *Server) messageStatus(ctx context.Context, in struct {
	SessionID string `json:"session_id"`
	MessageID string `json:"message_id"`
	waitParam
}) (any, error) {
	w, err := in.check()
	if err != nil {
		return nil, err
	}
	if in.MessageID == "" {
		return result(s.sessions.Status(ctx, in.SessionID))
	}
	return result(s.sessions.AwaitMessage(ctx, in.SessionID, in.MessageID, w))
}

func (s *Server) answerQuestion(ctx context.Context, in struct {
	SessionID string          `json:"session_id"`
	RequestID string          `json:"request_id"`
	MessageID string          `json:"message_id"`
	OptionID  string          `json:"option_id"`
	Content   json.RawMessage `json:"content"`
	Answer    string          `json:"answer"`
}) (any, error) {
	if in.RequestID == "" {
		return nil, harness.Refuse(harness.InvalidParam, "request_id is missing")
	}
	return result(s.sessions.Answer(ctx, in.SessionID, in.RequestID, in.MessageID, harness.Answer{OptionID: in.OptionID, Content: in.Content, Word: in.Answer}))
}

func (s *Server) events(ctx context.Context, in struct {
	SessionID string `json:"session_id"`
	After     int64  `json:"after"`
	Limit     int    `json:"limit"`
	WaitMS    int    `json:"wait_ms"`
}) (any, error) {
	w, err := waitParam{WaitMS: in.WaitMS}.check()
	if err != nil {
		return nil, err
	}
	if in.Limit < 0 || in.Limit > maxEvents || in.After < 0 {
		return nil, harness.Refuse(harness.InvalidParam, "limit must be between 1 and %d, and after not negative", maxEvents)
	}
	if in.Limit == 0 {
		in.Limit = defaultEvents
	}
	return result(s.sessions.Events(ctx, in.SessionID, in.After, in.Limit, w.For))
}

// authenticate takes method_id from a person's own client; a proxy never passes it on.
func (s *Server) authenticate(ctx context.Context, in struct {
	SessionID string `json:"session_id"`
	MethodID  string `json:"method_id"`
}) (any, error) {
	return result(s.sessions.Authenticate(ctx, in.SessionID, in.MethodID))
}

func (s *Server) authStatus(ctx context.Context, in struct {
	SessionID string `json:"session_id"`
	waitParam
}) (any, error) {
	w, err := in.check()
	if err != nil {
		return nil, err
	}
	return result(s.sessions.AwaitAuth(ctx, in.SessionID, w))
}
