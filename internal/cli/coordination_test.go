package cli_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/cli"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ledger/ledgertools"
	"github.com/agent-knock-knock/akk/internal/version"
)

func TestCoordinationMCPTakesAFileOrMemory(t *testing.T) {
	t.Chdir(t.TempDir())
	full, err := filepath.Abs("l.db")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string
		want cli.CoordinationOptions
		fail string
	}{
		{"coordination mcp --db l.db", cli.CoordinationOptions{DB: full}, ""},
		{"coordination mcp -db l.db", cli.CoordinationOptions{DB: full}, ""}, // as configurations of peers write it
		{"coordination mcp -db=l.db --lease-ttl 90s", cli.CoordinationOptions{DB: full, LeaseTTL: 90 * time.Second}, ""},
		{"coordination mcp", cli.CoordinationOptions{}, ""},
		{"coordination mcp --read-only", cli.CoordinationOptions{Policy: ledgertools.Policy{ReadOnly: true}}, ""},
		{"coordination mcp --no-view --no-skill-discovery", cli.CoordinationOptions{Policy: ledgertools.Policy{NoView: true, NoDiscovery: true}}, ""},
		{"coordination mcp --tools assignments.*,evidence.record --tools=projects.get -db l.db", cli.CoordinationOptions{DB: full, Policy: ledgertools.Policy{Only: []string{"assignments.*", "evidence.record", "projects.get"}}}, ""},
		{"coordination mcp --tools=assignment.claim", cli.CoordinationOptions{}, `--tools: no tool is named "assignment.claim"`},
		{"coordination mcp --tools=projects.get,odd.*", cli.CoordinationOptions{}, `"odd.*"`},
		{"coordination mcp --tools=", cli.CoordinationOptions{}, `--tools: no tool is named ""`}, // not every tool
		{"coordination mcp --tools=projects.get,", cli.CoordinationOptions{}, `no tool is named ""`},
		{"coordination mcp --read-only --tools=assignments.claim", cli.CoordinationOptions{}, "leave no tool"},
		{"coordination mcp --tools", cli.CoordinationOptions{}, "usage"},
		{"coordination mcp --read-only=perhaps", cli.CoordinationOptions{}, "usage"},
		{"coordination mcp --lease-ttl 0s", cli.CoordinationOptions{}, "usage"},
		{"coordination mcp --lease-ttl 0", cli.CoordinationOptions{}, "usage"},
		{"coordination mcp --lease-ttl soon", cli.CoordinationOptions{}, "usage"},
		{"coordination mcp --nope", cli.CoordinationOptions{}, "usage"},
		{"coordination -nope", cli.CoordinationOptions{}, "usage"},
		{"coordination mcp --db a --db b", cli.CoordinationOptions{}, "usage"},
		{"coordination mcp odd", cli.CoordinationOptions{}, "usage"},
		{"coordination", cli.CoordinationOptions{}, "usage"},
	} {
		var got cli.CoordinationOptions
		var stdout, stderr bytes.Buffer
		exit := cli.Main(t.Context(), strings.Fields(c.args), strings.NewReader("in"), &stdout, &stderr, cli.Deps{
			Coordination: func(_ context.Context, o cli.CoordinationOptions, in io.Reader, out, _ io.Writer) error {
				got = o
				_, err := io.Copy(out, in)
				return err
			}})
		if c.fail != "" {
			if exit != 2 || !strings.Contains(stderr.String(), c.fail) || stdout.Len() > 0 {
				t.Errorf("%s: exit %d, %s", c.args, exit, stderr.String())
			}
			continue
		}
		if exit != 0 || !reflect.DeepEqual(got, c.want) || stdout.String() != "in" {
			t.Errorf("%s: exit %d, %+v, want %+v, %s", c.args, exit, got, c.want, stderr.String())
		}
	}
}

// §19: as peers do, -version prints the name and the version wherever it stands.
func TestTheCoordinationServerTellsItsVersion(t *testing.T) {
	for _, args := range []string{"coordination -version", "coordination --version", "coordination mcp -version", "coordination mcp --version", "coordination mcp -db l.db -version"} {
		var stdout, stderr bytes.Buffer
		exit := cli.Main(t.Context(), strings.Fields(args), strings.NewReader(""), &stdout, &stderr, cli.Deps{
			Coordination: func(context.Context, cli.CoordinationOptions, io.Reader, io.Writer, io.Writer) error {
				return errors.New("it was started")
			}})
		if want := cli.Name + " " + version.Version + "\n"; exit != 0 || stdout.String() != want || stderr.Len() > 0 {
			t.Errorf("%s: exit %d, %q, %q", args, exit, stdout.String(), stderr.String())
		}
	}
}

// A file that cannot be opened is no mistake of the command line.
func TestALedgerThatCannotBeOpenedExitsOne(t *testing.T) {
	var stdout, stderr bytes.Buffer
	exit := cli.Main(t.Context(), []string{"coordination", "mcp"}, strings.NewReader(""), &stdout, &stderr, cli.Deps{
		Coordination: func(context.Context, cli.CoordinationOptions, io.Reader, io.Writer, io.Writer) error {
			return fault.New(fault.Unavailable, "test", "the file is damaged")
		}})
	if exit != 1 || !strings.Contains(stderr.String(), "the file is damaged") {
		t.Errorf("exit %d, %s", exit, stderr.String())
	}
}

// Blanks after a comma are how people write lists.
func TestAListOfToolsMayHoldBlanks(t *testing.T) {
	var got cli.CoordinationOptions
	var stdout, stderr bytes.Buffer
	exit := cli.Main(t.Context(), []string{"coordination", "mcp", "--tools", "projects.get, roles.*"}, strings.NewReader(""), &stdout, &stderr, cli.Deps{
		Coordination: func(_ context.Context, o cli.CoordinationOptions, _ io.Reader, _, _ io.Writer) error {
			got = o
			return nil
		}})
	if want := []string{"projects.get", "roles.*"}; exit != 0 || !reflect.DeepEqual(got.Policy.Only, want) {
		t.Errorf("exit %d, %q, %s", exit, got.Policy.Only, stderr.String())
	}
}

func TestTheHelpOfTheCoordinationServerShowsItsSwitches(t *testing.T) {
	var stdout, stderr bytes.Buffer
	exit := cli.Main(t.Context(), []string{"coordination", "mcp", "--help"}, strings.NewReader(""), &stdout, &stderr, cli.Deps{
		Coordination: func(context.Context, cli.CoordinationOptions, io.Reader, io.Writer, io.Writer) error {
			return errors.New("it was started")
		}})
	if exit != 0 {
		t.Fatalf("exit %d, %s", exit, stderr.String())
	}
	for _, want := range []string{"--read-only ", "--tools NAME[,NAME...] ", "--no-view ", "--no-skill-discovery ", "--read-only --no-view\n", "--tools 'assignments.*,"} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("the help does not show %q:\n%s", want, stdout.String())
		}
	}
}
