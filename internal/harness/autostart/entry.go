package autostart

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/agent-knock-knock/akk/internal/harness"
	"github.com/agent-knock-knock/akk/internal/harness/client"
)

const (
	// command is the fixed name that is looked for on PATH.
	command = "hacpd"
	// ownName is what a server sees as its own name, whatever its file is called: the
	// program then reads the command line that we give it.
	ownName    = "agent-knock-knock"
	probeLimit = 10 * time.Second
	maxProbe   = 64 << 10
)

// entry is the program that is started.
type entry struct {
	path string
	from string // where it was found, for the log and the registry
	own  bool   // this very program: it needs no proof
}

// resolve picks the program: the explicit one, else hacpd on PATH, else this program. It is
// picked once; a start that fails is never tried with another.
func resolve(s client.Settings, self string) (entry, error) {
	if s.ServerEntry != "" {
		return entry{path: s.ServerEntry, from: "server entry"}, nil
	}
	if found := onPath(s); found != "" {
		real, err := filepath.EvalSymlinks(found)
		if err != nil {
			return entry{}, refused(command, "its link cannot be followed")
		}
		if sameFile(real, self) {
			return entry{path: self, from: command, own: true}, nil
		}
		return entry{path: real, from: command}, nil
	}
	return entry{path: self, from: "this program", own: true}, nil
}

// onPath finds the first executable hacpd. An empty element of PATH is the working
// directory of our start, and relative elements begin there; without PATH nothing is looked
// for.
func onPath(s client.Settings) string {
	if !s.HasSearchPath {
		return ""
	}
	for _, dir := range filepath.SplitList(s.SearchPath) {
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(s.StartDir, dir)
		}
		path := filepath.Join(dir, command)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0 {
			return path
		}
	}
	return ""
}

func sameFile(a, b string) bool {
	x, errA := os.Stat(a)
	y, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(x, y)
}

func refused(from, why string) error {
	return harness.Refuse(client.StartupFailed, "the %s cannot be started: %s", from, why).
		Advise("mend it or take it away; no other program is tried")
}

// prove makes sure that the program is a server of our protocol, before it is trusted with
// an address. It is asked for its version; nothing else of it is run.
func (e entry) prove(ctx context.Context, env []string) error {
	if e.own {
		return nil
	}
	info, err := os.Stat(e.path)
	switch {
	case err != nil:
		return refused(e.from, "the file is not there or cannot be read")
	case !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0:
		return refused(e.from, "it is not an executable file")
	case e.from == command && isScript(e.path):
		// A script would hide the server behind a process that we cannot watch.
		return refused(e.from, "it is a script and not the program itself")
	}
	ctx, stop := context.WithTimeout(ctx, probeLimit)
	defer stop()
	cmd := exec.CommandContext(ctx, e.path, "--version", "--json")
	cmd.Args[0], cmd.Env, cmd.WaitDelay = ownName, env, time.Second
	out := &limited{}
	cmd.Stdout = out
	if err := cmd.Run(); err != nil {
		return refused(e.from, "it does not answer --version --json")
	}
	var v struct {
		Protocol int `json:"harness_protocol"`
	}
	if json.Unmarshal(out.b, &v) != nil || v.Protocol != client.Protocol {
		return refused(e.from, "it is no harness server of protocol 4")
	}
	return nil
}

func isScript(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return true // it cannot be shown to be a program
	}
	defer f.Close()
	var head [2]byte
	_, err = io.ReadFull(f, head[:])
	return err != nil || string(head[:]) == "#!"
}

// limited keeps the beginning of an output.
type limited struct{ b []byte }

func (l *limited) Write(p []byte) (int, error) {
	l.b = append(l.b, p[:min(len(p), maxProbe-len(l.b))]...)
	return len(p), nil
}

// cleared are variables by which other clients choose a program. None of them reaches a
// server: what is started follows from the settings alone.
var cleared = []string{"SERVER_MODULE", "SERVER_COMMAND", "SERVER_ENTRY", "MCP_CONFIG"}

// serverEnv is the environment of a server.
func serverEnv(env []string) []string {
	out := make([]string, 0, len(env))
next:
	for _, kv := range env {
		for _, end := range cleared {
			if strings.HasPrefix(kv, "HARNESS_ACP_BRIDGE_"+end+"=") || strings.HasPrefix(kv, "AKK_HARNESS_"+end+"=") {
				continue next
			}
		}
		out = append(out, kv)
	}
	return out
}
