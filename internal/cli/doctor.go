package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/agent-knock-knock/akk/internal/doctor"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/profile"
)

// DoctorOptions is a checked command line of doctor without a Profile, and of workers.
type DoctorOptions struct{ StoreDir string }

func newDoctor(deps Deps) *cobra.Command {
	var selection, host, hostVersion, storeDir onceFlag
	var asJSON, send bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check this machine, every running Bridge, and whether a Host can run one",
		Long: "Without a Profile: check the install, the Store, and every running Bridge of this user with its workers.\n" +
			"With --host-profile, --host and --host-version: check the Profile, the exact Host and version, the scope, the trusted\n" +
			"session and the callback program; run that in the environment that will start the Bridge.\n" +
			"It changes nothing and never shows the session. With --send-test, and when all else is well, it runs the callback program once with\n" +
			"a message that says that it is a test, through the worker and the limits of a Bridge, and shows how the answer is classified.\n" +
			"Exit: 0 healthy, 1 problems, 2 not all could be checked.",
		Example: "  agent-knock-knock doctor\n" +
			"  MY_AGENT_SESSION_ID=... agent-knock-knock doctor --host-profile ./my-agent.json --host my-agent --host-version 1.8.0",
		Args: argCount(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			out := outputFor(cmd, asJSON, deps)
			if !selection.set && !host.set && !hostVersion.set && !send && deps.Machine != nil {
				dir, err := storePath(storeDir.value, deps)
				if err != nil {
					return err
				}
				return machine(cmd, deps.Machine(cmd.Context(), DoctorOptions{StoreDir: dir}), out)
			}
			if err := requireFlags(cmd, "host-profile", "host", "host-version"); err != nil {
				return err
			}
			report := doctor.HostMode(cmd.Context(), selection.value, host.value, hostVersion.value, deps.LookupEnv)
			if send && report.OK {
				admitted, err := profile.Admit(selection.value, host.value, hostVersion.value, deps.LookupEnv)
				if err != nil {
					return err
				}
				deps.SendTest(cmd.Context(), HostBridgeOptions{Admitted: admitted, Host: host.value, HostVersion: hostVersion.value}, &report)
			}
			if err := writeReport(cmd, report.Checks, report, out); err != nil {
				return err
			}
			if report.OK {
				return nil
			}
			return failed(report.Failures(), len(report.Checks))
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

func failed(names []string, of int) error {
	return fault.New(CodeDoctor, "cli.doctor", "%d of %d checks failed: %s", len(names), of, strings.Join(names, ", ")).
		WithHint("the report on stdout says what to do for each")
}

// machine writes the report of a machine and says by the error which exit it means.
func machine(cmd *cobra.Command, r doctor.MachineReport, out Output) error {
	if err := writeReport(cmd, r.Checks, r, out); err != nil {
		return err
	}
	if !out.JSON && len(r.Bridges) > 0 {
		if err := writeAll(cmd.OutOrStdout(), []byte("\n")); err != nil {
			return err
		}
		if err := writeWorkers(cmd.OutOrStdout(), r.Bridges, out, time.Now()); err != nil {
			return err
		}
	}
	if names := r.Failures(); len(names) > 0 {
		return failed(names, len(r.Checks))
	}
	if names := r.Unknown(); len(names) > 0 {
		return fault.New(CodeUnchecked, "cli.doctor", "%d of %d checks could not be made: %s", len(names), len(r.Checks), strings.Join(names, ", ")).
			WithHint("the report on stdout says why")
	}
	return nil
}

// writeReport writes the checks for people, or the whole document for programs.
func writeReport(cmd *cobra.Command, checks []doctor.Check, document any, out Output) error {
	if out.JSON {
		return writeJSON(cmd.OutOrStdout(), document)
	}
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
	return table.Write(cmd.OutOrStdout(), out)
}

func newWorkers(deps Deps) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "workers",
		Short: "List the worker processes of every running Bridge",
		Long:  "List each akk-monitor and akk-callback of every running Bridge of this user: what it serves, its process, age, memory, last sign of life and restarts.",
		Example: "  agent-knock-knock workers\n" +
			"  agent-knock-knock workers --json",
		Args: argCount(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			bridges, err := deps.Bridges(cmd.Context())
			if err != nil {
				return err
			}
			out := outputFor(cmd, asJSON, deps)
			if out.JSON {
				return writeJSON(cmd.OutOrStdout(), map[string]any{"bridges": bridges})
			}
			if len(bridges) == 0 {
				return writeAll(cmd.OutOrStdout(), []byte("No Bridge runs now. A Host starts one when it needs it.\n"))
			}
			return writeWorkers(cmd.OutOrStdout(), bridges, out, time.Now())
		},
	}
	addJSONFlag(cmd, &asJSON)
	return cmd
}

func writeWorkers(w io.Writer, bridges []doctor.BridgeState, out Output, now time.Time) error {
	table := NewTable("BRIDGE", "WORKER", "SERVES", "STATE", "PID", "AGE", "MEMORY", "HEARD", "RESTARTS", "PROBLEM")
	for _, b := range bridges {
		state := Green("serving")
		if b.Problem != "" {
			state = Red("problem")
		}
		table.Row(Plain(b.BridgeID), Plain("bridge"), Plain(b.Host), state, number(b.PID), Plain(span(now.Sub(b.StartedAt), b.StartedAt)), memory(b.Memory), Plain(""), Plain(""), Red(b.Problem))
		for _, k := range b.Workers {
			state := Green(k.State)
			if k.Problem != "" {
				state = Red(k.State)
			}
			problem := k.Problem
			if problem == "" {
				problem = k.LastError
			}
			table.Row(Plain(""), Plain(k.Name), Plain(k.Serves), state, number(k.PID), Plain(short(time.Duration(k.AgeSeconds)*time.Second)), memory(k.Memory),
				Plain(span(now.Sub(k.LastHeartbeat), k.LastHeartbeat)), Plain(fmt.Sprint(k.Restarts)), Red(problem))
		}
	}
	return table.Write(w, out)
}

func number(n int) Cell {
	if n == 0 {
		return Dim("-")
	}
	return Plain(fmt.Sprint(n))
}

func memory(n uint64) Cell {
	if n == 0 {
		return Dim("-")
	}
	return Plain(fmt.Sprintf("%.1fM", float64(n)/(1<<20)))
}

// span is how long ago something was; a moment that never was is "-".
func span(d time.Duration, at time.Time) string {
	if at.IsZero() {
		return "-"
	}
	return short(d)
}

// short is a duration in one unit, such as 42s, 7m, 3h, 9d.
func short(d time.Duration) string {
	switch {
	case d < time.Second:
		return "0s"
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", d/time.Hour)
	}
	return fmt.Sprintf("%dd", d/(24*time.Hour))
}

// MachineFunc makes the report of this machine; BridgesFunc only its Bridges.
type (
	MachineFunc func(ctx context.Context, o DoctorOptions) doctor.MachineReport
	BridgesFunc func(ctx context.Context) ([]doctor.BridgeState, error)
)
