package toolkit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/redact"
	"github.com/agent-knock-knock/akk/internal/strictjson"
)

// BadCall is the code of a call that was refused before anything ran: the transport
// answers it with the JSON-RPC error -32602.
const BadCall fault.Code = "bad_call"

const (
	// MaxArguments bounds the JSON of one call's arguments.
	MaxArguments = 2 << 20
	maxDepth     = 32
	// maxShown is the most bytes of a name or rule that a message repeats.
	maxShown = 80
)

var argumentLimits = strictjson.Limits{MaxBytes: MaxArguments, MaxDepth: maxDepth}

// check decodes args for the tool and holds them against its schema. Nothing has run
// when it refuses.
func (t *tool) check(args json.RawMessage) (run, error) {
	if trimmed := bytes.TrimSpace(args); len(trimmed) == 0 {
		args = json.RawMessage("{}")
	} else if trimmed[0] != '{' {
		return nil, t.refuse("arguments must be a JSON object")
	}
	d := t.declared()
	if d.err != nil {
		return nil, fault.Wrap(d.err, fault.Internal, "toolkit.call", "%s is declared wrongly", t.spec.Name)
	}
	var loose map[string]json.RawMessage
	if err := strictjson.Decode(args, &loose, argumentLimits); err != nil {
		return nil, t.refuseStrict(err)
	}
	if err := t.checkNames(d, loose); err != nil {
		return nil, err
	}
	ready, err := t.prepare(args)
	if err != nil {
		return nil, t.refuseStrict(err)
	}
	var instance map[string]any
	if err := json.Unmarshal(args, &instance); err != nil {
		return nil, t.refuse("arguments hold a number out of range")
	}
	valid, err := d.input.resolve()
	if err != nil {
		return nil, fault.Wrap(err, fault.Internal, "toolkit.call", "%s has a bad input schema", t.spec.Name)
	}
	if err := valid.Validate(instance); err != nil {
		return nil, t.refuse("%s", explain(valid.Schema(), d.input.names, instance))
	}
	return ready, nil
}

func (t *tool) refuse(format string, args ...any) error {
	return fault.New(BadCall, "toolkit.call", "%s: %s", t.spec.Name, fmt.Sprintf(format, args...))
}

// refuseStrict passes on what strictjson says: a path and a rule, never a value.
func (t *tool) refuseStrict(err error) error {
	_, msg, _ := fault.Public(err)
	return t.refuse("arguments %s", msg)
}

// checkNames refuses unknown and missing properties in words that help a model.
func (t *tool) checkNames(d *declaration, args map[string]json.RawMessage) error {
	var unknown []string
	for name := range args {
		if _, known := slices.BinarySearch(d.input.names, name); !known {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 {
		slices.Sort(unknown)
		if t.spec.Unknown != nil {
			if err := t.spec.Unknown(unknown[0]); err != nil {
				return err
			}
		}
		takes := "it takes none"
		if len(d.input.names) > 0 {
			takes = "it takes " + strings.Join(d.input.names, ", ")
		}
		return t.refuse("unknown argument %s; %s", shown(unknown[0]), takes)
	}
	for _, name := range d.input.required {
		if _, given := args[name]; !given {
			return t.refuse("argument %s is required", shown(name))
		}
	}
	return nil
}

// explain finds the property that is wrong and says by which rule. The validator's own
// text repeats values, so it is not used.
func explain(root *jsonschema.Schema, names []string, instance map[string]any) string {
	for _, name := range names {
		value, given := instance[name]
		if !given {
			continue
		}
		rule := root.Properties[name]
		one, err := rule.Resolve(nil)
		if err != nil { // it refers to $defs of the root
			continue
		}
		if one.Validate(value) != nil {
			return fmt.Sprintf("argument %s %s", shown(name), requirement(rule))
		}
	}
	switch {
	case len(root.OneOf) > 0:
		return "the arguments do not go together: exactly one of " + choices(root.OneOf) + " must hold"
	case len(root.AnyOf) > 0:
		return "the arguments do not go together: at least one of " + choices(root.AnyOf) + " must hold"
	}
	return "the arguments do not match the tool's input schema"
}

// requirement states what a schema asks of a value.
func requirement(s *jsonschema.Schema) string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	switch {
	case s.Const != nil:
		add("must be %s", compactJSON(*s.Const))
	case len(s.Enum) > 0:
		var values []string
		for _, e := range s.Enum {
			values = append(values, compactJSON(e))
		}
		add("must be one of %s", strings.Join(values, ", "))
	case s.Type != "":
		add("must be of type %s", s.Type)
	case len(s.Types) > 0:
		add("must be of type %s", strings.Join(s.Types, " or "))
	}
	if s.Pattern != "" {
		add("must match %s", shown(s.Pattern))
	}
	if s.MinLength != nil {
		add("must have at least %d characters", *s.MinLength)
	}
	if s.MaxLength != nil {
		add("must have at most %d characters", *s.MaxLength)
	}
	if s.Minimum != nil {
		add("must be at least %v", *s.Minimum)
	}
	if s.ExclusiveMinimum != nil {
		add("must be above %v", *s.ExclusiveMinimum)
	}
	if s.Maximum != nil {
		add("must be at most %v", *s.Maximum)
	}
	if s.ExclusiveMaximum != nil {
		add("must be below %v", *s.ExclusiveMaximum)
	}
	if s.MinItems != nil {
		add("must have at least %d items", *s.MinItems)
	}
	if s.MaxItems != nil {
		add("must have at most %d items", *s.MaxItems)
	}
	if s.UniqueItems {
		add("must not repeat an item")
	}
	if len(parts) == 0 {
		return "does not match its schema"
	}
	return strings.Join(parts, " and ")
}

// choices renders branches that only require fields, such as (turn_id) or (session_id).
func choices(branches []*jsonschema.Schema) string {
	var out []string
	for _, b := range branches {
		switch {
		case len(b.Required) > 0:
			out = append(out, "("+strings.Join(b.Required, " and ")+")")
		case b.Not != nil:
			out = append(out, "(none of the others)")
		default:
			out = append(out, "(another form)")
		}
	}
	return strings.Join(out, ", ")
}

func compactJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return "another value"
	}
	return shown(string(b))
}

func shown(s string) string { return redact.Line(s, maxShown) }
