// Package ledgertools is the MCP surface of the coordination ledger as values: the table
// of tools with their schemas, the decoding of arguments, the text and the structured
// payload of results, the resources and their templates.
//
// It owns names, words and shapes. It must never know a transport or a table: a server
// carries its results, and every rule is behind coord.Service.
package ledgertools

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ledger"
	"github.com/agent-knock-knock/akk/internal/ledger/coord"
)

//go:embed catalogue/*.json
var catalogue embed.FS

// families is the order of the catalogue.
var families = []string{"coordination", "projects", "roots", "context_sources", "skills", "roles", "work_items", "assignments", "artifacts",
	"evidence", "reviews", "handoffs", "memory_entries", "memory_candidates", "assistant"}

// Declaration is a tool as a Host sees it.
type Declaration struct {
	Name        string          `json:"name"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
	Annotations struct {
		ReadOnly    bool `json:"readOnlyHint"`
		Destructive bool `json:"destructiveHint"`
		Idempotent  bool `json:"idempotentHint"`
		OpenWorld   bool `json:"openWorldHint"`
	} `json:"annotations"`
	Meta map[string]any `json:"_meta"`
}

// Catalogue is the JSON array of all declarations, the same bytes every time.
var Catalogue = sync.OnceValue(func() []byte {
	var all []json.RawMessage
	for _, f := range families {
		raw, err := catalogue.ReadFile("catalogue/" + f + ".json")
		if err != nil {
			panic(err) // the files are embedded beside this one
		}
		var part []json.RawMessage
		if err := json.Unmarshal(raw, &part); err != nil {
			panic(fmt.Sprintf("ledgertools: catalogue %s: %v", f, err))
		}
		all = append(all, part...)
	}
	b, err := Marshal(all)
	if err != nil {
		panic(err) // it was just decoded
	}
	return b
})

// Marshal is json.Marshal without escapes for HTML.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// Declarations decodes the catalogue; for tables that other registries make of it.
func Declarations() ([]Declaration, error) {
	var out []Declaration
	err := json.Unmarshal(Catalogue(), &out)
	return out, err
}

// Outcome is what a tool answers: text for people and models, and an object.
type Outcome struct {
	Text    string
	Value   any
	IsError bool
}

type handler func(ctx context.Context, s *coord.Service, args json.RawMessage) (Outcome, error)

// Tools calls tools of one ledger.
type Tools struct {
	service *coord.Service
	name    string
	version string
	offer   *Offer // nil: everything
}

// New returns the tools of a ledger. name and version are what
// coordination.capabilities tells.
func New(s *coord.Service, name, version string) *Tools {
	return &Tools{service: s, name: name, version: version}
}

// Known reports whether there is a tool.
func Known(name string) bool {
	fill()
	_, ok := handlers[name]
	return ok || name == capabilitiesTool
}

// Call runs a tool. Every failure of a known tool is an Outcome with the error envelope.
func (t *Tools) Call(ctx context.Context, name string, args json.RawMessage) Outcome {
	if name == capabilitiesTool {
		return t.capabilities()
	}
	fill()
	out, err := handlers[name](ctx, t.service, args)
	if err != nil {
		return Failed(err, out.Value)
	}
	return out
}

// problem is the error of the envelope.
type problem struct {
	Code      fault.Code `json:"code"`
	Message   string     `json:"message"`
	Retryable bool       `json:"retryable,omitempty"`
}

// Failed is the envelope of a failure. The members of result, if any, stand beside it.
func Failed(err error, result any) Outcome {
	_, msg, hint := fault.Public(err)
	if hint != "" {
		msg += " (" + hint + ")"
	}
	switch {
	case errors.Is(err, context.Canceled):
		msg = "the call was cancelled; nothing was stored"
	case errors.Is(err, context.DeadlineExceeded):
		msg = "the call took too long; nothing was stored"
	}
	p := problem{coord.Classify(err), msg, coord.Retryable(err)}
	value := map[string]any{}
	if result != nil {
		b, err := json.Marshal(result)
		if err == nil {
			_ = json.Unmarshal(b, &value) // it was just marshalled
		}
	}
	value["error"] = p
	return Outcome{Text: msg, Value: value, IsError: true}
}

// decode reads arguments as encoding/json does: unknown members are ignored, null is
// absent. What does not fit is invalid.
func decode(args json.RawMessage, into any) error {
	trimmed := bytes.TrimSpace(args)
	if len(trimmed) == 0 || trimmed[0] != '{' {
		return fault.New(fault.Invalid, "ledger", "arguments must be a JSON object")
	}
	if !isUnicode(trimmed) {
		return fault.New(fault.Invalid, "ledger", "arguments hold text that is not Unicode")
	}
	err := json.Unmarshal(trimmed, into)
	if err == nil {
		return nil
	}
	var coded *fault.Error
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &coded):
		return coded
	case errors.As(err, &kind) && kind.Field != "":
		return fault.New(fault.Invalid, "ledger", "argument %s must not be a %s", kind.Field, strings.Fields(kind.Value)[0])
	}
	return fault.New(fault.Invalid, "ledger", "arguments do not fit the tool's input schema")
}

// handlers is filled by add, one family a file, when the first tool is looked up.
var handlers = map[string]handler{}

var fill = sync.OnceFunc(func() {
	for _, family := range []func(){addProjects, addRoots, addWork, addAssignments, addCollab, addHandoffs, addMemory, addSkills, addSummaries, addAssistant} {
		family()
	}
})

// tool adds a handler whose arguments are required.
func tool[In any](name string, f func(ctx context.Context, s *coord.Service, in In) (Outcome, error)) {
	handlers[name] = func(ctx context.Context, s *coord.Service, args json.RawMessage) (Outcome, error) {
		var in In
		if err := decode(args, &in); err != nil {
			return Outcome{}, err
		}
		return f(ctx, s, in)
	}
}

// optional adds a handler that takes missing arguments for none.
func optional[In any](name string, f func(ctx context.Context, s *coord.Service, in In) (Outcome, error)) {
	tool(name, f)
	strict := handlers[name]
	handlers[name] = func(ctx context.Context, s *coord.Service, args json.RawMessage) (Outcome, error) {
		if t := bytes.TrimSpace(args); len(t) == 0 || bytes.Equal(t, []byte("null")) {
			args = json.RawMessage("{}")
		}
		return strict(ctx, s, args)
	}
}

// inProject and the like are the arguments that many tools share.
type inProject struct {
	ProjectID string `json:"project_id"`
}

type inItem struct {
	ProjectID  string `json:"project_id"`
	WorkItemID string `json:"work_item_id"`
}

type inAssignment struct {
	ProjectID    string `json:"project_id"`
	AssignmentID string `json:"assignment_id"`
}

// The bounds of a page.
const (
	defaultPage = 500
	maxPage     = 1000
)

// paging is the arguments of a list.
type paging struct {
	Limit  *int   `json:"limit"`
	Cursor string `json:"cursor"`
}

func (p paging) span() (coord.Span, error) {
	s := coord.Span{Limit: defaultPage}
	if p.Limit != nil {
		if *p.Limit < 1 {
			return s, fault.New(fault.Invalid, "ledger", "limit must be at least 1")
		}
		s.Limit = min(*p.Limit, maxPage)
	}
	if c := ledger.Trim(p.Cursor); c != "" {
		n, err := strconv.Atoi(c)
		if err != nil || n < 0 {
			return s, fault.New(fault.Invalid, "ledger", "cursor is not a next_cursor of this list")
		}
		s.Offset = n
	}
	return s, nil
}

// listed is the structured form of every list.
type listed[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next_cursor,omitempty"`
}

// lines renders a page: one line per record in the text, the records in the object.
func lines[T any](p coord.Page[T], err error, none string, line func(T) string) (Outcome, error) {
	if err != nil {
		return Outcome{}, err
	}
	out := listed[T]{Items: p.Items}
	if out.Items == nil {
		out.Items = []T{}
	}
	var b strings.Builder
	for i, v := range p.Items {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(line(v))
	}
	if len(p.Items) == 0 {
		b.WriteString(none)
	}
	if p.Next > 0 {
		out.Next = strconv.Itoa(p.Next)
		fmt.Fprintf(&b, "\nmore follows: next_cursor=%s", out.Next)
	}
	return Outcome{Text: b.String(), Value: out}, nil
}

// record renders one record.
func record[T any](v T, err error, text func(T) string) (Outcome, error) {
	if err != nil {
		return Outcome{}, err
	}
	return Outcome{Text: text(v), Value: v}, nil
}

type deleted struct {
	ID      string `json:"id"`
	Deleted bool   `json:"deleted"`
}

func removed(what, id string, err error) (Outcome, error) {
	if err != nil {
		return Outcome{}, err
	}
	id = ledger.Trim(id)
	return Outcome{Text: "Deleted " + what + " " + id, Value: deleted{id, true}}, nil
}

// oneLine keeps a title from breaking the list that it is part of.
func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	const most = 200
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
