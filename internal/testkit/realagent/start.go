package realagent

import (
	"context"
	"os"
	"testing"
	"time"
)

const installLimit = 10 * time.Minute

// EnvInstall allows tests to install the agents: set it to anything.
const EnvInstall = "AKK_INSTALL_AGENTS"

// Need returns the folder of the agents' executables. Without an installation, and
// without permission to make one, the test is skipped with the reason.
func Need(tb testing.TB) string {
	tb.Helper()
	return Agents.Need(tb)
}

// Need is [Need] for any packages.
func (p Packages) Need(tb testing.TB) string {
	tb.Helper()
	if testing.Short() {
		tb.Skip("real agents take their time; not with -short")
	}
	if bin, ok := p.Installed(); ok {
		return bin
	}
	if os.Getenv(EnvInstall) == "" {
		tb.Skipf("the npm packages of this test are not installed; set %s=1 to let the tests install them (up to 700 MB)", EnvInstall)
	}
	ctx, cancel := context.WithTimeout(tb.Context(), installLimit)
	defer cancel()
	bin, err := p.Install(ctx)
	if err != nil {
		tb.Fatal(err)
	}
	return bin
}

// Start brings an agent up for a test, in a session named after its mode on the tmux
// server at socket, and takes it down at the end. More may be nil; Mode, Dir, Socket and
// ModelURL of it are not used, and without Bin it is the pinned one.
func Start(tb testing.TB, socket string, mode Mode, modelURL string, more *Options) *Agent {
	tb.Helper()
	o := Options{}
	if more != nil {
		o = *more
	}
	o.Mode, o.Socket, o.ModelURL = mode, socket, modelURL
	if o.Bin == "" {
		o.Bin = Need(tb)
	}
	if o.Session == "" {
		o.Session = string(mode)
	}
	// A short path: sockets below it must stay under the limit of the system.
	dir, err := os.MkdirTemp("", "akk-agent-")
	if err != nil {
		tb.Fatal(err)
	}
	o.Dir = dir
	tb.Cleanup(func() { os.RemoveAll(dir) })
	a, err := Up(tb.Context(), o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := a.Down(); err != nil {
			tb.Error(err)
		}
	})
	return a
}
