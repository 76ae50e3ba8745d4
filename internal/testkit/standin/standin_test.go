package standin

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// limit bounds every wait of these tests; machines under load are slow.
const limit = 20 * time.Second

// pane is a stand-in in a real tmux server of its own.
type pane struct {
	t    *testing.T
	sock string
	*Setup
}

func start(t *testing.T, s *Setup, args ...string) *pane {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Fatal("tmux is not installed; install it (for example: sudo apt-get install tmux)")
	}
	p := &pane{t: t, sock: filepath.Join(t.TempDir(), "tmux"), Setup: s}
	p.tmux("-f", "/dev/null", "new-session", "-d", "-s", "s", "-x", "100", "-y", "30", s.Command(args...))
	t.Cleanup(func() { exec.Command("tmux", "-S", p.sock, "kill-server").Run() })
	return p
}

func (p *pane) tmux(args ...string) string {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), limit)
	defer cancel()
	out, err := exec.CommandContext(ctx, "tmux", append([]string{"-u", "-S", p.sock}, args...)...).CombinedOutput()
	if err != nil {
		p.t.Fatalf("tmux %v: %v: %s", args, err, out)
	}
	return string(out)
}

func (p *pane) paste(text string) {
	p.t.Helper()
	cmd := exec.Command("tmux", "-S", p.sock, "load-buffer", "-b", "b", "-")
	cmd.Stdin = strings.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil {
		p.t.Fatalf("load-buffer: %v: %s", err, out)
	}
	p.tmux("paste-buffer", "-p", "-d", "-b", "b", "-t", "s")
}

func (p *pane) key(k string) { p.t.Helper(); p.tmux("send-keys", "-t", "s", k) }

// submit pastes and presses Enter when the draft is there.
func (p *pane) submit(text string) {
	p.t.Helper()
	had := len(p.Input(p.t).Pastes)
	p.paste(text)
	p.until("the paste is read", func() bool { return len(p.Input(p.t).Pastes) > had })
	p.key("Enter")
}

func (p *pane) screen() string { p.t.Helper(); return p.tmux("capture-pane", "-p", "-t", "s") }

func (p *pane) format(f string) string {
	p.t.Helper()
	return strings.TrimRight(p.tmux("display-message", "-p", "-t", "s", f), "\n")
}

func (p *pane) until(what string, ok func() bool) {
	p.t.Helper()
	deadline := time.Now().Add(limit)
	for !ok() {
		if time.Now().After(deadline) {
			p.t.Fatalf("%s: not within %v; events %v", what, limit, p.EventLog(p.t))
		}
		<-time.After(20 * time.Millisecond)
	}
}

func (p *pane) wait(kind string, n int) Event { p.t.Helper(); return p.WaitEvent(p.t, kind, n, limit) }

// records is the conversation log, one map per line, broken lines left out.
func (p *pane) records() []map[string]any {
	p.t.Helper()
	logs := p.Logs()
	if len(logs) == 0 {
		return nil
	}
	f, err := os.Open(logs[len(logs)-1])
	if err != nil {
		p.t.Fatal(err)
	}
	defer f.Close()
	var out []map[string]any
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		var m map[string]any
		if json.Unmarshal(sc.Bytes(), &m) == nil {
			out = append(out, m)
		}
	}
	return out
}

// kinds names the records as "type/payload type/item type".
func kinds(records []map[string]any) []string {
	var out []string
	for _, r := range records {
		name := fmt.Sprint(r["type"])
		if p, ok := r["payload"].(map[string]any); ok {
			if t, ok := p["type"].(string); ok {
				name += "/" + t
			}
			if it, ok := p["item"].(map[string]any); ok {
				name += "/" + fmt.Sprint(it["type"])
			}
		}
		if s, ok := r["subtype"].(string); ok {
			name += "/" + s
		}
		out = append(out, name)
	}
	return out
}

func TestModesAreAClosedList(t *testing.T) {
	m, err := ParseMode("drop-input, late-flush=600ms+400ms,die=final")
	if err != nil || !m.DropInput || m.LateFlush != 600*time.Millisecond || m.LateRest != 400*time.Millisecond || m.DieAt != "final" {
		t.Fatalf("%+v, %v", m, err)
	}
	for _, bad := range []string{"dorp-input", "die=sometimes", "slow-start=soon", "drop-input=yes"} {
		if _, err := ParseMode(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func TestInputSeparatesPastesFromTypedKeys(t *testing.T) {
	in := ParseInput([]byte("ab\x1b[200~one\rtwo\x1b[201~\rc\r\x1b[200~cut"))
	if in.Enters != 2 || in.Typed != "abc" || len(in.Pastes) != 1 || in.Pastes[0] != "one\rtwo" {
		t.Fatalf("%+v", in)
	}
}

// dead reports whether the process has ended; a zombie has.
func dead(pid int) bool {
	out, err := exec.Command("ps", "-o", "stat=", "-p", fmt.Sprint(pid)).Output()
	return err != nil || len(out) == 0 || out[0] == 'Z'
}
