// Package control is the operator's view of running Bridges: each serves, on a private
// unix socket, who it is and how its workers do, and this package asks them all.
//
// It owns the sockets' place, their permissions and the bounds of a question. It changes
// nothing in a Bridge, knows no Turn and no Store, and a Bridge that does not answer is
// an answer too.
package control

import (
	"time"

	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/supervise"
)

const (
	// askLimit bounds one question to one Bridge: it answers from memory.
	askLimit = 2 * time.Second
	// maxBridges bounds how many sockets are asked, maxAtOnce how many at a time.
	maxBridges = 256
	maxAtOnce  = 8
	// maxAnswer bounds an answer, in bytes: 1,000 workers are about 300 KB.
	maxAnswer = 4 << 20

	suffix = ".sock"
)

// Description is what a Bridge says of itself.
type Description struct {
	BridgeID           ids.BridgeID             `json:"bridge_id"`
	PID                int                      `json:"pid"`
	Version            string                   `json:"version"`
	WireVersion        int                      `json:"wire_version"`
	Host               string                   `json:"host"`
	HostVersion        string                   `json:"host_version"`
	ProfileID          string                   `json:"profile_id"`
	ProfileRevision    string                   `json:"profile_revision"`
	ProfileFingerprint string                   `json:"profile_fingerprint"`
	ProfileDrift       string                   `json:"profile_drift,omitempty"`
	StoreDir           string                   `json:"store_dir"`
	StoreWritable      bool                     `json:"store_writable"`
	StartedAt          time.Time                `json:"started_at"`
	Workers            []supervise.WorkerStatus `json:"workers"`
}
