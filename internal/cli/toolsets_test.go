package cli_test

import (
	"bytes"
	"context"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/agent-knock-knock/akk/internal/cli"
)

func TestToolsetsAreChosenByNameAndTheDefaultIsTheTerminal(t *testing.T) {
	w := newWorld(t)
	w.starter(t, "p.json")
	w.env["MY_AGENT_SESSION_ID"] = "s"
	for _, c := range []struct {
		flag string
		want []cli.Toolset
	}{
		{"", []cli.Toolset{cli.ToolsetTerminal}},
		{"--toolsets=terminal", []cli.Toolset{cli.ToolsetTerminal}},
		{"--toolsets=terminal,coordination", []cli.Toolset{cli.ToolsetTerminal, cli.ToolsetCoordination}},
		{"--toolsets=coordination, terminal", []cli.Toolset{cli.ToolsetCoordination, cli.ToolsetTerminal}},
		{"--toolsets=", nil},
		{"--toolsets=terminal,", nil},
		{"--toolsets=terminal,terminal", nil},
		{"--toolsets=all", nil},
	} {
		args := []string{"host-bridge", "--profile", "p.json", "--host", "my-agent", "--host-version", "1.8.0"}
		if c.flag != "" {
			args = append(args, c.flag)
		}
		var got []cli.Toolset
		var stdout, stderr bytes.Buffer
		exit := cli.Main(t.Context(), args, strings.NewReader(""), &stdout, &stderr, cli.Deps{
			LookupEnv: func(k string) (string, bool) { v, ok := w.env[k]; return v, ok },
			HostBridge: func(_ context.Context, o cli.HostBridgeOptions, _ io.Reader, _, _ io.Writer) error {
				got = o.Toolsets
				return nil
			}})
		if refused := c.want == nil; refused != (exit != 0) || !slices.Equal(got, c.want) || refused && !strings.Contains(stderr.String(), "--toolsets") {
			t.Errorf("%q: exit %d, %v, want %v; %s", c.flag, exit, got, c.want, stderr.String())
		}
	}
}
