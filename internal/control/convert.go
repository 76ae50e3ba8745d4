package control

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/redact"
	"github.com/agent-knock-knock/akk/internal/supervise"
	controlv1 "github.com/agent-knock-knock/akk/proto/akk/control/v1"
)

// maxLine bounds a reason, in bytes.
const maxLine = 500

func toProto(d Description) *controlv1.DescribeResponse {
	out := &controlv1.DescribeResponse{
		BridgeId: string(d.BridgeID), Pid: int64(d.PID), Version: d.Version, WireVersion: int32(d.WireVersion), Host: d.Host, HostVersion: d.HostVersion,
		ProfileId: d.ProfileID, ProfileRevision: d.ProfileRevision, ProfileFingerprint: d.ProfileFingerprint, ProfileDrift: redact.Line(d.ProfileDrift, maxLine),
		StoreDir: []byte(d.StoreDir), StoreWritable: d.StoreWritable, StartedAt: stamp(d.StartedAt),
	}
	now := time.Now()
	for _, w := range d.Workers {
		p := &controlv1.Worker{Name: w.Name, Serves: w.Serves, Pid: int64(w.PID), LastHeartbeat: stamp(w.LastHeartbeat), Restarts: int64(w.Restarts),
			Fingerprint: w.Fingerprint, State: string(w.State), LastError: redact.Line(redact.String(w.LastError), maxLine)}
		if w.PID != 0 {
			p.Since = stamp(now.Add(-w.Age))
		}
		out.Workers = append(out.Workers, p)
	}
	return out
}

func fromProto(p *controlv1.DescribeResponse) Description {
	d := Description{
		BridgeID: ids.BridgeID(p.GetBridgeId()), PID: int(p.GetPid()), Version: p.GetVersion(), WireVersion: int(p.GetWireVersion()), Host: p.GetHost(),
		HostVersion: p.GetHostVersion(), ProfileID: p.GetProfileId(), ProfileRevision: p.GetProfileRevision(), ProfileFingerprint: p.GetProfileFingerprint(),
		ProfileDrift: p.GetProfileDrift(), StoreDir: string(p.GetStoreDir()), StoreWritable: p.GetStoreWritable(), StartedAt: when(p.GetStartedAt()),
		Workers: []supervise.WorkerStatus{},
	}
	now := time.Now()
	for _, w := range p.GetWorkers() {
		s := supervise.WorkerStatus{Name: w.GetName(), Serves: w.GetServes(), PID: int(w.GetPid()), LastHeartbeat: when(w.GetLastHeartbeat()),
			Restarts: int(w.GetRestarts()), Fingerprint: w.GetFingerprint(), State: supervise.State(w.GetState()), LastError: w.GetLastError()}
		if since := when(w.GetSince()); !since.IsZero() {
			s.Age = now.Sub(since)
		}
		d.Workers = append(d.Workers, s)
	}
	return d
}

func stamp(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

func when(p *timestamppb.Timestamp) time.Time {
	if p == nil {
		return time.Time{}
	}
	return p.AsTime().Local()
}
