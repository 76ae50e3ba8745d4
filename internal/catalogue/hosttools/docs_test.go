package hosttools_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/agent-knock-knock/akk/internal/catalogue"
	"github.com/agent-knock-knock/akk/internal/testkit/golden"
	"github.com/agent-knock-knock/akk/internal/toolkit"
)

const docsHead = `# The tools

Generated from the catalogue and the schemas in ` + "`schemas/tools/`" + `; ` + "`make golden`" + ` writes it anew and a test checks it. Every input is
closed: an unknown field, a duplicate or a wrong type is refused before anything runs. A failure has one shape, with
` + "`error.code`" + `, what is wrong, and the next safe step. No argument and no result carries authority: routes, fingerprints, tokens
and paths of the Store stay inside.

`

// schema is the part of a JSON Schema that the page shows.
type schema struct {
	Type        any                `json:"type"`
	Description string             `json:"description"`
	Properties  map[string]*schema `json:"properties"`
	Required    []string           `json:"required"`
	Items       *schema            `json:"items"`
	Enum        []any              `json:"enum"`
	MinLength   *int               `json:"minLength"`
	MaxLength   *int               `json:"maxLength"`
	Minimum     *float64           `json:"minimum"`
	Maximum     *float64           `json:"maximum"`
	Exclusive   *float64           `json:"exclusiveMinimum"`
	Additional  any                `json:"additionalProperties"`
}

func TestToolsPageIsWhatTheCatalogueSays(t *testing.T) {
	var b strings.Builder
	b.WriteString(docsHead)
	tools := registry(t, true).Tools()
	b.WriteString("| Tool | Changes | In short |\n| --- | --- | --- |\n")
	for _, tool := range tools {
		first, _, _ := strings.Cut(tool.Description, ".")
		fmt.Fprintf(&b, "| [`%s`](#%s) | %s | %s |\n", short(tool.Name), tool.Name, effect(tool), cell(first))
	}
	for i, tool := range tools {
		if i == len(catalogue.Names) {
			b.WriteString("\n# The extended tools\n\nServed only with `--tools extended`.\n")
		}
		page(t, &b, tool)
	}
	golden.Equal(t, "../../../docs/TOOLS.md", b.String())
}

func page(t *testing.T, b *strings.Builder, tool toolkit.Tool) {
	t.Helper()
	a := tool.Annotations()
	fmt.Fprintf(b, "\n## %s\n\n%s\n\nreadOnly %v · destructive %v · idempotent %v · openWorld %v\n", tool.Name, tool.Description, a.ReadOnly, a.Destructive, a.Idempotent, a.OpenWorld)
	var in, out schema
	if err := json.Unmarshal(tool.Input, &in); err != nil {
		t.Fatalf("%s: %v", tool.Name, err)
	}
	if err := json.Unmarshal(tool.Output, &out); err != nil {
		t.Fatalf("%s: it has no output schema: %v", tool.Name, err)
	}
	if len(in.Properties) == 0 {
		b.WriteString("\nNo arguments.\n")
	} else {
		b.WriteString("\n| Argument | Type | Meaning |\n| --- | --- | --- |\n")
		rows(b, in)
	}
	b.WriteString("\n| Result | Type | Meaning |\n| --- | --- | --- |\n")
	rows(b, out)
}

// rows lists the properties, required ones first.
func rows(b *strings.Builder, s schema) {
	names := make([]string, 0, len(s.Properties))
	for name := range s.Properties {
		names = append(names, name)
	}
	slices.SortFunc(names, func(x, y string) int {
		if rx, ry := slices.Contains(s.Required, x), slices.Contains(s.Required, y); rx != ry {
			if rx {
				return -1
			}
			return 1
		}
		return strings.Compare(x, y)
	})
	for _, name := range names {
		p := s.Properties[name]
		mark := ""
		if slices.Contains(s.Required, name) {
			mark = " (required)"
		}
		fmt.Fprintf(b, "| `%s`%s | %s | %s |\n", name, mark, kind(p), cell(p.Description))
	}
}

func kind(s *schema) string {
	words := fmt.Sprint(s.Type)
	switch {
	case len(s.Enum) > 0:
		parts := make([]string, len(s.Enum))
		for i, e := range s.Enum {
			parts[i] = fmt.Sprintf("`%v`", e)
		}
		return strings.Join(parts, " ")
	case s.Items != nil:
		words = "list of " + kind(s.Items)
	case s.Type == nil:
		words = "any"
	}
	for _, limit := range []struct {
		word  string
		value *float64
	}{{"≥", s.Minimum}, {">", s.Exclusive}, {"≤", s.Maximum}, {"at least", float(s.MinLength)}, {"at most", float(s.MaxLength)}} {
		if limit.value != nil {
			words += fmt.Sprintf(", %s %v", limit.word, *limit.value)
		}
	}
	return words
}

func float(n *int) *float64 {
	if n == nil {
		return nil
	}
	f := float64(*n)
	return &f
}

func effect(t toolkit.Tool) string {
	switch t.Effect {
	case toolkit.ReadOnly:
		return "nothing"
	case toolkit.Destructive:
		return "may end or discard something"
	}
	return "adds or moves state"
}

func short(name string) string { return strings.TrimPrefix(name, catalogue.Prefix) }

// cell is a text as one table cell.
func cell(s string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(s), " "), "|", `\|`)
}
