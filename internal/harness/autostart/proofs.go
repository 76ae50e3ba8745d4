package autostart

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/agent-knock-knock/akk/internal/harness/client"
	"github.com/agent-knock-knock/akk/internal/harness/logkeeper"
)

// maxProofs bounds what is looked at of a client directory.
const maxProofs = 1000

// proofs reads what the supervisors of a client directory left there, by their nonces.
func proofs(dir string) map[string]logkeeper.Proof {
	paths, err := filepath.Glob(logkeeper.ProofFile(dir, "*"))
	if err != nil || len(paths) > maxProofs {
		return nil
	}
	out := map[string]logkeeper.Proof{}
	for _, path := range paths {
		nonce := strings.TrimPrefix(filepath.Base(path), "proof-")
		if p, ok := logkeeper.ReadProof(dir, nonce); ok {
			out[nonce] = p
		}
	}
	return out
}

// sweep removes the proofs of supervisors that are gone: one that was killed could not. A
// number that another process has now keeps its file until that one ends too.
func sweep(dir string) {
	for nonce, p := range proofs(dir) {
		if p.SupervisorPID > 1 && errors.Is(syscall.Kill(p.SupervisorPID, 0), syscall.ESRCH) {
			_ = os.Remove(logkeeper.ProofFile(dir, nonce)) // the next start tries again
		}
	}
}

// adopt registers a server of this user's whose starter was killed before it could. A server
// that no supervisor of this directory proves is left out: it is reused and nothing more.
func (s *Starter) adopt(pong client.Pong) {
	dir := s.Settings.ClientDir
	if registered(dir, s.Settings.Key()).ServerPID == pong.PID {
		return
	}
	for nonce, p := range proofs(dir) {
		if p.ServerPID != pong.PID {
			continue
		}
		r := record{ServerPID: p.ServerPID, SupervisorPID: p.SupervisorPID, LogPath: filepath.Join(dir, "server-"+s.fileName()+".log"),
			NonceHash: hashed(nonce), StartedAt: time.Now().UTC()}
		if err := register(dir, s.Settings.Key(), r); err != nil {
			s.Log.Warn("the registry of servers cannot be written", "err", err)
		}
		return
	}
}
