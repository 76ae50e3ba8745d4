package ledgertools

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/agent-knock-knock/akk/internal/fault"
)

// discoveryTool is the only one that reads files.
const discoveryTool = "skills.discover"

// Policy says what a host leaves of the ledger's server. The zero value leaves everything;
// each switch only takes away, so that their order cannot matter.
type Policy struct {
	// ReadOnly leaves the tools that change nothing.
	ReadOnly bool
	// Only leaves the tools that are named, as projects.get or as a family, assignments.*.
	// nil is no list; a list without an entry is refused, because it may be a mistake.
	Only []string
	// NoView offers neither the view, nor links to it, nor its protocol extension.
	NoView bool
	// NoDiscovery takes away skills.discover, the one tool that reads files.
	NoDiscovery bool
}

// Offer is what a [Policy] leaves. nil is everything.
type Offer struct {
	catalogue []byte
	names     map[string]bool
	view      bool
}

// Offer works out what is left. A list that names a tool or a family that does not exist, and
// switches that leave no tool, are [fault.Invalid].
func (p Policy) Offer() (*Offer, error) {
	if p.Only == nil && !p.ReadOnly && !p.NoView && !p.NoDiscovery {
		return nil, nil // a start need not decode the catalogue for that
	}
	all, err := Declarations()
	if err != nil {
		return nil, fmt.Errorf("ledger catalogue: %w", err)
	}
	if err := p.check(all); err != nil {
		return nil, err
	}
	var raw, kept []json.RawMessage
	if err := json.Unmarshal(Catalogue(), &raw); err != nil {
		return nil, fmt.Errorf("ledger catalogue: %w", err)
	}
	o := &Offer{names: map[string]bool{}, view: !p.NoView}
	for i, d := range all {
		if !p.leaves(d.Name, d.Annotations.ReadOnly) {
			continue
		}
		if p.NoView && d.Meta != nil {
			if raw[i], err = withoutView(raw[i]); err != nil {
				return nil, fmt.Errorf("ledger tool %s: %w", d.Name, err)
			}
		}
		o.names[d.Name] = true
		kept = append(kept, raw[i])
	}
	if len(kept) == 0 {
		return nil, fault.New(fault.Invalid, "ledger", "the list of tools and the other switches leave no tool")
	}
	o.catalogue, err = Marshal(kept)
	return o, err
}

// leaves is the rule for one tool.
func (p Policy) leaves(name string, readOnly bool) bool {
	listed := func(entry string) bool { return matches(entry, name) }
	return (readOnly || !p.ReadOnly) && (name != discoveryTool || !p.NoDiscovery) && (p.Only == nil || slices.ContainsFunc(p.Only, listed))
}

// matches knows names and families only: a * by itself would be a list that chooses nothing.
func matches(entry, tool string) bool {
	family, ok := strings.CutSuffix(entry, ".*")
	if !ok {
		return entry == tool
	}
	return family != "" && strings.HasPrefix(tool, family+".")
}

func (p Policy) check(all []Declaration) error {
	for _, entry := range p.Only {
		if !slices.ContainsFunc(all, func(d Declaration) bool { return matches(entry, d.Name) }) {
			return fault.New(fault.Invalid, "ledger", "no tool is named %q", oneLine(entry)).WithHint("name one as in tools/list, or a family such as assignments.*")
		}
	}
	return nil
}

// withoutView takes the link to the view from a declaration.
func withoutView(raw json.RawMessage) (json.RawMessage, error) {
	var tool, meta map[string]json.RawMessage
	if err := json.Unmarshal(raw, &tool); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(tool["_meta"], &meta); err != nil {
		return nil, err
	}
	delete(meta, "ui")
	delete(tool, "_meta")
	if len(meta) > 0 {
		b, err := Marshal(meta)
		if err != nil {
			return nil, err
		}
		tool["_meta"] = b
	}
	return Marshal(tool)
}

// Catalogue is the JSON array of the declarations that are left, in their order.
func (o *Offer) Catalogue() []byte {
	if o == nil {
		return Catalogue()
	}
	return o.catalogue
}

// Has reports whether a tool is there and left.
func (o *Offer) Has(name string) bool {
	if o == nil {
		return Known(name)
	}
	return o.names[name]
}

// View reports whether the view is offered.
func (o *Offer) View() bool { return o == nil || o.view }

// With returns the tools of the same ledger as far as o leaves them.
func (t *Tools) With(o *Offer) *Tools {
	narrowed := *t
	narrowed.offer = o
	return &narrowed
}
