package doctor

import (
	"context"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/control"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/supervise"
)

// What a worker lived through long ago is a number, and no problem of today.
func TestRestartsOfAWorkerThatServesForLongAreHistory(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	w := supervise.WorkerStatus{Name: "akk-callback", State: supervise.StateServing, PID: 1, Restarts: restartsMany, LastHeartbeat: now, Age: restartsOver - time.Second}
	if got := workerState(w, control.Description{}, now); got.Problem == "" {
		t.Error("restarts of a young process are no problem")
	}
	w.Age = restartsOver
	if got := workerState(w, control.Description{}, now); got.Problem != "" || got.Restarts != restartsMany {
		t.Errorf("%+v", got)
	}
}

// A Store of a newer release takes no task, also while no Bridge says so.
func TestAStoreOfANewerReleaseIsAProblem(t *testing.T) {
	dir := t.TempDir()
	db, err := store.Open(t.Context(), dir, store.Options{})
	if err == nil {
		err = db.Update(t.Context(), func(tx *store.Tx) error {
			_, err := tx.Exec("UPDATE meta SET writer_protocol = 99")
			return err
		})
		if closeErr := db.Close(); err == nil {
			err = closeErr
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	var r MachineReport
	Machine{StoreDir: dir}.store(context.Background(), &r)
	if len(r.Checks) != 1 || r.Checks[0].Status != Failed || r.Checks[0].Hint == "" {
		t.Errorf("%+v", r.Checks)
	}
}
