package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// Toolset is a family of tools that a Bridge offers.
type Toolset string

// The toolsets, in the order in which a Host sees their tools.
const (
	ToolsetTerminal     Toolset = "terminal"
	ToolsetCoordination Toolset = "coordination"
)

var toolsets = []Toolset{ToolsetTerminal, ToolsetCoordination}

// Serves reports whether the Bridge offers the tools of t.
func (o HostBridgeOptions) Serves(t Toolset) bool { return slices.Contains(o.Toolsets, t) }

// parseToolsets reads --toolsets: names with commas between them, each once.
func parseToolsets(cmd *cobra.Command, value string) ([]Toolset, error) {
	if value == "" && !cmd.Flag("toolsets").Changed {
		return []Toolset{ToolsetTerminal}, nil
	}
	var chosen []Toolset
	for name := range strings.SplitSeq(value, ",") {
		t := Toolset(strings.TrimSpace(name))
		switch {
		case !slices.Contains(toolsets, t):
			return nil, usage(cmd, "--toolsets takes %s, with commas between them", names(toolsets))
		case slices.Contains(chosen, t):
			return nil, usage(cmd, "--toolsets names %s twice", t)
		}
		chosen = append(chosen, t)
	}
	return chosen, nil
}

func names(sets []Toolset) string {
	out := make([]string, len(sets))
	for i, s := range sets {
		out[i] = string(s)
	}
	return strings.Join(out, ", ")
}
