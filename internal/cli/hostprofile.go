package cli

import (
	"github.com/spf13/cobra"

	"github.com/agent-knock-knock/akk/internal/profile"
)

func newHostProfile(deps Deps) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "host-profile",
		Short: "Print, list and validate Host Profiles",
		Long: "A Host Profile says how one Host binds its trusted session and receives callbacks. It selects an executable,\n" +
			"so it is an administrator's file and never a model's.",
		Example: "  agent-knock-knock host-profile example > ./my-agent.json\n" +
			"  agent-knock-knock host-profile validate ./my-agent.json --host my-agent --host-version 1.8.0",
		Args: cobra.ArbitraryArgs,
		RunE: needCommand,
	}
	cmd.AddCommand(newExample(), newProfileList(deps), newValidate())
	return cmd
}

func newExample() *cobra.Command {
	return &cobra.Command{
		Use:     "example",
		Short:   "Print the starter Profile",
		Long:    "Print the packaged starter Profile and nothing else. Change its Host, executable, arguments, variables and pointers.",
		Example: "  agent-knock-knock host-profile example > ./my-agent.json",
		Args:    argCount(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return writeAll(cmd.OutOrStdout(), profile.Starter())
		},
	}
}

// profileList is the JSON document of host-profile list.
type profileList struct {
	Schema   string          `json:"schema"`
	Version  int             `json:"version"`
	Profiles []profile.Entry `json:"profiles"`
}

func newProfileList(deps Deps) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the built-in Profiles",
		Long:  "List the reviewed Profiles that ship with this build. Local files do not matter to it.",
		Example: "  agent-knock-knock host-profile list\n" +
			"  agent-knock-knock host-profile list --json",
		Args: argCount(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			entries, err := profile.Builtins()
			if err != nil {
				return err
			}
			out := outputFor(cmd, asJSON, deps)
			if out.JSON {
				return writeJSON(cmd.OutOrStdout(), profileList{Schema: profile.SchemaName + "-list", Version: 1, Profiles: entries})
			}
			if len(entries) == 0 {
				return writeAll(cmd.OutOrStdout(), []byte("No built-in Host Profiles. Start from `agent-knock-knock host-profile example`.\n"))
			}
			table := NewTable("ID", "REVISION", "HOST", "RANGE")
			for _, e := range entries {
				table.Row(Plain(e.ID), Plain(e.Revision), Plain(e.Compatibility.Host), Plain(e.Compatibility.Range))
			}
			return table.Write(cmd.OutOrStdout(), out)
		},
	}
	addJSONFlag(cmd, &asJSON)
	return cmd
}

// validation is the JSON document of host-profile validate.
type validation struct {
	OK                   bool                  `json:"ok"`
	Schema               string                `json:"schema"`
	Version              int                   `json:"version"`
	Source               string                `json:"source"`
	Selection            string                `json:"selection"`
	ID                   string                `json:"id"`
	Revision             string                `json:"revision"`
	Fingerprint          string                `json:"fingerprint"`
	Compatibility        profile.Compatibility `json:"compatibility"`
	CompatibilityChecked bool                  `json:"compatibility_checked"`
	ControllerDriver     string                `json:"controller_context_driver"`
	ControllerScope      string                `json:"controller_context_scope"`
	StandaloneCompatible bool                  `json:"standalone_bridge_compatible"`
	CallbackDriver       string                `json:"callback_driver"`
}

func newValidate() *cobra.Command {
	var host, hostVersion onceFlag
	cmd := &cobra.Command{
		Use:   "validate <path or built-in id>",
		Short: "Validate a Profile and print what it is as JSON",
		Long: "Validate every rule of Host Profile v1, also those that the JSON Schema cannot express. With --host and\n" +
			"--host-version, which go together, the Host's compatibility is checked, too. Reads no session and starts nothing.",
		Example: "  agent-knock-knock host-profile validate ./my-agent.json\n" +
			"  agent-knock-knock host-profile validate ./my-agent.json --host my-agent --host-version 1.8.0",
		Args: argCount("path or built-in id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if host.set != hostVersion.set {
				return usage(cmd, "--host and --host-version go together")
			}
			loaded, err := profile.Load(args[0])
			if err != nil {
				return err
			}
			p := loaded.Profile
			if host.set {
				if err := p.CheckHost(host.value, hostVersion.value); err != nil {
					return err
				}
			}
			return writeJSON(cmd.OutOrStdout(), validation{
				OK: true, Schema: p.Schema, Version: p.Version,
				Source: loaded.Source, Selection: loaded.Selection,
				ID: p.ID, Revision: p.Revision, Fingerprint: loaded.Fingerprint,
				Compatibility: p.Compatibility, CompatibilityChecked: host.set,
				ControllerDriver: p.ControllerContext.Driver, ControllerScope: p.Scope(),
				StandaloneCompatible: p.StandaloneCompatible(), CallbackDriver: p.Callback.Driver,
			})
		},
	}
	cmd.Flags().Var(&host, "host", "exact Host id; needs --host-version")
	cmd.Flags().Var(&hostVersion, "host-version", "exact SemVer version of the Host; needs --host")
	return cmd
}
