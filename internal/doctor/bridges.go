package doctor

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/agent-knock-knock/akk/internal/control"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/procinfo"
	"github.com/agent-knock-knock/akk/internal/supervise"
	"github.com/agent-knock-knock/akk/internal/version"
)

// silentAfter is how long a worker may be silent before that is a problem: a Bridge
// replaces one after less.
const silentAfter = 15 * time.Second

// restartsMany is how many restarts of one worker say that something is wrong with it.
const restartsMany = 5

// restartsOver is the age of a process from which earlier restarts are history; the
// supervisor begins its back-off anew then, too.
const restartsOver = time.Minute

// BridgeState is one running Bridge.
type BridgeState struct {
	BridgeID    string        `json:"bridge_id"`
	Place       string        `json:"place"` // the folder of its socket; "" for one that cannot be asked
	PID         int           `json:"pid,omitempty"`
	Version     string        `json:"version,omitempty"`
	Host        string        `json:"host,omitempty"`
	HostVersion string        `json:"host_version,omitempty"`
	ProfileID   string        `json:"profile_id,omitempty"`
	Revision    string        `json:"profile_revision,omitempty"`
	Fingerprint string        `json:"profile_fingerprint,omitempty"`
	StoreDir    string        `json:"store_dir,omitempty"`
	StartedAt   time.Time     `json:"started_at,omitzero"`
	Memory      uint64        `json:"memory_bytes,omitempty"` // resident; 0 when the system does not tell
	Problem     string        `json:"problem,omitempty"`
	Advice      string        `json:"advice,omitempty"`
	Workers     []WorkerState `json:"workers"`
}

// WorkerState is one worker of a Bridge.
type WorkerState struct {
	Name          string    `json:"name"`
	Serves        string    `json:"serves"`
	State         string    `json:"state"`
	PID           int       `json:"pid,omitempty"`
	AgeSeconds    int64     `json:"age_seconds"`
	Memory        uint64    `json:"memory_bytes,omitempty"`
	LastHeartbeat time.Time `json:"last_heartbeat,omitzero"`
	Restarts      int       `json:"restarts"`
	Fingerprint   string    `json:"fingerprint,omitempty"`
	LastError     string    `json:"last_error,omitempty"`
	Problem       string    `json:"problem,omitempty"`
	Advice        string    `json:"advice,omitempty"`
}

// Bridges is the state of every Bridge that answered, or should have.
func Bridges(answers []control.Answer, now time.Time) []BridgeState {
	out := []BridgeState{}
	for _, a := range answers {
		if fault.Is(a.Err, fault.NotFound) {
			continue // its socket is all that is left of it
		}
		out = append(out, bridgeState(a, now))
	}
	return out
}

func bridgeState(a control.Answer, now time.Time) BridgeState {
	b := BridgeState{BridgeID: string(a.BridgeID), Place: filepath.Dir(a.Socket), Workers: []WorkerState{}}
	if a.Err != nil {
		_, b.Problem, b.Advice = fault.Public(a.Err)
		b.PID, b.Memory = a.PID, residentBytes(a.PID)
		if p, err := procinfo.Read(a.PID); a.PID > 0 && err == nil && p.Stopped() {
			b.Problem += fmt.Sprintf(": its process %d is stopped", a.PID)
			b.Advice = fmt.Sprintf("let it go on (kill -CONT %d) or end it (kill -KILL %d)", a.PID, a.PID)
		}
		return b
	}
	d := a.Description
	b.PID, b.Version, b.Host, b.HostVersion, b.ProfileID, b.Revision, b.Fingerprint = d.PID, d.Version, d.Host, d.HostVersion, d.ProfileID, d.ProfileRevision, d.ProfileFingerprint
	b.StoreDir, b.StartedAt, b.Memory = d.StoreDir, d.StartedAt, residentBytes(d.PID)
	switch {
	case d.WireVersion != version.Wire:
		b.Problem, b.Advice = fmt.Sprintf("it speaks wire version %d, this program %d", d.WireVersion, version.Wire), "restart the Bridge; the install changed under it"
	case d.ProfileDrift != "":
		b.Problem, b.Advice = d.ProfileDrift, "raise the Profile's revision and restart the Bridge; until then nothing is sent and no callback runs"
	case !d.StoreWritable:
		b.Problem, b.Advice = "its Store was written by a newer release; it can only read", "install that release, then restart the Bridge"
	}
	for _, w := range d.Workers {
		b.Workers = append(b.Workers, workerState(w, d, now))
	}
	return b
}

func workerState(w supervise.WorkerStatus, bridge control.Description, now time.Time) WorkerState {
	out := WorkerState{Name: w.Name, Serves: w.Serves, State: string(w.State), PID: w.PID, AgeSeconds: int64(w.Age / time.Second), LastHeartbeat: w.LastHeartbeat,
		Restarts: w.Restarts, Fingerprint: w.Fingerprint, LastError: w.LastError, Memory: residentBytes(w.PID)}
	switch {
	case w.State == supervise.StateBackoff:
		out.Problem, out.Advice = "it ended and waits to be started again", "see its last error; if it stays, look at the Bridge's log"
	case w.State == supervise.StateUnhealthy:
		out.Problem, out.Advice = "it says that it does not serve", "the Bridge replaces it by itself"
	case w.State == supervise.StateServing && now.Sub(w.LastHeartbeat) > silentAfter:
		out.Problem, out.Advice = fmt.Sprintf("silent for %s", now.Sub(w.LastHeartbeat).Round(time.Second)), fmt.Sprintf("the Bridge itself may be frozen: look at process %d, and at %d, which is the Bridge", w.PID, bridge.PID)
	case w.Fingerprint != "" && w.Fingerprint != bridge.ProfileFingerprint:
		out.Problem, out.Advice = "it serves another Profile fingerprint than its Bridge", "restart the Bridge"
	case w.Restarts >= restartsMany && w.Age < restartsOver:
		out.Problem, out.Advice = fmt.Sprintf("%d restarts", w.Restarts), "see its last error"
	}
	return out
}

// bridges adds every Bridge with its workers to the report, and every place that was not
// looked into.
func (m Machine) bridges(r *MachineReport, found control.Found, left []unasked) {
	for _, p := range found.Passed {
		if p.Own {
			r.putErr(CheckBridge, Unchecked, p.Err)
			continue
		}
		_, problem, hint := fault.Public(p.Err)
		r.put(CheckBridge, Warned, hint+"; a Bridge of yours in it is not seen", "passed over %s: %s", p.Place, problem)
	}
	r.Bridges = Bridges(found.Answers, time.Now())
	for _, u := range left {
		r.Bridges = append(r.Bridges, u.state(m.StoreDir))
	}
	for _, b := range r.Bridges {
		r.bridge(b)
	}
	if len(r.Bridges) == 0 && len(found.Passed) == 0 {
		r.put(CheckBridge, OK, "", "no Bridge runs now; a Host starts one when it needs it. Looked into %s", strings.Join(m.Places, ", "))
	}
}

// bridge adds the rows of one Bridge.
func (r *MachineReport) bridge(b BridgeState) {
	switch {
	case b.Place == "": // what is not known is neither well nor ill
		r.put(CheckBridge, Unchecked, b.Advice, "%s: %s", b.BridgeID, b.Problem)
		return
	case b.Problem != "":
		r.put(CheckBridge, Failed, b.Advice, "%s in %s: %s", b.BridgeID, b.Place, b.Problem)
		return
	}
	sick := 0
	for _, w := range b.Workers {
		if w.Problem != "" {
			sick++
			r.put(CheckBridge, Failed, w.Advice, "%s, %s for %s: %s", b.BridgeID, w.Name, w.Serves, w.Problem)
		}
	}
	if sick == 0 {
		r.put(CheckBridge, OK, "", "%s of %s (pid %d, in %s): %d workers, all well", b.BridgeID, b.Host, b.PID, b.Place, len(b.Workers))
	}
}
