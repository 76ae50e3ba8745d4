package torture

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/crashpoint"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/testkit/fakehost"
	"github.com/agent-knock-knock/akk/internal/testkit/freeze"
	"github.com/agent-knock-knock/akk/internal/testkit/standin"
)

// A Bridge that is stopped inside a transaction keeps the Store locked. Another Bridge says
// so and types nothing, doctor names the process and what to do; once it is ended, or goes
// on, nothing waits for it any more. (H7, S03, L13, L15.)
func TestAFrozenOwnerOfTheStoresLockIsNamedAndADeadOneBlocksNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.host.SetMode(fakehost.Accept)
	first, spare := w.agent(standin.Codex), w.agent(standin.Claude)
	w.start()
	owner, terminal := w.c, w.ready(first)
	w.start() // of another Host session, on the same Store
	other, free := w.c, w.ready(spare)
	w.hold(crashpoint.StoreCommit, 0)
	replies := make(chan reply, 1)
	ctx, cancel := context.WithTimeout(t.Context(), callLimit+patience)
	defer cancel()
	go func() { replies <- send(ctx, owner, terminal, "SAY:frozen") }()
	w.wait("a transaction", func() bool { return w.held(crashpoint.StoreCommit) != 0 }, owner.Stderr)
	if w.held(crashpoint.StoreCommit) != owner.PID() {
		t.Fatal("the other Bridge, which has nothing to do, stores something")
	}
	freeze.Process(t, owner.PID())

	refused := send(ctx, other, free, "SAY:not yet")
	slow := refused.code == "timeout" // a machine so busy that the call did not come to the lock in time
	if !slow && (refused.code != "store_busy" || !strings.Contains(refused.said, "doctor")) || len(spare.Input(t).Raw) > 0 {
		t.Errorf("the other Bridge said %+v and its agent read %q", refused, spare.Input(t).Raw)
	}
	said, exit := w.doctor()
	if exit == 0 || !strings.Contains(said["store_lock"], fmt.Sprintf("process %d ", owner.PID())) || !strings.Contains(said["store_lock"], "stopped") ||
		!strings.Contains(said["store_lock"], fmt.Sprintf("kill -CONT %d", owner.PID())) {
		t.Errorf("exit %d, doctor said %q", exit, said["store_lock"])
	}

	owner.Signal(syscall.SIGKILL) // while it is stopped
	<-owner.Done()
	start := time.Now()
	db, err := store.Open(ctx, w.host.Store, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(ctx, func(*store.Tx) error { return nil }) // takes the lock, whatever it writes
	if took := time.Since(start); err != nil || took > 2*time.Second {
		t.Errorf("the lock of the dead owner was to be had after %v: %v", took, err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
	w.letGo()
	if got := send(ctx, other, free, "SAY:now"); got.turn == "" {
		t.Errorf("after its end: %+v\n%s", got, other.Stderr())
	}
	if took := time.Since(start); took > goneLimit {
		t.Errorf("the dead owner kept a send for %v", took)
	}
	if said, _ := w.doctor(); said["store_lock"] != "free " {
		t.Errorf("doctor still says %q", said["store_lock"])
	}
	w.settle()
	w.checkStore()
	if code := other.Close(patience); code != 0 {
		t.Errorf("exit %d", code)
	}
	w.nobodyLeft(time.Now())
}

// doctor returns what each check says, with its hint, and the exit code.
func (w *world) doctor() (said map[string]string, exit int) {
	w.tb.Helper()
	cmd := exec.CommandContext(w.tb.Context(), w.bin, "doctor", "--json", "--store-dir", w.host.Store)
	cmd.Env = append(cmd.Environ(), w.host.Env...)
	out, _ := cmd.Output() // its exit code is asked below
	var r struct {
		Checks []struct{ Name, Detail, Hint string }
	}
	if err := json.Unmarshal(out, &r); err != nil {
		w.tb.Fatalf("%v: %s", err, out)
	}
	said = map[string]string{}
	for _, c := range r.Checks {
		said[c.Name] = c.Detail + " " + c.Hint
	}
	return said, cmd.ProcessState.ExitCode()
}
