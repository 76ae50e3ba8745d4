package toolkit

import (
	"fmt"
	"slices"
)

// Arrange puts the tools into the order of names, which must know each registered tool. A
// name without a tool is skipped: it belongs to a set that this registry does not serve.
func (r *Registry) Arrange(names []string) error {
	place := make(map[string]int, len(names))
	for i, n := range names {
		if _, twice := place[n]; twice {
			return fmt.Errorf("toolkit: %q has two places", n)
		}
		place[n] = i
	}
	for _, t := range r.tools {
		if _, ok := place[t.spec.Name]; !ok {
			return fmt.Errorf("toolkit: tool %q has no place", t.spec.Name)
		}
	}
	slices.SortStableFunc(r.tools, func(a, b *tool) int { return place[a.spec.Name] - place[b.spec.Name] })
	return nil
}
