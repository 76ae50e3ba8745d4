package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/testkit/fakehost"
	"github.com/agent-knock-knock/akk/internal/testkit/standin"
)

// command runs a command of the CLI on this world's Store and tmux server.
func (w *world) command(args ...string) (stdout, stderr string, code int) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), settle)
	defer cancel()
	cmd := exec.CommandContext(ctx, w.bin, args...)
	cmd.WaitDelay = time.Second
	var out, errOut strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		w.t.Fatal(err)
	}
	return out.String(), errOut.String(), cmd.ProcessState.ExitCode()
}

// meta changes a fence of the Store, as a newer release would have left it.
func (w *world) meta(set string) {
	w.t.Helper()
	db, err := store.Open(w.t.Context(), w.host.Store, store.Options{})
	if err != nil {
		w.t.Fatal(err)
	}
	defer db.Close()
	if err := db.Update(w.t.Context(), func(tx *store.Tx) error { _, err := tx.Exec("UPDATE meta SET " + set); return err }); err != nil {
		w.t.Fatal(err)
	}
}

func turns(t testing.TB, dir string) (n int) {
	t.Helper()
	db, err := store.Open(t.Context(), dir, store.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.View(t.Context(), func(tx *store.Tx) error { return tx.QueryRow("SELECT count(*) FROM turn").Scan(&n) }); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestAStoreOfANewerReleaseIsReadAndASendTypesNothing(t *testing.T) { // spec case 45
	w := newWorld(t, nil)
	p := w.agent(standin.Codex)
	c := w.start()
	term := idle(t, c).TerminalID
	first := send(t, c, term, "SAY:x")
	waitCallback(t, c, first.TurnID, "delivered")
	if code := c.Close(settle); code != 0 {
		t.Fatal(code)
	}
	w.meta("writer_protocol = 99")

	next := w.start()
	l := list(t, next)
	if l.Store.Writable || !strings.Contains(l.Store.Reason, "newer release") || strings.Contains(l.Store.Reason, w.host.Store) {
		t.Errorf("store: %+v", l.Store)
	}
	if len(l.Terminals) != 1 || l.Terminals[0].Actions["send"].Tool != "" || l.Terminals[0].Actions["status"].Tool == "" {
		t.Errorf("%s", dump(l))
	}
	if s := statusOf(t, next, first.TurnID); s.Turn.Status != "idle" {
		t.Errorf("%s", dump(s))
	}
	if len(l.Terminals[0].Actions) != 1 {
		t.Errorf("a Store that is only read offers %s", dump(l.Terminals[0].Actions))
	}
	for _, tool := range []string{"cancel", "renew", "retry_callback", "close"} {
		if res, err := next.Call(t.Context(), "agent_knock_knock_"+tool, map[string]any{"turn_id": first.TurnID}); err != nil || res.Code() != "store_incompatible" {
			t.Errorf("%s: %v %q", tool, err, res.Text)
		}
	}
	res, err := next.Call(t.Context(), "agent_knock_knock_send", map[string]any{"terminal_id": term, "request": "SAY:y"})
	if err != nil || res.Code() != "store_incompatible" || !strings.Contains(res.Text, "install") {
		t.Errorf("%v %q", err, res.Text)
	}
	p.typedOnce("SAY:x")
	if code := next.Close(settle); code != 0 {
		t.Errorf("exit %d", code)
	}
	if n := turns(t, w.host.Store); n != 1 {
		t.Errorf("%d Turns are stored", n)
	}
	out, stderr, code := w.command("list", "--json", "--store-dir", w.host.Store, "--tmux-socket", w.tmux.Socket())
	if code != 0 || !json.Valid([]byte(out)) {
		t.Errorf("list: exit %d, %s", code, stderr)
	}
}

func TestAStoreOfANewerFormatIsNotOpenedAtAll(t *testing.T) { // spec part 12.3
	w := newWorld(t, nil)
	if code := w.start().Close(settle); code != 0 {
		t.Fatal(code)
	}
	w.meta("format = 99")
	p := fakehost.Spawn(t, w.bridge())
	p.Stdin.Close()
	out := readAll(t, p.Stdout)
	if code := p.WaitExit(settle); code != 1 || out != "" {
		t.Errorf("exit %d, stdout %q", code, out)
	}
	_, stderr, code := w.command("list", "--store-dir", w.host.Store, "--tmux-socket", w.tmux.Socket())
	if code != 1 {
		t.Errorf("list: exit %d", code)
	}
	for _, line := range []string{p.Stderr(), stderr} {
		if strings.Count(line, "\n") != 1 || !strings.Contains(line, "store_incompatible") || !strings.Contains(line, "install the newer release") {
			t.Errorf("stderr %q", line)
		}
	}
}

func TestListWorksWithoutAStoreAndMakesNone(t *testing.T) { // spec part 2.1
	w := newWorld(t, nil)
	w.agent(standin.Codex)
	out, stderr, code := w.command("list", "--json", "--store-dir", w.host.Store, "--tmux-socket", w.tmux.Socket())
	var l listing
	if code != 0 || json.Unmarshal([]byte(out), &l) != nil || len(l.Terminals) != 1 {
		t.Errorf("exit %d, %s%s", code, out, stderr)
	}
	if strings.Contains(fmt.Sprint(l.Store.Reason), "()") {
		t.Errorf("reason %q", l.Store.Reason)
	}
	if _, err := store.Open(t.Context(), w.host.Store, store.Options{ReadOnly: true}); err == nil {
		t.Error("list made a Store")
	}
}
