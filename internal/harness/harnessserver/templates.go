package harnessserver

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/harness"
	"github.com/agent-knock-knock/akk/internal/strictjson"
)

// templateLimits allow null: five fields of a template are nullable.
var templateLimits = strictjson.Limits{MaxBytes: maxBody, MaxDepth: 64, AllowNull: true}

// registerTemplate takes {"template": {...}} or the fields themselves.
func (s *Server) registerTemplate(ctx context.Context, body []byte) (any, error) {
	var outer struct {
		Template json.RawMessage `json:"template"`
	}
	var top map[string]json.RawMessage
	if err := json.Unmarshal(body, &top); err != nil || top == nil {
		return nil, harness.Fail(err, harness.InvalidJSON, "the body must be one JSON object")
	}
	if _, wrapped := top["template"]; wrapped {
		if err := decode(body, []string{"template"}, &outer, limits); err != nil {
			return nil, err
		}
		body = outer.Template
	}
	t, err := decodeTemplate(body)
	if err != nil {
		return nil, err
	}
	t, err = s.sessions.Register(ctx, t)
	if err != nil {
		return nil, err
	}
	return map[string]any{"template": t, "created": true}, nil
}

// decodeTemplate reads the fields that may be registered. A null is the same as an absent
// field.
func decodeTemplate(body []byte) (harness.Template, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil || fields == nil {
		return harness.Template{}, harness.Refuse(harness.InvalidTemplate, "template must be a JSON object")
	}
	for _, key := range sorted(fields) {
		switch {
		case key == "host_network":
			return harness.Template{}, harness.Refuse(harness.InvalidTemplate, "a template has network_mode instead of host_network").
				Advise("use network_mode none, host or proxy")
		case !slices.Contains(harness.TemplateKeys, key):
			return harness.Template{}, harness.Refuse(harness.InvalidTemplate, "a template has no field %q", key).Advise("leave it out")
		case string(fields[key]) == "null":
			delete(fields, key)
		}
	}
	// Duplicate keys are found in the text itself, before its nulls are taken out.
	var raw map[string]json.RawMessage
	if err := strictjson.Decode(body, &raw, templateLimits); err != nil {
		return harness.Template{}, templateFault(err)
	}
	text, err := json.Marshal(fields)
	if err != nil {
		return harness.Template{}, err
	}
	var t harness.Template
	if err := strictjson.Decode(text, &t, templateLimits); err != nil {
		return t, templateFault(err)
	}
	return t, nil
}

func templateFault(err error) error {
	_, msg, _ := fault.Public(err)
	return harness.Fail(err, harness.InvalidTemplate, "%s", msg)
}

func (s *Server) searchTemplate(ctx context.Context, in harness.Search) (any, error) {
	found, total, err := s.sessions.FindTemplates(ctx, in)
	if err != nil {
		return nil, err
	}
	return map[string]any{"templates": found, "count": total, "truncated": total > len(found)}, nil
}

func (s *Server) deleteTemplate(ctx context.Context, in struct {
	Name string `json:"name"`
}) (any, error) {
	if err := s.sessions.DeleteTemplate(ctx, in.Name); err != nil {
		return nil, err
	}
	return map[string]any{"deleted": true, "name": in.Name}, nil
}
