// Package cli is the command line of agent-knock-knock: flags, help, output for people
// and programs, one error line, the exit code.
//
// It decides nothing about Turns, Stores or terminals: commands that need them are
// functions in [Deps]. It touches no process-wide stream; every reader and writer is
// given. Nothing happens at package init, so a start pays only for its own command.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	"github.com/agent-knock-knock/akk/internal/doctor"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/pane"
	"github.com/agent-knock-knock/akk/internal/redact"
	"github.com/agent-knock-knock/akk/internal/version"
)

// Name is the program.
const Name = "agent-knock-knock"

// The codes of this package's refusals.
const (
	CodeUsage  fault.Code = "usage"         // the command line itself is wrong
	CodeDoctor fault.Code = "doctor_failed" // the report is on stdout and has errors
	// CodeUnchecked: the report is on stdout and not every check could be made. Exit 2.
	CodeUnchecked fault.Code = "doctor_unchecked"
)

// maxErrorLine bounds the one line of a failure, in bytes.
const maxErrorLine = 2048

// Deps is what main gives to the command line. A nil command function leaves its command
// out. Nil LookupEnv and IsTerminal mean the process's own environment and streams.
type Deps struct {
	// HostBridge serves MCP on stdin and stdout until the Host ends it. It gets a Host
	// Profile that passed every check. It must write nothing but MCP frames to stdout.
	HostBridge func(ctx context.Context, o HostBridgeOptions, stdin io.Reader, stdout, stderr io.Writer) error
	// List writes the live terminals, as one JSON document or as a table.
	List func(ctx context.Context, o ListOptions, stdout, stderr io.Writer) error
	// Pane starts an agent in tmux; Attach goes there, on the person's terminal.
	Pane   func(ctx context.Context, r pane.Request) (pane.Report, error)
	Attach func(ctx context.Context, argv []string) error
	// Machine reports on the machine, its Store and its Bridges; Bridges on these alone.
	Machine MachineFunc
	Bridges BridgesFunc
	// SendTest delivers one test callback and adds its outcome to the report.
	SendTest func(ctx context.Context, o HostBridgeOptions, r *doctor.Report)
	// Top shows all of them live.
	Top TopFunc
	// Outbox looks at deliveries of a Store and changes them on an operator's word.
	Outbox OutboxFuncs
	// Prune forgets what ended long ago.
	Prune PruneFunc

	// Coordination serves the coordination ledger as MCP on stdin and stdout until stdin
	// ends. It must write nothing but MCP messages to stdout.
	Coordination func(ctx context.Context, o CoordinationOptions, stdin io.Reader, stdout, stderr io.Writer) error

	// HarnessServe serves headless agents until ctx ends; it prints nothing on stdout.
	HarnessServe func(ctx context.Context, o HarnessServeOptions, stdin io.Reader, stderr io.Writer) error
	// HarnessMCP serves the tools for headless agents as MCP on stdin and stdout.
	HarnessMCP func(ctx context.Context, o HarnessMCPOptions, stdin io.Reader, stdout, stderr io.Writer) error
	// HarnessSupervise keeps a server and its log as the order on stdin says.
	HarnessSupervise func(ctx context.Context, stdin io.Reader) error

	LookupEnv  func(name string) (string, bool)
	IsTerminal func(w io.Writer) bool
}

func (d Deps) withDefaults() Deps {
	if d.LookupEnv == nil {
		d.LookupEnv = os.LookupEnv
	}
	if d.IsTerminal == nil {
		d.IsTerminal = func(w io.Writer) bool {
			f, ok := w.(*os.File)
			return ok && isatty.IsTerminal(f.Fd())
		}
	}
	return d
}

// Main runs one command line (without the program's name) and returns its exit code: 0,
// or 1 after exactly one line on stderr, "agent-knock-knock: code: message (hint)"; 2 when
// doctor could not make a check, or a command line of coordination is wrong; 3 when another server has the state directory.
func Main(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer, deps Deps) int {
	root := New(deps)
	if args == nil {
		args = []string{} // cobra reads os.Args for nil
	}
	root.SetArgs(versionArgs(coordinationArgs(args)))
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	fmt.Fprintln(stderr, errorLine(err))
	return commandStatus(args, err)
}

// errorLine is the one line of a failure. A coded error shows its public text; an error
// that nobody classified shows itself, because no log exists that could hold it.
func errorLine(err error) string {
	code, msg, hint := fault.Public(err)
	if code == fault.Internal {
		msg, hint = err.Error(), "please report this"
	}
	line := Name + ": " + string(code) + ": " + msg
	if hint != "" {
		line += " (" + hint + ")"
	}
	return redact.Line(line, maxErrorLine)
}

// New returns the whole command tree. The caller sets args and streams; [Main] does.
func New(deps Deps) *cobra.Command {
	deps = deps.withDefaults()
	root := &cobra.Command{
		Use:   Name,
		Short: "Let a controller Host drive coding agents and be told when they need it",
		Long: "Agent Knock Knock connects a controller Host (an AI agent, an IDE, a chat gateway) to coding agents in terminals.\n" +
			"The Host starts `host-bridge` as an MCP server over stdio; the other commands help to set it up.",
		Example: "  agent-knock-knock host-profile example > ./my-agent.json\n" +
			"  agent-knock-knock doctor --host-profile ./my-agent.json --host my-agent --host-version 1.8.0",
		Version:           version.Version,
		Args:              cobra.ArbitraryArgs,
		RunE:              needCommand,
		SilenceUsage:      true,
		SilenceErrors:     true,
		DisableAutoGenTag: true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.SetVersionTemplate(Name + " {{.Version}}\n")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return usage(cmd, "%s", err) })
	root.SetHelpCommand(newHelp())
	if deps.HostBridge != nil {
		root.AddCommand(newHostBridge(deps))
	}
	if deps.List != nil {
		root.AddCommand(newList(deps))
	}
	if deps.Pane != nil {
		root.AddCommand(newPane(deps))
	}
	if deps.Bridges != nil {
		root.AddCommand(newWorkers(deps))
	}
	if deps.Top != nil {
		root.AddCommand(newTop(deps))
	}
	if deps.Outbox.List != nil {
		root.AddCommand(newOutbox(deps))
	}
	if deps.Prune != nil {
		root.AddCommand(newStore(deps))
	}
	if deps.Coordination != nil {
		root.AddCommand(newCoordination(deps))
	}
	if deps.HarnessServe != nil {
		root.AddCommand(newHarness(deps))
	}
	root.AddCommand(newHostProfile(deps), newDoctor(deps), newVersion(deps))
	return root
}

// usage returns a refusal of the command line that points to the command's help.
func usage(cmd *cobra.Command, format string, args ...any) error {
	return fault.New(CodeUsage, "cli", format, args...).WithHint("run `%s --help`", cmd.CommandPath())
}

// needCommand is the action of a command that only groups others.
func needCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usage(cmd, "a command is missing after %s", cmd.CommandPath())
	}
	err := fault.New(CodeUsage, "cli", "unknown command %q after %s", args[0], cmd.CommandPath())
	cmd.SuggestionsMinimumDistance = 2 // cobra itself sets it only where it refuses
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		return err.WithHint("did you mean %s?", strings.Join(near, " or "))
	}
	return err.WithHint("run `%s --help`", cmd.CommandPath())
}

// argCount refuses more or fewer arguments than names.
func argCount(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) > len(names):
			return usage(cmd, "unexpected argument %q", args[len(names)])
		case len(args) < len(names):
			return usage(cmd, "<%s> is missing", names[len(args)])
		}
		return nil
	}
}

func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:     "help [command]",
		Short:   "Show the help of a command",
		Example: "  agent-knock-knock help host-profile validate",
		RunE: func(cmd *cobra.Command, args []string) error {
			target, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return usage(cmd.Root(), "there is no help for %q", strings.Join(args, " "))
			}
			// As after parsing --help: otherwise these two flags are missing from the text.
			target.InitDefaultHelpFlag()
			target.InitDefaultVersionFlag()
			return target.Help()
		},
	}
}

// onceFlag is a string flag that may be given once: which of two Profiles or Hosts is
// meant must not depend on their order.
type onceFlag struct {
	value string
	set   bool
}

var errGivenTwice = errors.New("the flag is given twice")

func (f *onceFlag) Set(s string) error {
	if f.set {
		return errGivenTwice
	}
	f.value, f.set = s, true
	return nil
}

func (f *onceFlag) String() string { return f.value }

// Type is the word for the value in help texts.
func (f *onceFlag) Type() string { return "string" }

// requireFlags refuses a command line that lacks one of the flags or gives it empty.
func requireFlags(cmd *cobra.Command, names ...string) error {
	var missing []string
	for _, name := range names {
		if cmd.Flag(name).Value.String() == "" {
			missing = append(missing, "--"+name)
		}
	}
	if len(missing) > 0 {
		return usage(cmd, "%s must be given", strings.Join(missing, ", "))
	}
	return nil
}
