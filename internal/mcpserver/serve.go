package mcpserver

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/toolkit"
)

// Config is one session.
type Config struct {
	Name     string // of the server, as the Host sees it
	Version  string
	Registry *toolkit.Registry
	// Resources is what can be read beside the tools; nil for nothing. A read is not
	// ordered behind tool calls that are in flight.
	Resources Resources
	// In and Out are the Host's streams. An *os.File is never blocked on and keeps its
	// flags; anything else must be an io.Closer, because only closing it ends a Read or
	// Write that waits. Serve does not close files.
	In       io.Reader
	Out      io.Writer
	Log      *slog.Logger
	Instance ids.BridgeID
	// OnReady is called once, on its own goroutine, when the Host has initialized the
	// session or made its first call in the stateless era. It must return soon. It may
	// be nil.
	OnReady func()
}

// Serve runs one session until its input ends or ctx does, and then drains it; see the
// package comment. It returns nil after an orderly end in which every request was
// answered and written, an error with code [DrainExceeded] or [HostGone] otherwise. It
// returns at most DrainLimit + CancelGrace + a second after the end. ctx does not reach
// the handlers of tools.
func Serve(ctx context.Context, cfg Config) error {
	in, closeIn, err := openSource(cfg.In)
	if err != nil {
		return fault.Wrap(err, fault.Internal, "mcpserver.serve", "the input cannot be watched")
	}
	defer closeIn()
	out, closeOut, err := openSink(cfg.Out)
	if err != nil {
		return fault.Wrap(err, fault.Internal, "mcpserver.serve", "the output cannot be watched")
	}
	defer closeOut()

	stopping, stop := context.WithCancel(ctx)
	defer stop()
	c := &conn{
		base:      context.WithoutCancel(ctx),
		log:       cfg.Log,
		calls:     cfg.Registry.Open(cfg.Instance, cfg.Log),
		in:        in,
		frames:    newFrameReader(in, MaxFrame),
		out:       newWriter(out),
		pending:   newInflight(),
		asks:      newAsks(),
		resources: cfg.Resources != nil,
		stopped:   stopping.Done(),
		finished:  make(chan struct{}),
	}
	var running sync.WaitGroup
	running.Go(func() { // the end of ctx, or of the output, ends the input
		select {
		case <-stopping.Done():
		case <-c.out.dead:
			stop()
		}
		in.stop()
		c.enforceEnd(out)
	})

	ready := &readiness{f: cfg.OnReady}
	session, err := newServer(cfg, c, ready).Connect(ctx, c, nil)
	if err != nil { // our Connect never fails, and the SDK's adds nothing that can
		close(c.finished)
		stop()
		running.Wait()
		return fault.Wrap(err, fault.Internal, "mcpserver.serve", "the session could not start")
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		// The error repeats what finish returned to the SDK.
		_ = session.Wait()
		ready.wait()
	}()
	<-c.finished
	stop()
	running.Wait()
	return c.settle(gone)
}

// enforceEnd makes writing fail when the drain is not over DrainLimit after a stop: the
// reader itself may be held by a queue that nobody empties.
func (c *conn) enforceEnd(out sink) {
	timer := time.NewTimer(DrainLimit)
	defer timer.Stop()
	select {
	case <-c.finished:
	case <-timer.C:
		out.abort()
	}
}

// settle gives handlers whose contexts have ended their last time and returns the result
// of the session. A handler that ignores its context cannot be ended: the caller exits.
func (c *conn) settle(gone <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(c.base, CancelGrace)
	defer cancel()
	late := c.calls.Drain(ctx) != nil
	select {
	case <-gone:
	case <-ctx.Done():
		late = true
	}
	if late {
		c.log.Error("something did not end after its context did", "grace", CancelGrace)
		if c.result == nil {
			return fault.New(DrainExceeded, "mcpserver.serve", "the session did not end within %s after its drain", CancelGrace)
		}
	}
	return c.result
}

func openSource(r io.Reader) (source, func(), error) {
	file, ok := r.(*os.File)
	if !ok {
		return &plainSource{r: r}, func() {}, nil
	}
	s, err := newStopper()
	if err != nil {
		return nil, nil, err
	}
	f := &fileSource{file: file, fd: int(file.Fd()), stopper: s}
	return f, f.close, nil
}

func openSink(w io.Writer) (sink, func(), error) {
	if w == nil {
		return nil, nil, errors.New("no output")
	}
	file, ok := w.(*os.File)
	if !ok {
		return plainSink{w: w, stall: WriteStall}, func() {}, nil
	}
	s, err := newStopper()
	if err != nil {
		return nil, nil, err
	}
	f := &fileSink{file: file, fd: int(file.Fd()), stall: WriteStall, stopper: s}
	return f, f.close, nil
}

// readiness calls a function once.
type readiness struct {
	f    func()
	once sync.Once
	wg   sync.WaitGroup
}

func (r *readiness) reached() {
	r.once.Do(func() {
		if r.f != nil {
			r.wg.Go(r.f)
		}
	})
}

func (r *readiness) wait() { r.wg.Wait() }

var _ mcp.Transport = (*conn)(nil)
