package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/agent-knock-knock/akk/internal/cli"
	"github.com/agent-knock-knock/akk/internal/profile"
)

var update = flag.Bool("update", false, "write what the commands print into the transcripts")

// result is what one command line did.
type result struct {
	stdout, stderr string
	exit           int
}

// world is a directory with files and an environment in which command lines run.
type world struct {
	dir string
	env map[string]string
}

func newWorld(t *testing.T) world {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	return world{dir: dir, env: map[string]string{"HOME": "/home/someone"}}
}

// file writes a file; the starter Profile is "starter" with pairs of old and new text
// replaced. What is below bin/ is executable.
func (w world) file(t *testing.T, name string, data []byte) {
	t.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	mode := os.FileMode(0o600)
	if strings.HasPrefix(name, "bin/") {
		mode = 0o700
	}
	if err := os.WriteFile(path, data, mode); err != nil {
		t.Fatal(err)
	}
}

// starter writes the starter Profile with a callback program that exists, and edits.
func (w world) starter(t *testing.T, name string, edits ...string) {
	t.Helper()
	w.file(t, "bin/my-agent", []byte("#!/bin/sh\ntouch "+filepath.Join(w.dir, "started")+"\n"))
	pairs := append([]string{"/usr/local/bin/my-agent", filepath.Join(w.dir, "bin/my-agent")}, edits...)
	w.file(t, name, []byte(strings.NewReplacer(pairs...).Replace(string(profile.Starter()))))
}

// run runs one command line in the world. Its host-bridge shows the options it got, all
// but the session, of which it shows only that it arrived.
func (w world) run(t *testing.T, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	deps := cli.Deps{
		LookupEnv: func(name string) (string, bool) { v, ok := w.env[name]; return v, ok },
		IsTerminal: func(io.Writer) bool {
			_, tty := w.env["TEST_TTY"]
			return tty
		},
		HostBridge: func(_ context.Context, o cli.HostBridgeOptions, stdin io.Reader, stdout, _ io.Writer) error {
			frames, err := io.ReadAll(stdin)
			if err != nil {
				return err
			}
			return json.NewEncoder(stdout).Encode(map[string]any{"frames": string(frames), "profile": o.Admitted.Profile.ID, "selection": o.Admitted.Selection,
				"session_given": o.Admitted.Session == w.env["MY_AGENT_SESSION_ID"], "host": o.Host + " " + o.HostVersion, "store": o.StoreDir, "runtime": o.RuntimeDir, "level": o.LogLevel.String()})
		},
		List: func(_ context.Context, o cli.ListOptions, stdout, _ io.Writer) error {
			_, err := fmt.Fprintf(stdout, "store=%s sockets=%v json=%v color=%v\n", o.StoreDir, o.TmuxSockets, o.Output.JSON, o.Output.Color)
			return err
		},
	}
	exit := cli.Main(t.Context(), args, strings.NewReader("frame"), &stdout, &stderr, deps)
	if _, err := os.Lstat(filepath.Join(w.dir, "started")); err == nil {
		t.Error("the callback program was started")
	}
	return result{stdout.String(), stderr.String(), exit}
}

// TestTranscripts runs testdata/*.txtar: a comment, then sections args (one a line), env
// (NAME=value), profile (pairs of lines that edit the starter, written to p.json), any
// other files, and the expected stdout, stderr and exit. $WORK is the directory.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, name := range files {
		path, err := filepath.Abs(name)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) { transcript(t, path) })
	}
}

func transcript(t *testing.T, path string) {
	archive, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	var args []string
	want := map[string]string{}
	var inputs []txtar.File
	for _, f := range archive.Files {
		text := strings.ReplaceAll(string(f.Data), "$WORK", w.dir)
		lines := strings.FieldsFunc(text, func(c rune) bool { return c == '\n' })
		switch f.Name {
		case "args":
			args = lines
		case "env":
			for _, line := range lines {
				name, value, _ := strings.Cut(line, "=")
				w.env[name] = value
			}
		case "profile":
			w.starter(t, "p.json", lines...)
		case "stdout", "stderr", "exit":
			want[f.Name] = string(f.Data)
			continue
		default:
			w.file(t, f.Name, []byte(text))
		}
		inputs = append(inputs, f)
	}
	r := w.run(t, args...)
	got := map[string]string{"stdout": w.stable(r.stdout), "stderr": w.stable(r.stderr), "exit": fmt.Sprintln(r.exit)}
	if *update {
		for _, name := range []string{"stdout", "stderr", "exit"} {
			inputs = append(inputs, txtar.File{Name: name, Data: []byte(got[name])})
		}
		archive.Files = inputs
		if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	for name := range got {
		if got[name] != want[name] {
			t.Errorf("%s is\n%s\nwant\n%s", name, got[name], want[name])
		}
	}
}

var fingerprints = regexp.MustCompile(`sha256:[0-9a-f]{64}`)

// stable replaces what differs from run to run: the directory, and the fingerprints of
// Profiles that name it.
func (w world) stable(text string) string {
	text = strings.NewReplacer(w.dir, "$WORK", "\x1b", "<ESC>").Replace(text)
	return fingerprints.ReplaceAllString(text, "sha256:<64 HEX>")
}
