package top

import (
	"context"
	"time"

	"github.com/agent-knock-knock/akk/internal/control"
	"github.com/agent-knock-knock/akk/internal/doctor"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/store"
)

// lookLimit bounds one look: a Bridge that hangs must not freeze the picture.
const lookLimit = 5 * time.Second

// Eye looks at one Store and the running Bridges of this user. It is for one goroutine.
type Eye struct {
	StoreDir string
	Places   []string  // where Bridges may have their sockets; the first is our own
	db       *store.DB // opened at the first look that finds a Store
}

// Look never fails: what cannot be asked or read is in the Snapshot. Neither hides the other.
func (e *Eye) Look(ctx context.Context) Snapshot {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	s := Snapshot{StoreDir: e.StoreDir}
	found := control.AskAll(ctx, e.Places)
	s.Bridges = doctor.Bridges(found.Answers, time.Now())
	if err := found.Unseen(); err != nil {
		_, s.Unasked, _ = fault.Public(err)
	}
	if err := e.read(ctx, &s); err != nil && !fault.Is(err, fault.NotFound) {
		_, s.Unread, _ = fault.Public(err)
	}
	return s
}

func (e *Eye) read(ctx context.Context, s *Snapshot) (err error) {
	if e.db == nil {
		if e.db, err = store.Open(ctx, e.StoreDir, store.Options{ReadOnly: true}); err != nil {
			return err
		}
	}
	return e.db.View(ctx, s.Read)
}

// Close closes the Store.
func (e *Eye) Close() error {
	if e.db == nil {
		return nil
	}
	return e.db.Close()
}
