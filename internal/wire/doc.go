// Package wire is the only meeting point of the Bridge and its workers: it starts a
// worker binary, shakes hands with it, gives it the Profile and the route, and carries
// observations and callback jobs over gRPC. Both sides of the contract are here.
//
// Every call into go-plugin is bounded here and ends, when it must, with a kill of the
// worker's process group: go-plugin alone waits for ever for a stopped worker. The
// package decides nothing: it knows no rule of a Turn, no retry of a delivery, no Store,
// and it restarts nothing (package supervise does).
package wire

import (
	"time"

	"github.com/hashicorp/go-plugin"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/version"
)

// The codes of this package. Fault codes that other packages share are used as they are:
// [fault.Unavailable] from [Callback.Deliver] proves that the program was not started.
const (
	// CodeBinary: the worker's program is missing or is not a worker of this product.
	CodeBinary fault.Code = "worker_binary_unavailable"
	// CodeVersion: the worker speaks another wire version.
	CodeVersion fault.Code = "worker_version_mismatch"
	// CodeStart: the worker was started and did not become ready.
	CodeStart fault.Code = "worker_start_failed"
	// CodeFingerprint: the worker computed another Profile fingerprint than the Bridge.
	CodeFingerprint fault.Code = "host_profile_fingerprint_mismatch"
	// CodeNotServing: the worker says of itself that it is not healthy.
	CodeNotServing fault.Code = "worker_not_serving"
	// CodeLost: the worker ended or its connection broke.
	CodeLost fault.Code = "worker_lost"
	// CodeUncertain: the callback program may have run and its outcome is unknown.
	CodeUncertain fault.Code = "callback_outcome_unknown"
)

// The bounds of this package. All are well under what a person waits for.
const (
	StartLimit     = 10 * time.Second        // spawn to a usable connection
	callLimit      = 3 * time.Second         // one small call to a worker
	readyLimit     = 5 * time.Second         // job sent to "ready" heard
	DeliverLimit   = 45 * time.Second        // "start" sent to outcome heard; a profile allows 30 s
	graceLimit     = 1500 * time.Millisecond // orderly end of a worker before its group is killed
	killLimit      = 1500 * time.Millisecond // group kill to everything released
	HeartbeatEvery = 4 * time.Second         // pace of a monitor's heartbeats
	// StopLimit is the longest that Stop of a worker takes.
	StopLimit = graceLimit + killLimit
)

// The limits on what is carried.
const (
	maxMessage    = 4 << 20   // bytes of one gRPC message, both ways
	maxDocument   = 256 << 10 // bytes of a profile document
	maxPasted     = 1 << 20   // bytes of a request text
	maxBody       = 1 << 20   // bytes of a callback body
	maxShort      = 4 << 10   // bytes of an id, a path, a title
	maxEntries    = 256       // entries of a list or a map
	maxUnacked    = 32        // observations a monitor sends before it waits for the Bridge
	maxDeliveries = 16        // callback programs at once in one worker
)

// kind is a worker program.
type kind string

const (
	kindMonitor  kind = "akk-monitor"
	kindCallback kind = "akk-callback"
)

// handshake differs by kind, so that one program in the place of the other is noticed.
// The cookie is no secret and no protection; AutoMTLS is.
func (k kind) handshake() plugin.HandshakeConfig {
	return plugin.HandshakeConfig{
		ProtocolVersion:  version.Wire,
		MagicCookieKey:   "AKK_WORKER",
		MagicCookieValue: string(k),
	}
}

// lifelineFD is the worker's end of the lifeline: the first of exec.Cmd.ExtraFiles.
const lifelineFD = 3
