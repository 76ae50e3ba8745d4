package wire

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/outbox"
	callbackv1 "github.com/agent-knock-knock/akk/proto/akk/callback/v1"
)

// Callback is one akk-callback.
type Callback struct {
	*worker
	client      callbackv1.CallbackServiceClient
	fingerprint string
}

// StartCallback starts an akk-callback, configures it and sees that it is healthy. ctx
// bounds the start only. The worker ends by Stop or Kill, which must be called when err
// is nil.
func StartCallback(ctx context.Context, o Options, h Handoff) (*Callback, error) {
	if err := h.check(); err != nil {
		return nil, err
	}
	w, err := startWorker(ctx, o, kindCallback, callbackv1.CallbackService_ServiceDesc.ServiceName)
	if err != nil {
		return nil, err
	}
	c := &Callback{worker: w, client: callbackv1.NewCallbackServiceClient(w.conn)}
	if err := c.configure(ctx, h); err != nil {
		c.Kill()
		return nil, err
	}
	return c, nil
}

func (c *Callback) configure(ctx context.Context, h Handoff) error {
	err := c.call(ctx, "wire.callback.configure", func(ctx context.Context) error {
		answer, err := c.client.Configure(ctx, &callbackv1.ConfigureRequest{
			Handoff: handoffToProto(h), Environment: h.Environment, ControllerSession: h.ControllerSession,
		})
		c.fingerprint = answer.GetFingerprint()
		return err
	})
	if err != nil {
		return err
	}
	if c.fingerprint != h.Fingerprint {
		return fault.New(CodeFingerprint, "wire.callback.configure", "%s computed another Profile fingerprint", c.kind).
			WithHint("restart the Host Bridge; the three programs must come from one release")
	}
	return c.Healthy(ctx)
}

// Deliver makes one attempt. An error with [fault.Unavailable] or [fault.Invalid] proves
// that the callback program was not started; [CodeUncertain] means that it may have run.
// It returns within readyLimit plus DeliverLimit.
func (c *Callback) Deliver(ctx context.Context, job CallbackJob) (outbox.Outcome, error) {
	const op = "wire.callback.deliver"
	if err := job.check(); err != nil {
		return outbox.Outcome{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// Two answers are needed before the start: "serving" and "ready for this job". They are
	// asked for together, because each question is a delay of its own.
	health := make(chan error, 1)
	go func() { // ends within callLimit
		err := c.Healthy(ctx)
		if err != nil {
			cancel()
		}
		health <- err
	}()
	d, err := c.client.Deliver(ctx)
	if err != nil {
		cancel()
		<-health
		return outbox.Outcome{}, notStarted(err)
	}
	late := afterFunc(readyLimit, cancel)
	err = d.Send(&callbackv1.DeliverRequest{Step: &callbackv1.DeliverRequest_Job{Job: jobToProto(job)}})
	var answer *callbackv1.DeliverResponse
	if answer, err = d.Recv(); err == nil && answer.GetReady() == nil {
		err = fault.New(CodeLost, op, "the worker did not say ready")
	}
	if !late() && err == nil {
		err = fault.New(fault.Timeout, op, "the worker was not ready in time")
	}
	if err != nil {
		cancel()
	}
	if sick := <-health; err == nil || fault.Is(sick, CodeNotServing) || fault.Is(sick, fault.Timeout) {
		err = sick // else the call was only given up
	}
	if err != nil {
		if status.Code(err) == codes.InvalidArgument {
			return outbox.Outcome{}, c.callError(op, err)
		}
		return outbox.Outcome{}, notStarted(err)
	}

	// From the next line on, the program may run.
	defer afterFunc(DeliverLimit, cancel)()
	if err := d.Send(&callbackv1.DeliverRequest{Step: &callbackv1.DeliverRequest_Start{Start: &callbackv1.Start{}}}); err != nil {
		return outbox.Outcome{}, uncertain(err)
	}
	answer, err = d.Recv()
	if err != nil {
		return outbox.Outcome{}, uncertain(err)
	}
	if answer.GetOutcome() == nil {
		return outbox.Outcome{}, uncertain(fault.New(CodeLost, op, "the worker said no outcome"))
	}
	return outcomeFromProto(answer.GetOutcome())
}

func notStarted(err error) error {
	return fault.Wrap(err, fault.Unavailable, "wire.callback.deliver", "the callback worker is not available; the callback program was not started").
		WithHint("it is restarted, and the delivery is tried again")
}

func uncertain(err error) error {
	return fault.Wrap(err, CodeUncertain, "wire.callback.deliver", "the callback worker was lost after it had been told to start the program").
		WithHint("the Host may have heard it: look there before you send it again")
}
