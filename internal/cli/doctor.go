package cli

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/agent-knock-knock/akk/internal/doctor"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/profile"
)

// DoctorOptions says where the machine's checks look. StoreDir is absolute, or "" when no
// Store directory is known: the rest is checked all the same.
type DoctorOptions struct{ StoreDir string }

func newDoctor(deps Deps) *cobra.Command {
	var selection, host, hostVersion, storeDir onceFlag
	var asJSON, send bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check this machine, every running Bridge, and whether a Host can run one",
		Long: "Check the install, the Store, and every running Bridge of this user with its workers.\n" +
			"With --host-profile, --host and --host-version: also check the Profile, the exact Host and version, the scope, the trusted\n" +
			"session and the callback program; run that in the environment that will start the Bridge.\n" +
			"It changes nothing and never shows the session. With --send-test, and when all of the Host is well, it runs the callback program once with\n" +
			"a message that says that it is a test, through the worker and the limits of a Bridge, and shows how the answer is classified; the\n" +
			"machine is not checked then.\n" +
			"Exit: 0 healthy, 1 problems, 2 not all could be checked.",
		Example: "  agent-knock-knock doctor\n" +
			"  MY_AGENT_SESSION_ID=... agent-knock-knock doctor --host-profile ./my-agent.json --host my-agent --host-version 1.8.0",
		Args: argCount(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			out := outputFor(cmd, asJSON, deps)
			if !selection.set && !host.set && !hostVersion.set && !send && deps.Machine != nil {
				r := checkMachine(cmd.Context(), storeDir.value, deps)
				return writeReport(cmd, r.Checks, r.Bridges, r, out)
			}
			if err := requireFlags(cmd, "host-profile", "host", "host-version"); err != nil {
				return err
			}
			report := doctor.HostMode(cmd.Context(), selection.value, host.value, hostVersion.value, deps.LookupEnv)
			switch {
			case send && report.OK:
				admitted, err := profile.Admit(selection.value, host.value, hostVersion.value, deps.LookupEnv)
				if err != nil {
					return err
				}
				deps.SendTest(cmd.Context(), HostBridgeOptions{Admitted: admitted, Host: host.value, HostVersion: hostVersion.value}, &report)
			case !send && deps.Machine != nil:
				report = report.WithMachine(checkMachine(cmd.Context(), storeDir.value, deps))
			}
			return writeReport(cmd, report.Checks, report.Bridges, report, out)
		},
	}
	f := cmd.Flags()
	f.Var(&selection, "host-profile", "Host Profile: a path or a built-in id")
	f.Var(&host, "host", "exact Host id; with --host-profile")
	f.Var(&hostVersion, "host-version", "exact SemVer version of the Host; with --host-profile")
	f.Var(&storeDir, "store-dir", "Store directory (default ~/.agent-knock-knock/store)")
	if deps.SendTest != nil {
		f.BoolVar(&send, "send-test", false, "run the callback program once with a test message; with --host-profile")
	}
	addJSONFlag(cmd, &asJSON)
	return cmd
}

// checkMachine checks the machine with the Store that is named, or the default one. Without
// either the Store is not checked, and all else is.
func checkMachine(ctx context.Context, dir string, deps Deps) doctor.MachineReport {
	path, err := storePath(dir, deps)
	if err != nil {
		path = ""
	}
	return deps.Machine(ctx, DoctorOptions{StoreDir: path})
}

// interrupted is the end of a command that was told to end: what was not asked to the end
// would look ill.
func interrupted(cmd *cobra.Command) error {
	if err := cmd.Context().Err(); err != nil {
		return fault.Wrap(err, CodeUnchecked, "cli."+cmd.Name(), "%s was interrupted", cmd.Name()).WithHint("run it again, and let it end")
	}
	return nil
}

// writeReport writes the checks and the Bridges for people, or the whole document for
// programs, and says by the error which exit it means.
func writeReport(cmd *cobra.Command, checks []doctor.Check, bridges []doctor.BridgeState, document any, out Output) error {
	if err := interrupted(cmd); err != nil {
		return err
	}
	if out.JSON {
		if err := writeJSON(cmd.OutOrStdout(), document); err != nil {
			return err
		}
		return verdict(checks)
	}
	if err := writeChecks(cmd.OutOrStdout(), checks, out); err != nil {
		return err
	}
	if len(bridges) > 0 {
		if err := writeAll(cmd.OutOrStdout(), []byte("\n")); err != nil {
			return err
		}
		if err := writeWorkers(cmd.OutOrStdout(), bridges, out, time.Now()); err != nil {
			return err
		}
	}
	return verdict(checks)
}

// verdict is the error of the worst of the checks: a problem is worse than one that could
// not be made.
func verdict(checks []doctor.Check) error {
	if names := doctor.Named(checks, doctor.Failed); len(names) > 0 {
		return fault.New(CodeDoctor, "cli.doctor", "%d of %d checks failed: %s", len(names), len(checks), strings.Join(names, ", ")).
			WithHint("the report on stdout says what to do for each")
	}
	if names := doctor.Named(checks, doctor.Unchecked); len(names) > 0 {
		return fault.New(CodeUnchecked, "cli.doctor", "%d of %d checks could not be made: %s", len(names), len(checks), strings.Join(names, ", ")).
			WithHint("the report on stdout says why")
	}
	return nil
}

func writeChecks(w io.Writer, checks []doctor.Check, out Output) error {
	table := NewTable("CHECK", "STATUS", "DETAIL")
	for _, c := range checks {
		status := Green(string(c.Status))
		switch c.Status {
		case doctor.Failed, doctor.Unchecked:
			status = Red(string(c.Status))
		case doctor.Warned:
			status = Plain(string(c.Status))
		}
		table.Row(Plain(c.Name), status, Plain(c.Detail))
		if c.Hint != "" {
			table.Row(Plain(""), Plain(""), Dim("-> "+c.Hint))
		}
	}
	return table.Write(w, out)
}

// MachineFunc makes the report of this machine; BridgesFunc only its Bridges.
type (
	MachineFunc func(ctx context.Context, o DoctorOptions) doctor.MachineReport
	BridgesFunc func(ctx context.Context) ([]doctor.BridgeState, error)
)
