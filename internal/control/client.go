package control

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	controlv1 "github.com/agent-knock-knock/akk/proto/akk/control/v1"
)

// Answer is what came back from one Bridge's socket.
type Answer struct {
	BridgeID ids.BridgeID // from the socket's name
	Socket   string
	// Description is empty but for the PID when there is an Err: the process that listens,
	// where the system tells it.
	Description
	// Err says why there is no Description: fault.NotFound when nobody listens any more (a
	// Bridge that was killed), fault.Timeout when the Bridge does not answer.
	Err error
}

// Found is what a look into several places found.
type Found struct {
	Answers []Answer
	Passed  []Passed
}

// Passed is a place that was not looked into, and why: it is not a private directory of
// this user.
type Passed struct {
	Place string
	Err   error
	Own   bool // a Bridge of the first place would be in it
}

// Unseen says why the Bridges of our own place could not be looked for; doctor names the
// other places.
func (f Found) Unseen() error {
	for _, p := range f.Passed {
		if p.Own {
			return p.Err
		}
	}
	return nil
}

// AskAll asks every Bridge in every place, in the order of the places, and in the one that
// Bridges take whose place is too long. Two names of one directory are one place.
func AskAll(ctx context.Context, places []string) (f Found) {
	var seen []fs.FileInfo
	for _, place := range withShort(places) {
		info, err := os.Stat(place)
		if err == nil {
			if slices.ContainsFunc(seen, func(s fs.FileInfo) bool { return os.SameFile(s, info) }) {
				continue
			}
			seen = append(seen, info)
		}
		answers, err := Ask(ctx, place)
		if err != nil {
			f.Passed = append(f.Passed, Passed{place, err, place == ownPlace(places[0])})
		}
		f.Answers = append(f.Answers, answers...)
	}
	return f
}

// Ask asks every Bridge of this user that has a socket below base, in the order of their
// ids, within askLimit each. No directory means no Bridge. It follows no link, enters
// nothing that somebody else may write to, and makes nothing.
func Ask(ctx context.Context, base string) ([]Answer, error) {
	const op = "control.ask"
	if _, err := os.Lstat(base); errors.Is(err, fs.ErrNotExist) {
		return nil, blocked(base)
	}
	for _, d := range []string{filepath.Dir(base), base} {
		if err := private(d); err != nil {
			return nil, err
		}
	}
	entries, err := os.ReadDir(base)
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, op, "cannot look for Bridges in %s: %v", base, rootCause(err)).
			WithHint("make it readable for its user (chmod 700 %s) and check its disk", base)
	}
	var out []Answer
	for _, e := range entries {
		if id, ok := strings.CutSuffix(e.Name(), suffix); ok {
			out = append(out, Answer{BridgeID: ids.BridgeID(id), Socket: filepath.Join(base, e.Name())})
		}
	}
	if len(out) > maxBridges {
		return nil, fault.New(fault.Invalid, op, "%s has %d sockets, at most %d are asked", base, len(out), maxBridges).WithHint("remove what is left of old Bridges")
	}
	slices.SortFunc(out, func(a, b Answer) int { return strings.Compare(string(a.BridgeID), string(b.BridgeID)) })
	var wg sync.WaitGroup
	slots := make(chan struct{}, maxAtOnce)
	for i := range out {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			out[i].Description, out[i].Err = ask(ctx, out[i].Socket)
		})
	}
	wg.Wait()
	return out, nil
}

func ask(ctx context.Context, socket string) (Description, error) {
	const op = "control.ask"
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	pid, err := listening(socket)
	if err != nil {
		return Description{}, err
	}
	nobody := Description{PID: pid}
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()), // the file's permissions are the credential
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer)))
	if err != nil {
		return nobody, fault.Wrap(err, fault.Internal, op, "cannot use %s", socket).WithHint("give the runtime folder another name, by AKK_RUNTIME_DIR")
	}
	defer conn.Close()
	h, err := grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: controlv1.ControlService_ServiceDesc.ServiceName})
	if status.Code(err) == codes.Unavailable {
		if _, gone := listening(socket); fault.Is(gone, fault.NotFound) {
			return Description{}, gone // it ended meanwhile
		}
	}
	if err != nil {
		return nobody, silent(err, pid)
	}
	if s := h.GetStatus(); s != grpc_health_v1.HealthCheckResponse_SERVING {
		return nobody, fault.New(fault.Unavailable, op, "the Bridge says %s", s).
			WithHint("it is ending: ask again in a moment; if it stays so, end %s", Process(pid))
	}
	p, err := controlv1.NewControlServiceClient(conn).Describe(ctx, &controlv1.DescribeRequest{})
	if err != nil {
		return nobody, fault.Wrap(err, fault.Unavailable, op, "the Bridge does not describe itself").
			WithHint("it may be of another release: restart it with this one, or ask it with its own doctor")
	}
	return fromProto(p), nil
}

// silent is the failure of a Bridge that listens and does not answer.
func silent(err error, pid int) error {
	return fault.Wrap(err, fault.Timeout, "control.ask", "the Bridge does not answer within %s", askLimit).
		WithHint("it may be frozen or starting; look at %s, and end it if it stays so", Process(pid))
}

// Process names a process whose pid may be unknown.
func Process(pid int) string {
	if pid > 0 {
		return fmt.Sprintf("process %d", pid)
	}
	return "its process"
}

// listening tells a socket that a killed Bridge left from one that is served, and by which
// process, 0 when the system does not tell.
func listening(socket string) (pid int, err error) {
	const op = "control.ask"
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return 0, fault.Wrap(err, fault.Internal, op, "cannot make a socket: %v", err).WithHint("look at the limit of open files (ulimit -n)")
	}
	defer unix.Close(fd)
	// A frozen Bridge's queue may be full of those who asked before: to wait for a place in
	// it would be to wait for ever.
	if err := unix.SetNonblock(fd, true); err != nil {
		return 0, fault.Wrap(err, fault.Internal, op, "cannot use a socket: %v", err).WithHint("try again")
	}
	switch err := unix.Connect(fd, &unix.SockaddrUnix{Name: socket}); {
	case errors.Is(err, unix.ECONNREFUSED), errors.Is(err, os.ErrNotExist):
		return 0, fault.Wrap(err, fault.NotFound, op, "the Bridge of %s is gone", filepath.Base(socket))
	case errors.Is(err, unix.EAGAIN):
		return 0, silent(err, 0)
	case err != nil:
		return 0, fault.Wrap(err, fault.Unavailable, op, "cannot connect to %s: %v", socket, err).
			WithHint("remove it if it is no socket; else make it its user's own (chmod 600 %s)", socket)
	}
	return peer(fd), nil
}

func rootCause(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// Sweep removes the sockets that killed Bridges left below base. It is called by a Bridge
// that starts; a socket that somebody serves is never touched.
func Sweep(base string) {
	entries, err := os.ReadDir(base)
	if err != nil {
		return
	}
	for _, e := range entries {
		path := filepath.Join(base, e.Name())
		if !strings.HasSuffix(e.Name(), suffix) {
			continue
		}
		if _, err := listening(path); fault.Is(err, fault.NotFound) {
			_ = os.Remove(path) // another Bridge that starts may have been faster
		}
	}
}
