package harnessserver

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/harness"
	"github.com/agent-knock-knock/akk/internal/redact"
)

type okEnvelope struct {
	OK   bool `json:"ok"`
	Data any  `json:"data"`
}

type errorEnvelope struct {
	OK    bool      `json:"ok"`
	Error wireError `json:"error"`
}

type wireError struct {
	Code    fault.Code     `json:"code"`
	Message string         `json:"message"`
	Detail  harness.Detail `json:"detail,omitempty"`
}

// maxErrorText bounds the message of an error.
const maxErrorText = 2048

// shorter is a result that knows how to need less room: every step leaves more out and says
// so. What became of a message can always be read.
type shorter interface {
	Bytes() int // it needs at least so many
	Shorter(step int) (any, bool)
}

// reply writes one envelope. A result above the limit is made shorter, or becomes an error
// that says so.
func reply(w http.ResponseWriter, data any, err error) {
	if err == nil {
		var body []byte
		if body, err = fitting(data); err == nil {
			send(w, http.StatusOK, body)
			return
		}
	}
	code, msg, hint := fault.Public(err)
	if code == fault.Internal {
		msg, hint = "the server failed", "see its log"
	}
	if hint != "" {
		msg += " (" + hint + ")"
	}
	body, encErr := json.Marshal(errorEnvelope{false, wireError{code, redact.StrictLine(msg, maxErrorText), harness.DetailOf(err)}})
	if encErr != nil { // a detail that is no JSON
		body = []byte(`{"ok":false,"error":{"code":"internal","message":"the server failed (see its log)"}}`)
	}
	send(w, statusOf(code), append(body, '\n'))
}

// fitting encodes a result within the limit.
func fitting(data any) ([]byte, error) {
	whole, can := data.(shorter)
	for step := 0; ; step++ {
		if s, is := data.(shorter); is && s.Bytes() > maxBody { // it is not even tried
			if data, can = whole.Shorter(step); can {
				continue
			}
			data = whole
		}
		var body bytes.Buffer
		enc := json.NewEncoder(&body)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(okEnvelope{true, data}); err != nil {
			return nil, harness.Fail(err, fault.Internal, "the result cannot be written")
		}
		if body.Len() <= maxBody {
			return body.Bytes(), nil
		}
		if can {
			data, can = whole.Shorter(step)
		}
		if !can {
			return nil, harness.Refuse(harness.ResponseTooLarge, "the result has %d bytes, the limit is %d", body.Len(), maxBody).
				Advise("read it in pieces with the operation events")
		}
	}
}

func send(w http.ResponseWriter, status int, body []byte) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that is gone is nobody's error
}

// statusOf is the HTTP status of a code. It is for people and tools; a client keys on the
// code.
func statusOf(code fault.Code) int {
	switch code {
	case harness.Unauthorized:
		return http.StatusUnauthorized
	case harness.ForbiddenHost, harness.ForbiddenOrigin:
		return http.StatusForbidden
	case harness.UnsupportedMethod:
		return http.StatusMethodNotAllowed
	case harness.UnsupportedMedia:
		return http.StatusUnsupportedMediaType
	case harness.UnsupportedOperation, fault.NotFound:
		return http.StatusNotFound
	case harness.MessageTooLarge, harness.RequestTooLarge, harness.LineTooLarge:
		return http.StatusRequestEntityTooLarge
	case harness.AuthRateLimited, harness.MaxSessions:
		return http.StatusTooManyRequests
	case harness.EmptyMessage, harness.UnknownParam, harness.LaunchInternal, harness.AuthMethodUnsupported, harness.UnsupportedTarget, fault.Invalid:
		return http.StatusBadRequest
	case harness.Busy, harness.SessionExists, harness.TemplateExists, harness.IdempotencyConflict, harness.AuthRequired, harness.AuthInProgress, harness.SessionClosed,
		harness.SessionFailed, harness.NotReady, harness.NoPendingRequest, harness.RequestIDMismatch, harness.ServerAlreadyRunning, harness.Interrupted,
		harness.OptionNotApplied, harness.NotResumable, fault.Conflict:
		return http.StatusConflict
	case harness.Transport, harness.ACPError, harness.SpawnFailed, harness.MalformedMessage, harness.ProtocolUnsupported, harness.OutputLimit, harness.AuthFailed:
		return http.StatusBadGateway
	case harness.StartupTimeout, harness.OutputTimeout, harness.CancelTimeout, harness.InteractionTimeout, harness.AuthTimedOut, fault.Timeout:
		return http.StatusGatewayTimeout
	case fault.Unavailable:
		return http.StatusServiceUnavailable
	}
	switch {
	case strings.HasPrefix(string(code), "invalid_"):
		return http.StatusBadRequest
	case strings.HasPrefix(string(code), "unknown_"):
		return http.StatusNotFound
	}
	return http.StatusInternalServerError
}
