package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/agent-knock-knock/akk/internal/catalogue"
	"github.com/agent-knock-knock/akk/internal/procinfo"
	"github.com/agent-knock-knock/akk/internal/testkit/fakehost"
	"github.com/agent-knock-knock/akk/internal/testkit/faketmux"
	"github.com/agent-knock-knock/akk/internal/testkit/standin"
)

const initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"case","version":"0"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
`

// replies splits stdout into frames by id; every line must be JSON-RPC.
func replies(t testing.TB, out string) map[string]json.RawMessage {
	t.Helper()
	byID := map[string]json.RawMessage{}
	for line := range strings.Lines(out) {
		var f struct {
			Version string          `json:"jsonrpc"`
			ID      json.RawMessage `json:"id"`
			Result  json.RawMessage `json:"result"`
			Error   json.RawMessage `json:"error"`
		}
		if err := json.Unmarshal([]byte(line), &f); err != nil || f.Version != "2.0" {
			t.Fatalf("stdout holds %q: %v", line, err)
		}
		if _, twice := byID[string(f.ID)]; twice && f.ID != nil {
			t.Errorf("id %s was answered twice", f.ID)
		}
		byID[string(f.ID)] = append(f.Result, f.Error...)
	}
	return byID
}

func TestTheCatalogueIsOrderedClosedAndAloneOnStdout(t *testing.T) { // spec case 16, M16, M22
	w := newWorld(t, nil)
	var first string
	for range 2 {
		p := fakehost.Spawn(t, w.bridge("--log-level", "debug"))
		fmt.Fprint(p.Stdin, initialize+`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`+"\n")
		p.Stdin.Close()
		out := readAll(t, p.Stdout)
		if code := p.WaitExit(settle); code != 0 {
			t.Errorf("exit %d: %s", code, p.Stderr())
		}
		raw := replies(t, out)["1"]
		var l struct {
			Tools []struct {
				Name        string          `json:"name"`
				InputSchema json.RawMessage `json:"inputSchema"`
				Annotations map[string]any  `json:"annotations"`
			} `json:"tools"`
		}
		if err := json.Unmarshal(raw, &l); err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, tool := range l.Tools {
			names = append(names, strings.TrimPrefix(tool.Name, "agent_knock_knock_"))
			if !bytes.Contains(tool.InputSchema, []byte(`"additionalProperties":false`)) || len(tool.Annotations) < 4 {
				t.Errorf("%s: schema not closed or hints missing: %v", tool.Name, tool.Annotations)
			}
		}
		if !slices.Equal(names, catalogue.Names) {
			t.Errorf("order %v", names)
		}
		if first != "" && first != string(raw) {
			t.Error("tools/list differs between two starts")
		}
		first = string(raw)
	}
}

func TestNothingSentBeforeTheEndOfInputGoesUnanswered(t *testing.T) { // H2 b, c, spec case 21
	for name, end := range map[string]func(*fakehost.Process){
		"end of input": func(p *fakehost.Process) { p.Stdin.Close() },
		"SIGTERM":      func(p *fakehost.Process) { p.Signal(syscall.SIGTERM); p.Signal(syscall.SIGTERM) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			pane := w.agent(standin.Codex)
			c := w.start()
			term := idle(t, c).TerminalID
			if code := c.Close(settle); code != 0 {
				t.Fatal(code)
			}
			p := fakehost.Spawn(t, w.bridge())
			fmt.Fprint(p.Stdin, initialize+fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"agent_knock_knock_send","arguments":{"terminal_id":%q,"request":"GATE:go ;; SAY:x"}}}`, term)+"\n")
			pane.WaitEvent(t, "submit", 1, settle) // the send runs: it is in its acceptance wait or just after
			end(p)
			out := readAll(t, p.Stdout)
			if code := p.WaitExit(settle); code != 0 {
				t.Errorf("exit %d: %s", code, p.Stderr())
			}
			if r := string(replies(t, out)["7"]); !strings.Contains(r, "async_pending") {
				t.Errorf("the send was answered with %q", r)
			}
			pane.typedOnce("GATE:go ;; SAY:x")
			pane.Release(t, "go")
			next := w.start() // the Turn is not lost with the Bridge that made it
			w.host.WaitDeliveries(1, settle)
			if code := next.Close(settle); code != 0 {
				t.Error(code)
			}
		})
	}
}

func TestTwoCallsWithNeighbouringHugeIdsAreTwoCalls(t *testing.T) { // H1 3, M26
	w := newWorld(t, nil)
	pane := w.agent(standin.Codex)
	c := w.start()
	term := idle(t, c).TerminalID
	c.Close(settle)
	p := fakehost.Spawn(t, w.bridge())
	call := `{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"agent_knock_knock_send","arguments":{"terminal_id":"` + term + `","request":"GATE:go ;; SAY:x"}}}` + "\n"
	fmt.Fprint(p.Stdin, initialize+fmt.Sprintf(call, "9007199254740992")+fmt.Sprintf(call, "9007199254740993"))
	pane.WaitEvent(t, "submit", 1, settle)
	p.Stdin.Close()
	got := replies(t, readAll(t, p.Stdout))
	if !strings.Contains(string(got["9007199254740992"]), "async_pending") || !strings.Contains(string(got["9007199254740993"]), "terminal_blocked") {
		t.Errorf("%s", got)
	}
	p.WaitExit(settle)
	pane.typedOnce("GATE:go ;; SAY:x")
	pane.Release(t, "go")
}

// TestNoSecretLeavesItsPlace greps everything that the Bridge writes or shows for the
// values that must not be there (spec case 61).
func TestNoSecretLeavesItsPlace(t *testing.T) {
	token := "canary-token-5b1c"
	w := newWorld(t, &fakehost.ProfileOptions{Allow: []string{"CANARY_TOKEN"}})
	w.host.Env = append(w.host.Env, "CANARY_TOKEN="+token, "AKK_HOST_PROFILE_FINGERPRINT=inherited-garbage") // case 20
	w.agent(standin.Codex)
	c := w.start("--log-level", "debug")
	var shown strings.Builder
	term := idle(t, c)
	fmt.Fprint(&shown, dump(list(t, c)))
	got := send(t, c, term.TerminalID, "SAY:the answer canary\nuse the key sk-abcdefghijklmnopqrstuvwxyz0123456789 and Bearer abcdefghijklmnopqrstuvwxyz")
	fmt.Fprint(&shown, dump(got))
	faketmux.Wait(t, "workers", func() bool { return len(children(t, c.PID(), "akk-callback")) > 0 }, func() string { return "" })
	fmt.Fprint(&shown, workers(t, c.PID()))
	fmt.Fprint(&shown, dump(waitCallback(t, c, got.TurnID, "delivered")))
	if d := w.host.Deliveries()[0]; !slices.Contains(d.Env, "CANARY_TOKEN") || slices.Contains(d.Env, "FAKE_HOST_NOT_ALLOWED") || d.Session != w.host.Session {
		t.Errorf("the callback's environment: %v", d.Env)
	}
	c.Close(settle)
	fmt.Fprint(&shown, c.Stderr())
	for _, word := range []string{"use the key", "answer canary"} { // neither a task nor an answer is logged
		if strings.Contains(c.Stderr(), word) {
			t.Errorf("the log holds %q", word)
		}
	}
	err := filepath.WalkDir(w.host.Store, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		shown.Write(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{token, w.host.Session, w.host.Callback, "--idem", "inherited-garbage", "sk-abcdefghijklmnop", "FAKE_HOST_NOT_ALLOWED"} {
		if i := strings.Index(shown.String(), secret); i >= 0 {
			t.Errorf("%q leaked: …%q", secret, shown.String()[max(0, i-200):min(shown.Len(), i+80)])
		}
	}
}

// workers returns the arguments and environments of our own worker processes.
func workers(t testing.TB, bridge int) string {
	t.Helper()
	var b strings.Builder
	for _, name := range []string{"akk-monitor", "akk-callback"} {
		for _, pid := range children(t, bridge, name) {
			if p, err := procinfo.Read(pid); err != nil || len(p.Args) == 0 {
				continue
			}
			for _, f := range []string{"cmdline", "environ"} {
				data, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, f))
				if err == nil {
					b.Write(bytes.ReplaceAll(data, []byte{0}, []byte{'\n'}))
				}
			}
		}
	}
	return b.String()
}
