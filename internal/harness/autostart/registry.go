package autostart

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/agent-knock-knock/akk/internal/harness/logkeeper"
	"github.com/agent-knock-knock/akk/internal/redact"
)

const (
	registryName = "servers.json"
	maxRegistry  = 1 << 20
	maxServers   = 256
)

// record is what the registry says of one server that this user's clients started.
type record struct {
	ServerPID     int       `json:"server_pid"`
	SupervisorPID int       `json:"supervisor_pid"`
	LogPath       string    `json:"log_path"`
	NonceHash     string    `json:"nonce_sha256"`
	Entry         string    `json:"entry"`
	StartedAt     time.Time `json:"started_at"`
}

func hashed(nonce string) string {
	sum := sha256.Sum256([]byte(nonce))
	return hex.EncodeToString(sum[:])
}

// register writes a server into the registry. Its keys are base URLs, which hold no
// credentials; the texts under them are masked like the log. A registry that cannot be
// read is replaced: it is a convenience, and nothing is decided by it.
func register(dir, key string, r record) error {
	lock, err := logkeeper.OpenPrivate(filepath.Join(dir, registryName+".lock"), os.O_RDWR|os.O_CREATE)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := flock(lock); err != nil { // held for one small write, by clients of this user
		return err
	}
	all := readRegistry(dir)
	if len(all) >= maxServers {
		clear(all)
	}
	r.LogPath, r.Entry = clean(r.LogPath), clean(r.Entry)
	if all[key], err = json.Marshal(r); err != nil {
		return err
	}
	b, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	return logkeeper.WriteAtomic(filepath.Join(dir, registryName), append(b, '\n'))
}

// readRegistry returns what is registered, nothing when it cannot be read.
func readRegistry(dir string) map[string]json.RawMessage {
	all := map[string]json.RawMessage{}
	f, err := logkeeper.OpenPrivate(filepath.Join(dir, registryName), os.O_RDONLY)
	if err != nil {
		return all
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxRegistry))
	if err != nil || json.Unmarshal(b, &all) != nil || all == nil {
		return map[string]json.RawMessage{}
	}
	return all
}

// registered is what the registry says of an address, nothing when it says none.
func registered(dir, key string) (r record) {
	if json.Unmarshal(readRegistry(dir)[key], &r) != nil {
		return record{}
	}
	return r
}

func clean(s string) string { return string(redact.Bytes([]byte(s))) }
