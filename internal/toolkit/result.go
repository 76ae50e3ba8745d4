package toolkit

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/redact"
)

const (
	// MaxText bounds the text of a failed call, in bytes.
	MaxText = 1024
	// MaxResult bounds the JSON of a successful result. The text copy doubles it.
	MaxResult = 1 << 20
)

// TooLarge is the code of a call that was carried out and whose result does not fit.
const TooLarge fault.Code = "result_too_large"

// Result is what a Host sees of a call that was admitted.
type Result struct {
	Text       string          // the JSON again, or the one line of a failure
	Structured json.RawMessage // a JSON object
	IsError    bool
	// Input replaces the rest: the Host is asked and calls again.
	Input *InputNeeded
}

// Verdict is a handler's value that says by itself whether the call failed: the value is
// shown in full either way. It is for tools whose failure is a state with a history.
type Verdict struct {
	Value  any
	Failed bool
}

// Retry advises a caller what a repetition of a failed call would mean.
type Retry string

// The advice. No advice means: read the message.
const (
	RetrySafe  Retry = "safe"        // nothing happened
	RetryCheck Retry = "check_first" // the outcome is unknown; look before repeating
	RetryNever Retry = "never"       // something may have happened that must not happen twice
)

type advised struct {
	error
	retry Retry
}

func (a advised) Unwrap() error { return a.error }

// WithRetry attaches advice to err; it shows as error.retry of the failed call. A nil err
// stays nil.
func WithRetry(err error, r Retry) error {
	if err == nil {
		return nil
	}
	return advised{err, r}
}

type failure struct {
	Error failureBody `json:"error"`
}

type failureBody struct {
	Code    fault.Code `json:"code"`
	Message string     `json:"message"`
	Hint    string     `json:"hint,omitempty"`
	Retry   Retry      `json:"retry,omitempty"`
}

// failed renders err for the Host. The cause of a fault is not part of it.
func failed(err error) Result {
	code, msg, hint := fault.Public(err)
	body := failureBody{Code: code, Message: redact.Line(msg, MaxText), Hint: redact.Line(hint, MaxText)}
	var a advised
	if errors.As(err, &a) {
		body.Retry = a.retry
	}
	text := body.Message
	if body.Hint != "" {
		text += " (" + body.Hint + ")"
	}
	structured, err := marshal(failure{body})
	if err != nil { // a struct of strings always marshals
		structured = json.RawMessage(`{"error":{"code":"internal","message":"internal error"}}`)
	}
	return Result{Text: redact.Line(text, MaxText), Structured: structured, IsError: true}
}

// succeeded renders a handler's value.
func (t *tool) succeeded(value any, check bool) (Result, error) {
	structured := json.RawMessage("{}")
	verdict, judged := value.(Verdict)
	if judged {
		value = verdict.Value
	}
	if value != nil {
		var err error
		if structured, err = marshal(value); err != nil {
			return Result{}, fault.Wrap(err, fault.Internal, "toolkit.call", "the result of %s is not JSON", t.spec.Name)
		}
	}
	if structured[0] != '{' {
		return Result{}, fault.New(fault.Internal, "toolkit.call", "the result of %s is not a JSON object", t.spec.Name)
	}
	most := MaxResult
	if t.spec.MaxResult > 0 {
		most = t.spec.MaxResult
	}
	if len(structured) > most {
		err := fault.New(TooLarge, "toolkit.call", "%s was carried out, but its result of %d bytes is above the limit of %d",
			t.spec.Name, len(structured), most).WithHint("ask for less with the tool's filters")
		if t.spec.Effect == ReadOnly {
			return Result{}, WithRetry(err, RetrySafe)
		}
		return Result{}, WithRetry(err, RetryNever)
	}
	if check && t.declared().output != nil {
		var instance map[string]any
		if err := json.Unmarshal(structured, &instance); err != nil {
			return Result{}, fault.Wrap(err, fault.Internal, "toolkit.call", "the result of %s is not JSON", t.spec.Name)
		}
		valid, err := t.declared().output.resolve()
		if err == nil {
			err = valid.Validate(instance)
		}
		if err != nil {
			return Result{}, fault.Wrap(err, fault.Internal, "toolkit.call", "the result of %s does not match its output schema", t.spec.Name)
		}
	}
	return Result{Text: string(structured), Structured: structured, IsError: judged && verdict.Failed}, nil
}

// marshal is json.Marshal without HTML escapes.
func marshal(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}
