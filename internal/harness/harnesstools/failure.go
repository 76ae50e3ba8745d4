package harnesstools

import (
	"encoding/json"
	"errors"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/harness"
	"github.com/agent-knock-knock/akk/internal/harness/client"
	"github.com/agent-knock-knock/akk/internal/redact"
	"github.com/agent-knock-knock/akk/internal/toolkit"
)

// failureSchema describes what a failed call shows.
const failureSchema = `{"type":"object","properties":{"ok":{"type":"boolean","const":false},"error":{"type":"object","properties":{` +
	`"code":{"type":"string"},"message":{"type":"string"},"detail":{"type":"object"}},"required":["code","message"],"additionalProperties":false}},` +
	`"required":["ok","error"],"additionalProperties":false}`

const maxFailureText = 4096

type failure struct {
	OK    bool        `json:"ok"`
	Error failureBody `json:"error"`
}

type failureBody struct {
	Code    fault.Code     `json:"code"`
	Message string         `json:"message"`
	Detail  harness.Detail `json:"detail,omitempty"`
}

// render is the one form of a failure: the envelope, as text and as structured content. The
// code and the detail of the server pass unchanged.
func render(err error) toolkit.Result {
	code, msg, hint := fault.Public(err)
	switch {
	case code == toolkit.BadCall:
		code = harness.InvalidParam
	case errors.Is(err, toolkit.ErrCancelled) || errors.Is(err, toolkit.ErrEnded):
		code = client.Cancelled
	}
	if hint != "" {
		msg += " (" + hint + ")"
	}
	b, encErr := json.Marshal(failure{Error: failureBody{code, redact.Line(msg, maxFailureText), harness.DetailOf(err)}})
	if encErr != nil { // a detail that is no JSON
		b = []byte(`{"ok":false,"error":{"code":"internal","message":"internal error"}}`)
	}
	return toolkit.Result{Text: string(b), Structured: b, IsError: true}
}
