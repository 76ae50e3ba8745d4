package tooltest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/agent-knock-knock/akk/internal/testkit/golden"
	"github.com/agent-knock-knock/akk/internal/toolkit"
)

// Options of a replay.
type Options struct {
	// Normalise makes a line of the server stable, such as by replacing times. It may be
	// nil.
	Normalise func(line string) string
}

// Run replays every *.txtar of dir against a fresh session over a fresh registry.
//
// A transcript is a comment and then pairs of files: "client" holds the lines that the
// Host sends in one write, "server" every line that came back for them. A line "{bad" or
// a batch is as good as any other. Replies are put in the order of their requests, with
// lines that answer no request first, since calls run side by side. With -update the
// server files are rewritten.
func Run(t *testing.T, dir string, registry func(t *testing.T) *toolkit.Registry, opt Options) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no transcripts in %s (%v)", dir, err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			replay(t, path, registry(t), opt)
		})
	}
}

func replay(t *testing.T, path string, r *toolkit.Registry, opt Options) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	archive := txtar.Parse(data)
	got := &txtar.Archive{Comment: archive.Comment}
	h := Start(t, r)
	for i, file := range archive.Files {
		switch {
		case file.Name == "server":
			continue // written by its client section
		case file.Name != "client":
			t.Fatalf("%s: section %q is neither client nor server", path, file.Name)
		}
		lines := strings.Split(strings.TrimSuffix(string(file.Data), "\n"), "\n")
		back := h.exchange(lines, i)
		if opt.Normalise != nil {
			for j := range back {
				back[j] = opt.Normalise(back[j])
			}
		}
		server := strings.Join(append(back, ""), "\n")
		got.Files = append(got.Files, file, txtar.File{Name: "server", Data: []byte(server)})
	}
	rest, err := h.Close()
	if err != nil || len(rest) > 0 {
		t.Errorf("the session ended with %v and %d further lines: %q", err, len(rest), rest)
	}
	golden.Equal(t, path, txtar.Format(got))
}

// exchange sends lines and collects what comes back: until a ping behind them and every
// request among them is answered.
func (h *Host) exchange(lines []string, section int) []string {
	h.tb.Helper()
	barrier := fmt.Sprintf(`"tooltest-barrier-%d"`, section)
	order := []string{}
	waiting := map[string]bool{barrier: true}
	for _, l := range lines {
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				RequestID json.RawMessage `json:"requestId"`
			} `json:"params"`
		}
		if json.Unmarshal([]byte(l), &m) != nil {
			continue
		}
		switch {
		case m.Method == "notifications/cancelled":
			delete(waiting, string(m.Params.RequestID))
		case m.ID != nil && m.Method != "" && (m.ID[0] == '"' || m.ID[0] >= '0' && m.ID[0] <= '9'):
			waiting[string(m.ID)] = true
			order = append(order, string(m.ID))
		}
	}
	h.Send(append(lines, `{"jsonrpc":"2.0","id":`+barrier+`,"method":"ping"}`)...)
	var loose []string
	replies := map[string][]string{}
	for len(waiting) > 0 {
		line := h.Line()
		var r Reply
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			h.tb.Fatalf("not JSON-RPC on stdout: %q", line)
		}
		id := string(r.ID)
		delete(waiting, id)
		switch {
		case id == barrier:
		case slices.Contains(order, id):
			replies[id] = append(replies[id], line)
		default:
			loose = append(loose, line)
		}
	}
	out := loose
	for _, id := range order {
		out = append(out, replies[id]...)
		delete(replies, id) // an id that was sent twice is listed twice
	}
	return out
}
