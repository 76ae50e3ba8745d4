package wire

import (
	"context"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
)

// healthState is a worker's own word on its health. go-plugin registers a health service
// that always says SERVING (case S04), and a server takes only one; so interceptors
// answer in its place.
type healthState struct {
	server  *health.Server
	service string
}

// newHealthState begins as NOT_SERVING: a worker that was not configured does nothing.
func newHealthState(service string) *healthState {
	h := &healthState{server: health.NewServer(), service: service}
	h.set(false)
	return h
}

func (h *healthState) set(serving bool) {
	s := grpc_health_v1.HealthCheckResponse_NOT_SERVING
	if serving {
		s = grpc_health_v1.HealthCheckResponse_SERVING
	}
	for _, name := range []string{"", plugin.GRPCServiceName, h.service} {
		h.server.SetServingStatus(name, s)
	}
}

// shutdown says NOT_SERVING for ever.
func (h *healthState) shutdown() { h.server.Shutdown() }

func (h *healthState) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	if r, ok := req.(*grpc_health_v1.HealthCheckRequest); ok && info.FullMethod == grpc_health_v1.Health_Check_FullMethodName {
		return h.server.Check(ctx, r)
	}
	return next(ctx, req)
}

func (h *healthState) stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	if info.FullMethod != grpc_health_v1.Health_Watch_FullMethodName {
		return next(srv, ss)
	}
	var req grpc_health_v1.HealthCheckRequest
	if err := ss.RecvMsg(&req); err != nil {
		return err
	}
	return h.server.Watch(&req, &grpc.GenericServerStream[grpc_health_v1.HealthCheckRequest, grpc_health_v1.HealthCheckResponse]{ServerStream: ss})
}
