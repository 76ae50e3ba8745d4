package ledgertools

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/toolkit"
)

// Mount adds the tools to another server's table, so that one MCP session offers them
// beside its own. There the rules of that table hold: arguments are closed, and a result
// has no text of its own. Schemas, effects and structured results are the same.
func (t *Tools) Mount(r *toolkit.Registry) error {
	var all []Declaration
	if err := json.Unmarshal(t.offer.Catalogue(), &all); err != nil {
		return fmt.Errorf("ledger catalogue: %w", err)
	}
	for _, d := range all {
		schema, err := closed(d.InputSchema)
		if err != nil {
			return fmt.Errorf("ledger tool %s: %w", d.Name, err)
		}
		s := toolkit.Spec{Name: d.Name, Title: d.Title, Description: d.Description, Input: schema, Effect: toolkit.Mutating, Idempotent: d.Annotations.Idempotent, Meta: d.Meta}
		switch {
		case d.Annotations.ReadOnly:
			s.Effect = toolkit.ReadOnly
		case d.Annotations.Destructive:
			s.Effect = toolkit.Destructive
		}
		toolkit.Register(r, s, func(ctx context.Context, call toolkit.Call, in json.RawMessage) (any, error) {
			out := t.Call(ctx, call.Tool, in)
			if out.IsError {
				return nil, out.failure()
			}
			return out.Value, nil
		})
	}
	return nil
}

// failure is the error of an envelope, for a table that makes its own.
func (o Outcome) failure() error {
	value, _ := o.Value.(map[string]any)
	p, _ := value["error"].(problem)
	err := fault.New(p.Code, "ledger", "%s", p.Message)
	if p.Retryable {
		return toolkit.WithRetry(err, toolkit.RetrySafe)
	}
	return err
}

// closed says additionalProperties: false wherever a schema lists properties.
func closed(raw json.RawMessage) (json.RawMessage, error) {
	var tree map[string]any
	if err := json.Unmarshal(raw, &tree); err != nil {
		return nil, err
	}
	closeObjects(tree, true)
	return Marshal(tree)
}

func closeObjects(node map[string]any, top bool) {
	properties, lists := node["properties"].(map[string]any)
	if _, said := node["additionalProperties"]; !said && (lists || top) {
		node["additionalProperties"] = false
	}
	for _, p := range properties {
		if sub, ok := p.(map[string]any); ok {
			closeObjects(sub, false)
		}
	}
	if items, ok := node["items"].(map[string]any); ok {
		closeObjects(items, false)
	}
}
