// Package fault is the one error type of this module.
//
// An error that a caller must tell apart carries a Code; a code is a constant of the
// package whose rule was broken. Everything else is wrapped with %w and shows as
// [Internal] outside. Callers ask [CodeOf]; nobody matches error text.
//
// The package knows no domain, prints nothing and logs nothing.
package fault

import (
	"errors"
	"fmt"
	"strings"
)

// Code names a class of failure. Codes are stable: programs compare them.
type Code string

// The codes every domain shares. Domains add their own constants.
const (
	NotFound      Code = "not_found"
	Invalid       Code = "invalid"
	AlreadyExists Code = "already_exists"
	Conflict      Code = "conflict"
	Internal      Code = "internal"
	Unavailable   Code = "unavailable" // a needed thing outside us is absent or silent
	Timeout       Code = "timeout"     // a bounded wait ended without an answer
)

// Error is a coded failure. Msg says what is wrong, Hint what to do next; both are one
// line, safe to show to a model or a person, and never hold a secret. Err is the cause:
// it is for logs and is not part of the public text.
type Error struct {
	Code Code
	Op   string // the operation that failed, such as "dispatch.send"
	Msg  string
	Hint string
	Err  error
}

// Error returns "op: msg (hint): cause", leaving out what is empty.
func (e *Error) Error() string {
	var b strings.Builder
	if e.Op != "" {
		b.WriteString(e.Op + ": ")
	}
	switch {
	case e.Msg != "":
		b.WriteString(e.Msg)
	default:
		b.WriteString(string(e.Code))
	}
	if e.Hint != "" {
		b.WriteString(" (" + e.Hint + ")")
	}
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is makes errors.Is(err, &Error{Code: c}) true for an error with code c: a bare code is a
// sentinel for programs that embed a domain.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && *t == Error{Code: t.Code} && t.Code == e.Code
}

// New returns a coded error without a cause.
func New(code Code, op, format string, args ...any) *Error {
	return &Error{Code: code, Op: op, Msg: fmt.Sprintf(format, args...)}
}

// Wrap returns a coded error around err. A nil err gives a nil *Error, so do not return
// the result of Wrap(nil) as an error interface; check err first.
func Wrap(err error, code Code, op, format string, args ...any) *Error {
	if err == nil {
		return nil
	}
	return &Error{Code: code, Op: op, Msg: fmt.Sprintf(format, args...), Err: err}
}

// WithHint returns a copy of e that tells the reader what to do next.
func (e *Error) WithHint(format string, args ...any) *Error {
	c := *e
	c.Hint = fmt.Sprintf(format, args...)
	return &c
}

// CodeOf returns the code of the first coded error in err's chain, "" for nil and
// [Internal] for an error without a code.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return Internal
}

// Is reports whether err carries the code.
func Is(err error, code Code) bool { return err != nil && CodeOf(err) == code }

// Public returns what may be shown outside: code, message and hint of the first coded
// error, or a fixed text for an uncoded one. Causes are never part of it.
func Public(err error) (code Code, msg, hint string) {
	var e *Error
	if !errors.As(err, &e) {
		return Internal, "internal error", "see the Bridge's log on stderr"
	}
	msg = e.Msg
	if msg == "" {
		msg = string(e.Code)
	}
	return e.Code, msg, e.Hint
}
