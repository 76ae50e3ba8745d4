package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/agent-knock-knock/akk/internal/doctor"
	"github.com/agent-knock-knock/akk/internal/fault"
)

func newDoctor(deps Deps) *cobra.Command {
	var selection, host, hostVersion onceFlag
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check whether this Host can run the Bridge",
		Long: "Check the Profile, the exact Host and version, the scope, the trusted session and the callback program. Run it in\n" +
			"the environment that will start the Bridge. It sends no callback, starts nothing and never shows the session.",
		Example: "  MY_AGENT_SESSION_ID=... agent-knock-knock doctor --host-profile ./my-agent.json --host my-agent --host-version 1.8.0",
		Args:    argCount(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := requireFlags(cmd, "host-profile", "host", "host-version"); err != nil {
				return err
			}
			report := doctor.HostMode(cmd.Context(), selection.value, host.value, hostVersion.value, deps.LookupEnv)
			if err := writeReport(cmd, report, outputFor(cmd, asJSON, deps)); err != nil {
				return err
			}
			if report.OK {
				return nil
			}
			failed := report.Failures()
			return fault.New(CodeDoctor, "cli.doctor", "%d of %d checks failed: %s", len(failed), len(report.Checks), strings.Join(failed, ", ")).
				WithHint("the report on stdout says what to do for each")
		},
	}
	f := cmd.Flags()
	f.Var(&selection, "host-profile", "Host Profile: a path or a built-in id (required)")
	f.Var(&host, "host", "exact Host id (required)")
	f.Var(&hostVersion, "host-version", "exact SemVer version of the Host (required)")
	addJSONFlag(cmd, &asJSON)
	return cmd
}

func writeReport(cmd *cobra.Command, r doctor.Report, out Output) error {
	if out.JSON {
		return writeJSON(cmd.OutOrStdout(), r)
	}
	table := NewTable("CHECK", "STATUS", "DETAIL")
	for _, c := range r.Checks {
		status := Green(string(c.Status))
		if c.Status == doctor.Failed {
			status = Red(string(c.Status))
		}
		table.Row(Plain(c.Name), status, Plain(c.Detail))
		if c.Hint != "" {
			table.Row(Plain(""), Plain(""), Dim("-> "+c.Hint))
		}
	}
	return table.Write(cmd.OutOrStdout(), out)
}
