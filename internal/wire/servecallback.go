package wire

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/outbox"
	callbackv1 "github.com/agent-knock-knock/akk/proto/akk/callback/v1"
)

// startWait is how long a worker that said ready waits for start.
const startWait = 10 * time.Second

// RunFunc makes one attempt: it runs the callback program and classifies its answer. It
// never fails: what goes wrong is an outcome.
type RunFunc func(ctx context.Context, job CallbackJob) outbox.Outcome

// PrepareFunc makes the RunFunc of a handoff, whose environment and session it keeps in
// memory only. An error refuses the handoff.
type PrepareFunc func(Handoff) (RunFunc, error)

// ServeCallback is the whole main of akk-callback: it returns when the Bridge said so or
// is gone.
func ServeCallback(ctx context.Context, prepare PrepareFunc, o ServeOptions) error {
	c := &callbackServer{
		server:  newServer(ctx, kindCallback, callbackv1.CallbackService_ServiceDesc.ServiceName, o),
		prepare: prepare, slots: make(chan struct{}, maxDeliveries),
	}
	return c.serve(func(s *grpc.Server) { callbackv1.RegisterCallbackServiceServer(s, c) })
}

type callbackServer struct {
	callbackv1.UnimplementedCallbackServiceServer
	*server
	prepare PrepareFunc
	run     RunFunc // set before the worker is configured, never changed
	slots   chan struct{}
}

func (c *callbackServer) Configure(_ context.Context, r *callbackv1.ConfigureRequest) (*callbackv1.ConfigureResponse, error) {
	h := handoffFromProto(r.GetHandoff())
	h.Environment, h.ControllerSession = r.GetEnvironment(), r.GetControllerSession()
	fp, err := c.configureWith(h, func() error {
		run, err := c.prepare(h)
		if err != nil {
			_, msg, _ := fault.Public(err)
			return status.Errorf(codes.InvalidArgument, "the handoff is not usable: %s", msg)
		}
		c.run = run
		return nil
	})
	return &callbackv1.ConfigureResponse{Fingerprint: fp}, err
}

func (c *callbackServer) Deliver(stream grpc.BidiStreamingServer[callbackv1.DeliverRequest, callbackv1.DeliverResponse]) error {
	if _, err := c.ready(); err != nil {
		return err
	}
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	default:
		return status.Error(codes.ResourceExhausted, "too many callback programs run")
	}
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	job := jobFromProto(first.GetJob())
	if err := job.check(); err != nil {
		return status.Error(codes.InvalidArgument, err.Error())
	}
	if err := stream.Send(&callbackv1.DeliverResponse{Step: &callbackv1.DeliverResponse_Ready{Ready: &callbackv1.Ready{}}}); err != nil {
		return err
	}
	if err := awaitStart(stream); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	defer context.AfterFunc(c.group.Context(), cancel)()
	outcome := make(chan outbox.Outcome, 1)
	c.group.Go(func(context.Context) { outcome <- c.run(ctx, job) })
	return stream.Send(&callbackv1.DeliverResponse{Step: &callbackv1.DeliverResponse_Outcome{Outcome: outcomeToProto(<-outcome)}})
}

// awaitStart returns nil only when the Bridge said start.
func awaitStart(stream grpc.BidiStreamingServer[callbackv1.DeliverRequest, callbackv1.DeliverResponse]) error {
	got := make(chan error, 1)
	go func() { // ends with the stream, at the latest when Deliver returns
		m, err := stream.Recv()
		if err == nil && m.GetStart() == nil {
			err = status.Error(codes.InvalidArgument, "start was expected")
		}
		got <- err
	}()
	t := time.NewTimer(startWait)
	defer t.Stop()
	select {
	case err := <-got:
		return err
	case <-t.C:
		return status.Error(codes.DeadlineExceeded, "start did not come")
	}
}
