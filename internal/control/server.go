package control

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	controlv1 "github.com/agent-knock-knock/akk/proto/akk/control/v1"
)

// stopLimit bounds the end of questions that are being answered.
const stopLimit = time.Second

// Server answers for one Bridge.
type Server struct {
	path   string
	grpc   *grpc.Server
	done   chan struct{}
	health *health.Server
}

// Serve listens on the Bridge's socket below base, or in the short place when base is too
// long for one, and answers with what describe returns, until Stop. describe is called for
// each question and must not block. It also removes what killed Bridges left there.
func Serve(base string, id ids.BridgeID, describe func() Description, log *slog.Logger) (*Server, error) {
	const op = "control.serve"
	base = ownPlace(base)
	if err := dir(base); err != nil {
		return nil, err
	}
	Sweep(base)
	path := socketPath(base, id)
	l, err := listen(path)
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, op, "cannot listen on %s: %v", path, err)
	}
	s := &Server{path: path, grpc: grpc.NewServer(grpc.MaxConcurrentStreams(4), grpc.MaxRecvMsgSize(64<<10)), done: make(chan struct{}), health: health.NewServer()}
	controlv1.RegisterControlServiceServer(s.grpc, &service{describe: describe})
	grpc_health_v1.RegisterHealthServer(s.grpc, s.health)
	s.health.SetServingStatus(controlv1.ControlService_ServiceDesc.ServiceName, grpc_health_v1.HealthCheckResponse_SERVING)
	go func() {
		defer close(s.done)
		// A Bridge that ends at once may stop before it serves.
		if err := s.grpc.Serve(l); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			log.Warn("the operator's socket ended; doctor cannot ask this Bridge any more", "err", err)
		}
	}()
	return s, nil
}

// listen makes the socket under another name and moves it into place once it is listened
// on and protected: whoever finds it there and is refused knows that its Bridge is gone.
func listen(path string) (net.Listener, error) {
	early := path + newSuffix
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: early, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	if err = os.Chmod(early, 0o600); err == nil {
		err = os.Rename(early, path)
	}
	if err != nil {
		l.Close()
		_ = os.Remove(early)
		return nil, err
	}
	return l, nil
}

// Stop ends the server, removes the socket and waits for both.
func (s *Server) Stop() {
	s.health.Shutdown()
	graceful := make(chan struct{})
	go func() { s.grpc.GracefulStop(); close(graceful) }()
	t := time.NewTimer(stopLimit)
	defer t.Stop()
	select {
	case <-graceful:
	case <-t.C:
		s.grpc.Stop()
		<-graceful
	}
	<-s.done
	_ = os.Remove(s.path) // what stays is swept by the next Bridge
}

type service struct {
	controlv1.UnimplementedControlServiceServer
	describe func() Description
}

func (s *service) Describe(context.Context, *controlv1.DescribeRequest) (*controlv1.DescribeResponse, error) {
	return toProto(s.describe()), nil
}
