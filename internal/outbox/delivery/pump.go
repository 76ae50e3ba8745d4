package delivery

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/agent-knock-knock/akk/internal/clock"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/lifecycle"
	"github.com/agent-knock-knock/akk/internal/outbox"
	"github.com/agent-knock-knock/akk/internal/store"
)

const (
	// DefaultConcurrent is how many callbacks run at once.
	DefaultConcurrent = 4
	// attemptLimit is the last bound of one attempt, below its lease. The worker has its own.
	attemptLimit = outbox.Lease - 20*time.Second
	// drainLimit is how long Stop waits for callbacks that run.
	drainLimit = 8 * time.Second
	// cancelLimit is how long Stop waits after it cancelled them.
	cancelLimit = 3 * time.Second
	// storeLimit bounds the last settlement when the Bridge stops.
	storeLimit = 3 * time.Second
	// storePause follows a transaction that failed, and is the shortest pause before a
	// delivery that is due and could not be claimed.
	storePause = time.Second
	// outgrownPause follows the word that a newer release writes the Store now.
	outgrownPause = time.Hour
)

// Config is what a Pump needs. Clock, Log and MaxConcurrent may be left zero.
type Config struct {
	DB            *store.DB
	Worker        Worker
	Owner         ids.BridgeID
	Live          outbox.Route // what this Bridge serves now; decides which deliveries of dead Bridges it takes over
	Clock         clock.Clock
	Log           *slog.Logger
	MaxConcurrent int
	// Ended, when set, is called after the commit that ends an attempt or takes a delivery
	// over. It must not block.
	Ended func(outbox.Source)
}

// Pump delivers. Its methods are safe for concurrent use.
type Pump struct {
	Config
	kick    chan struct{}
	results chan result
	retries chan retryRequest
	mu      sync.Mutex
	group   *lifecycle.Group // nil before Start
	ended   chan struct{}    // closed when the loop ended
}

// New returns a Pump that does nothing until Start.
func New(c Config) *Pump {
	if c.Clock == nil {
		c.Clock = clock.System{}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.MaxConcurrent <= 0 {
		c.MaxConcurrent = DefaultConcurrent
	}
	return &Pump{
		Config: c, kick: make(chan struct{}, 1), results: make(chan result, c.MaxConcurrent),
		retries: make(chan retryRequest), ended: make(chan struct{}),
	}
}

// Start begins to deliver; call it once, after Recover. The end of ctx is a Stop that
// nobody waits for.
func (p *Pump) Start(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.group = lifecycle.NewGroup(ctx)
	p.group.Go(func(ctx context.Context) {
		defer close(p.ended)
		newLoop(p).run(ctx)
	})
}

// Stop takes no new work, waits with a bound for callbacks that run, ends those that do
// not, and settles what they brought. It may be called twice, and before Start.
func (p *Pump) Stop() {
	p.mu.Lock()
	group := p.group
	p.mu.Unlock()
	if group != nil {
		group.Stop()
	}
}

// Kick tells that a commit enqueued something. It never blocks.
func (p *Pump) Kick() {
	select {
	case p.kick <- struct{}{}:
	default: // a kick is pending already
	}
}

// loop is the one goroutine that changes deliveries of this Bridge while the Pump runs.
// Outcomes that arrive while a transaction runs are settled together in the next one.
type loop struct {
	*Pump
	work     context.Context // of the attempts: ends after the drain
	cancel   context.CancelFunc
	running  map[ids.DeliveryID][]chan<- outbox.Delivery // attempts, and who waits for them
	unsaved  []result
	asked    bool          // somebody waits for the worker
	answered chan struct{} // has room for that one answer
	granted  bool          // the next step may claim, whether or not the worker serves
	broken   bool          // a transaction failed: some claim of ours may be stored unknown to us
}

func newLoop(p *Pump) *loop {
	return &loop{Pump: p, running: make(map[ids.DeliveryID][]chan<- outbox.Delivery), answered: make(chan struct{}, 1)}
}

func (l *loop) run(ctx context.Context) {
	l.work, l.cancel = context.WithCancel(context.WithoutCancel(ctx))
	defer l.cancel()
	for ctx.Err() == nil {
		due := l.step(ctx)
		timer, stop := never()
		if !due.IsZero() {
			timer, stop = l.Clock.NewTimer(max(due.Sub(l.Clock.Now()), 0))
		}
		l.wait(ctx, timer)
		stop()
	}
	if l.asked {
		<-l.answered // soon: ctx ended
	}
	l.drain(ctx)
}

// wait returns when there may be something to do.
func (l *loop) wait(ctx context.Context, timer <-chan time.Time) {
	select {
	case <-ctx.Done():
	case <-timer:
	case <-l.kick:
	case <-l.answered:
		l.asked, l.granted = false, true
	case r := <-l.results:
		l.unsaved = append(l.unsaved, r)
		l.collect()
	case r := <-l.retries:
		l.retry(ctx, r)
	}
}

// collect takes the results that are there already.
func (l *loop) collect() {
	for {
		select {
		case r := <-l.results:
			l.unsaved = append(l.unsaved, r)
		default:
			return
		}
	}
}

func (l *loop) launch(d outbox.Delivery) {
	if _, ok := l.running[d.DeliveryID]; !ok {
		l.running[d.DeliveryID] = nil
	}
	work := l.work
	go func() { // drain waits for it, as long as it may
		r := l.attempt(work, d)
		select {
		case l.results <- r:
		case <-l.ended:
		}
	}()
}

// drain ends the attempts that run and settles them.
func (l *loop) drain(ctx context.Context) {
	ctx = context.WithoutCancel(ctx)
	for _, phase := range []struct {
		limit time.Duration
		end   func()
	}{{drainLimit, l.cancel}, {cancelLimit, func() {}}} {
		timer, stop := l.Clock.NewTimer(phase.limit)
		for late := false; !late && len(l.running) > len(l.unsaved); {
			select {
			case r := <-l.results:
				l.unsaved = append(l.unsaved, r)
			case <-timer:
				late = true
			}
		}
		stop()
		phase.end()
	}
	if n := len(l.running) - len(l.unsaved); n > 0 {
		l.Log.Error("callbacks did not end in time; the next Bridge will call them uncertain", "count", n)
	}
	if len(l.unsaved) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, storeLimit)
	defer cancel()
	settled := make(map[ids.DeliveryID]outbox.Delivery)
	if err := l.DB.Update(ctx, func(tx *store.Tx) error { return l.settle(tx, settled) }); err != nil {
		l.Log.Error("outcomes of callbacks could not be stored; the next Bridge will call them uncertain", "count", len(l.unsaved), "error", err)
		return
	}
	l.forget(settled)
}

func never() (<-chan time.Time, func()) { return nil, func() {} }
