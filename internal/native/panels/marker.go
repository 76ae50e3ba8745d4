package panels

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/agent-knock-knock/akk/internal/discover"
	"github.com/agent-knock-knock/akk/internal/fault"
)

// marker is the file that says, while a panel is open, that it was we who opened it. It
// outlives a Bridge that was killed in between; nothing else could tell our panel from a
// person's. It lies beside the lock of the pane.
type marker struct {
	path string
	key  string
}

// mark is what the file holds.
type mark struct {
	Terminal string    `json:"terminal"`
	Command  string    `json:"command"`
	At       time.Time `json:"at"`
}

const (
	// markLife is how long a panel is taken for ours: a person may have closed it and
	// opened one of their own since.
	markLife = 10 * time.Minute
	maxMark  = 4096
)

func (s *Service) markerOf(t discover.Terminal) marker {
	sum := sha256.Sum256([]byte(t.Key()))
	return marker{filepath.Join(s.Desk.LockDir, "panel-"+hex.EncodeToString(sum[:16])+".json"), t.Key()}
}

// put must succeed before the first byte is typed.
func (m marker) put(command string, now time.Time) error {
	text, err := json.Marshal(mark{m.key, command, now})
	if err == nil {
		err = os.WriteFile(m.path, text, 0o600)
	}
	if err != nil {
		return fault.Wrap(err, fault.Unavailable, "panels.mark", "the panel cannot be marked as ours in %s", filepath.Dir(m.path)).
			WithHint("nothing was typed; make the directory writable")
	}
	return nil
}

func (m marker) drop() { os.Remove(m.path) } // an error: it is not there

// get returns the mark of this very terminal if it is young enough to mean something.
func (m marker) get(now time.Time) (mark, bool) {
	f, err := os.Open(m.path)
	if err != nil {
		return mark{}, false
	}
	defer f.Close()
	var got mark
	text, err := io.ReadAll(io.LimitReader(f, maxMark))
	if err != nil || json.Unmarshal(text, &got) != nil {
		return mark{}, false
	}
	age := now.Sub(got.At)
	return got, got.Terminal == m.key && got.Command != "" && age >= 0 && age < markLife
}
