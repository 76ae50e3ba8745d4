package toolkit

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"sync"

	"github.com/agent-knock-knock/akk/internal/strictjson"
)

// Effect says what a tool may do to the world. The MCP annotations follow from it.
type Effect int

// The effects. The zero value is none of them, so that no tool forgets to choose.
const (
	// ReadOnly changes nothing that anybody could observe later.
	ReadOnly Effect = iota + 1
	// Mutating adds or moves state and takes nothing away that cannot be had again.
	Mutating
	// Destructive may end, discard or overwrite something.
	Destructive
)

// Spec declares one tool. Input is required; Output may be empty, then no output schema
// is published.
type Spec struct {
	Name        string // ^[a-z][a-z0-9_.-]*$, at most 64 bytes
	Title       string // for people
	Description string // for the model
	// Input and Output are JSON Schemas (draft 2020-12) of type object. Every object in
	// them that lists properties must also say additionalProperties: false. Output
	// describes success only; the failure shape is added when it is published.
	Input, Output json.RawMessage
	Effect        Effect
	// Idempotent: a second call with the same arguments changes nothing further.
	// It says nothing for a ReadOnly tool, which always is.
	Idempotent bool
	// OpenWorld: the tool reaches beyond this machine's own state, such as an agent that
	// talks to a model.
	OpenWorld bool
	// Meta is published as the tool's _meta. It says nothing about calls.
	Meta map[string]any

	// Unlimited: [CallLimit] does not apply, because the tool waits for work elsewhere. The
	// handler bounds itself.
	Unlimited bool
	// Unordered: the call neither waits for earlier ones nor makes later ones wait.
	Unordered bool
	// Detach: at the end of the session the handler's context ends at once, with the cause
	// [ErrEnded], because what it waits for goes on without it.
	Detach bool
	// OpenOutput: Output may leave additionalProperties open, because the result is made
	// elsewhere and may say more.
	OpenOutput bool
	// MaxResult replaces the package's bound when it is above zero.
	MaxResult int
	// Unknown may refuse an argument that the schema does not know in words and with a code
	// of its own; nil leaves it to the toolkit.
	Unknown func(argument string) error
}

// Annotations are the four MCP hints. All four are always stated.
type Annotations struct {
	ReadOnly, Destructive, Idempotent, OpenWorld bool
}

// Annotations derives the hints from the effect.
func (s Spec) Annotations() Annotations {
	return Annotations{
		ReadOnly:    s.Effect == ReadOnly,
		Destructive: s.Effect == Destructive,
		Idempotent:  s.Effect == ReadOnly || s.Idempotent,
		OpenWorld:   s.OpenWorld,
	}
}

// Call is what a handler knows about the request that it serves.
type Call struct {
	// ID is the idempotency key of this call: "host-bridge:" and the JSON array of the
	// Bridge's instance id and the JSON-RPC id as the Host wrote it.
	ID string
	// Tool is the name that was called.
	Tool string
	// Progress tells the Host how far the call is, best effort: done must grow, total is
	// 0 when unknown. It is never nil and does nothing when the Host asked for no
	// progress, and it never blocks.
	Progress func(done, total float64, note string)
	// Host is who called. It is never nil.
	Host Host
	// Resumed is set when the call answers an [InputNeeded].
	Resumed *Resumed
}

// Failures is how a table renders what goes wrong, when that is not the toolkit's own form.
type Failures struct {
	// Render makes the result of a failed call. Refused arguments come with [BadCall].
	Render func(err error) Result
	// Schema describes the structured content of such a result.
	Schema json.RawMessage
}

// RenderFailures replaces the form of failures. Refused arguments then are results too, not
// JSON-RPC errors: the model sees them and can mend its call.
func (r *Registry) RenderFailures(f Failures) { r.failures = &f }

// Registry is the ordered table of tools. Register everything before the first
// [Registry.Open]; after that it is read-only and safe for concurrent use.
type Registry struct {
	tools       []*tool
	byName      map[string]*tool
	checkOutput bool
	trusted     bool
	failures    *Failures // nil means the toolkit's own form
}

type tool struct {
	spec     Spec
	declared func() *declaration // computed once
	prepare  func(args json.RawMessage) (run, error)
}

// declaration is what follows from a Spec's schemas.
type declaration struct {
	input  *schema
	output *schema // nil when Spec.Output is empty
	// publishedInput is Spec.Input without combinations at its top.
	publishedInput json.RawMessage
	// publishedOutput is Spec.Output with the failure shape as an alternative.
	publishedOutput json.RawMessage
	err             error // what is wrong with the schemas; nothing else is set then
}

// run is a handler with its decoded input.
type run func(ctx context.Context, call Call) (any, error)

// New returns an empty registry.
func New() *Registry { return &Registry{byName: make(map[string]*tool)} }

// CheckOutput makes every successful result be checked against the tool's output schema;
// a mismatch becomes a failure with code internal. Tests switch it on, the product does
// not pay for it.
func (r *Registry) CheckOutput() { r.checkOutput = true }

// TrustDeclarations makes Register not look into schemas: each is read when its tool is
// first listed or called, which a start need not wait for. The product switches it on,
// with a table that tests registered without it. A wrong schema then fails its calls with
// code internal.
func (r *Registry) TrustDeclarations() { r.trusted = true }

// Verify builds every validator and returns what is wrong with the first bad schema. It
// is for tests: a tool with a bad schema fails its calls with code internal.
func (r *Registry) Verify() error {
	for _, t := range r.tools {
		d := t.declared()
		if d.err != nil {
			return fmt.Errorf("tool %q: %w", t.spec.Name, d.err)
		}
		if _, err := d.input.resolve(); err != nil {
			return fmt.Errorf("tool %q: input schema: %w", t.spec.Name, err)
		}
		if d.output == nil {
			continue
		}
		if _, err := d.output.resolve(); err != nil {
			return fmt.Errorf("tool %q: output schema: %w", t.spec.Name, err)
		}
		if _, err := resolve(d.publishedOutput); err != nil {
			return fmt.Errorf("tool %q: published output schema: %w", t.spec.Name, err)
		}
	}
	return nil
}

// Tool is a catalogue entry as it is published.
type Tool struct {
	Spec
	// PublishedInput is Spec.Input without oneOf, anyOf and allOf at its top: there are
	// model APIs that refuse a tool, or every request with it, because of them. They are
	// still checked on every call, and the description should say them in words.
	PublishedInput json.RawMessage
	// PublishedOutput is the output schema that a Host sees: success or failure. It is
	// empty when Spec.Output is.
	PublishedOutput json.RawMessage
}

// Tools returns the catalogue in the order of registration.
func (r *Registry) Tools() []Tool {
	out := make([]Tool, len(r.tools))
	for i, t := range r.tools {
		d := t.declared()
		out[i] = Tool{Spec: t.spec, PublishedInput: d.publishedInput, PublishedOutput: d.publishedOutput}
		if d.err != nil {
			out[i].PublishedInput = anyObject
		}
	}
	return out
}

// Names returns the names of the tools in the order of registration.
func (r *Registry) Names() []string {
	out := make([]string, len(r.tools))
	for i, t := range r.tools {
		out[i] = t.spec.Name
	}
	return out
}

// anyObject is published in place of a schema that is wrong; see TrustDeclarations.
var anyObject = json.RawMessage(`{"type":"object"}`)

const (
	nameRule = "a-z first, then a-z 0-9 _ . -, at most 64 bytes"
	maxName  = 64
)

func validName(s string) bool {
	for i, c := range []byte(s) {
		switch {
		case 'a' <= c && c <= 'z':
		case i > 0 && ('0' <= c && c <= '9' || c == '_' || c == '.' || c == '-'):
		default:
			return false
		}
	}
	return s != "" && len(s) <= maxName
}

// Register adds a tool at the end of the table. In is the Go form of Spec.Input: a struct
// whose JSON fields are exactly the schema's properties, or a map, or json.RawMessage.
//
// The handler returns what becomes structuredContent: a value that marshals to a JSON
// object, or nil for {}. Its error becomes the failure of the call; see [WithRetry].
//
// Register panics when the declaration is wrong: a second tool of that name, no effect, a
// schema that is open, or a schema that does not fit In. A wrong table is a programming
// error and every start would meet it. What is wrong inside a schema, [Registry.Verify]
// finds: a test must call it.
func Register[In any](r *Registry, s Spec, h func(ctx context.Context, call Call, in In) (any, error)) {
	if err := r.add(s, reflect.TypeFor[In](), func(args json.RawMessage) (run, error) {
		var in In
		if err := strictjson.Decode(args, &in, argumentLimits); err != nil {
			return nil, err
		}
		return func(ctx context.Context, call Call) (any, error) { return h(ctx, call, in) }, nil
	}); err != nil {
		panic(fmt.Sprintf("toolkit: tool %q: %v", s.Name, err))
	}
}

func (r *Registry) add(s Spec, in reflect.Type, prepare func(json.RawMessage) (run, error)) error {
	switch {
	case !validName(s.Name):
		return fmt.Errorf("the name must be %s", nameRule)
	case r.byName[s.Name] != nil:
		return fmt.Errorf("is registered twice")
	case s.Effect < ReadOnly || s.Effect > Destructive:
		return fmt.Errorf("has no effect")
	case s.Description == "":
		return fmt.Errorf("has no description")
	}
	t := &tool{spec: s, prepare: prepare, declared: sync.OnceValue(func() *declaration { return newDeclaration(s, in, r.failureSchema()) })}
	if !r.trusted {
		if d := t.declared(); d.err != nil {
			return d.err
		}
	}
	r.tools = append(r.tools, t)
	r.byName[s.Name] = t
	return nil
}

// failureSchema describes a failed call of this table.
func (r *Registry) failureSchema() string {
	if r.failures != nil {
		return string(r.failures.Schema)
	}
	return failureSchema
}

func newDeclaration(s Spec, in reflect.Type, failure string) *declaration {
	d := &declaration{}
	if err := d.fill(s, in, failure); err != nil {
		return &declaration{err: err}
	}
	return d
}

func (d *declaration) fill(s Spec, in reflect.Type, failure string) (err error) {
	if d.input, err = declare(s.Input, false); err != nil {
		return fmt.Errorf("input schema: %w", err)
	}
	if err := d.input.fits(in); err != nil {
		return fmt.Errorf("input schema: %w", err)
	}
	if d.publishedInput, err = withoutCombinations(s.Input); err != nil {
		return fmt.Errorf("input schema: %w", err)
	}
	if len(s.Output) == 0 {
		return nil
	}
	if d.output, err = declare(s.Output, s.OpenOutput); err != nil {
		return fmt.Errorf("output schema: %w", err)
	}
	if d.publishedOutput, err = withFailure(s.Output, failure, s.OpenOutput); err != nil {
		return fmt.Errorf("output schema: %w", err)
	}
	return nil
}
