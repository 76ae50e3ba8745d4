package cli

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/pane"
)

func newPane(deps Deps) *cobra.Command {
	var name, dir, socket onceFlag
	var hooks, attach, asJSON bool
	cmd := &cobra.Command{
		Use:   "pane codex|claude [flags] [-- agent arguments]",
		Short: "Start an agent in a tmux session, in the mode that can be driven best",
		Long: "Start a coding agent for yourself in a new tmux session. It is your agent, as if you had started it by hand, in the mode\n" +
			"in which a Host can do most with it:\n" +
			"  codex   on an app server of its own that lives and dies with the pane: requests, approvals and the end of a turn go\n" +
			"          over its socket, while you watch and type in the same pane. An older Codex runs embedded.\n" +
			"  claude  with a session id that is known in advance and, with --hooks, a settings file whose hooks wake the monitors.\n" +
			"The command prints exactly what it ran, and how to attach. When the pane ends, nothing of it stays.",
		Example: "  agent-knock-knock pane codex --dir ~/src/shop --attach\n" +
			"  agent-knock-knock pane claude --name review --hooks\n" +
			"  agent-knock-knock pane codex -- --model gpt-5 --search",
		Args: func(cmd *cobra.Command, args []string) error {
			before := args
			if dash := cmd.ArgsLenAtDash(); dash >= 0 {
				before = args[:dash]
			}
			switch {
			case len(before) == 0:
				return usage(cmd, "say which agent: %s", strings.Join(pane.Agents, " or "))
			case !slices.Contains(pane.Agents, before[0]):
				return usage(cmd, "there is no agent %q, only %s", before[0], strings.Join(pane.Agents, " and "))
			case len(before) > 1:
				return usage(cmd, "unexpected argument %q; arguments for the agent come after --", before[1])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if attach && !deps.IsTerminal(cmd.OutOrStdout()) {
				return usage(cmd, "--attach needs a terminal")
			}
			if socket.set && socket.value == "" || name.set && name.value == "" || dir.set && dir.value == "" {
				return usage(cmd, "a flag has an empty value")
			}
			r := pane.Request{Agent: args[0], Name: name.value, Dir: dir.value, Hooks: hooks, Args: args[1:], Env: os.Environ()}
			var err error
			if r.Socket, err = absolute(socket.value); err != nil {
				return err
			}
			if r.Self, err = os.Executable(); err != nil {
				return fault.Wrap(err, fault.Unavailable, "cli.pane", "our own executable cannot be found").WithHint("install agent-knock-knock again")
			}
			report, err := deps.Pane(cmd.Context(), r)
			if err != nil {
				return err
			}
			out := outputFor(cmd, asJSON, deps)
			if out.JSON {
				err = writeJSON(cmd.OutOrStdout(), struct {
					Schema  string `json:"schema"`
					Version int    `json:"version"`
					pane.Report
				}{Name + "/pane", 1, report})
			} else {
				err = writePane(cmd.OutOrStdout(), report)
			}
			if err != nil || !attach {
				return err
			}
			return deps.Attach(cmd.Context(), report.AttachArg)
		},
	}
	f := cmd.Flags()
	f.Var(&name, "name", "name of the tmux session (default: the agent's name, numbered if it is taken)")
	f.Var(&dir, "dir", "working directory of the agent (default: the current one)")
	f.BoolVar(&hooks, "hooks", false, "claude: hooks that wake the monitors sooner; they decide nothing")
	f.BoolVar(&attach, "attach", false, "go to the session at once")
	f.Var(&socket, "tmux-socket", "tmux server to use, by its socket (default: tmux's own choice)")
	addJSONFlag(cmd, &asJSON)
	return cmd
}

// writePane is for a person: what runs, what was run, where it is.
func writePane(w io.Writer, r pane.Report) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s runs in the tmux session %s, mode %s, in %s\n", r.Agent, r.Version, r.Session, r.Mode, r.Workspace)
	for _, note := range r.Notes {
		fmt.Fprintf(&b, "note: %s\n", note)
	}
	b.WriteString("\nWhat was run:\n")
	for i, line := range r.Commands {
		indent := "  "
		if i > 0 {
			indent = "    "
		}
		fmt.Fprintf(&b, "%s%s\n", indent, line)
	}
	fmt.Fprintf(&b, "\nAttach:\n  %s\n", r.Attach)
	return writeAll(w, []byte(b.String()))
}
