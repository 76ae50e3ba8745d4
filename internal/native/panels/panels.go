// Package panels is the use cases of an agent's own command panels: looking at its status,
// its models and its permissions, and choosing in them. A panel is opened by one command
// and one Enter in a terminal that is proved idle, read or walked one proved key at a
// time, and left again.
//
// It changes no Turn, Session or Store, and takes no command from anybody: which text is
// typed is data of the agent's adapter. What the screen says beyond that data is
// unsupported and gets no key. It knows no MCP and no agent's screen.
package panels

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/clock"
	"github.com/agent-knock-knock/akk/internal/discover"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/keyboard"
	"github.com/agent-knock-knock/akk/internal/offer"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/turn/dispatch"
)

// The diagnostics of spec part 2.5. As the code of an error one proves that nothing was
// typed; in a [Trouble] it says what could not be proved after that.
const (
	UnsupportedProfile               = agent.PanelsUnsupported
	CapabilityUnavailable fault.Code = "capability_unavailable"
	IdentityUnverified    fault.Code = "identity_unverified"
	ComposerNotReady      fault.Code = "composer_not_ready"
	ViewportTooNarrow     fault.Code = "viewport_too_narrow"
	ViewportUnavailable   fault.Code = "viewport_unavailable"
	TextUnproven          fault.Code = "text_delivery_unproven"
	ComposerNotExact      fault.Code = "composer_not_exact"
	ComposerDrift         fault.Code = "composer_drift"
	EvidenceUnproven      fault.Code = "evidence_unproven"
	EnterUnproven         fault.Code = "enter_uncertain"
)

// CodeNoOffer: the call needs what another tool shows first.
const CodeNoOffer fault.Code = "offer_required"

// CodeBusy: another operation of this Bridge uses the terminal's panels.
const CodeBusy fault.Code = "terminal_busy"

// CodeNeedsPerson: only a person may choose this.
const CodeNeedsPerson fault.Code = "needs_person"

// Bounds.
const (
	// Budget bounds one operation, so that its tool answers within 10 s.
	Budget = 7 * time.Second
	// rescueLimit bounds the way out of a panel that went wrong.
	rescueLimit = 1500 * time.Millisecond
	// ProofLife is how long an identification says something.
	ProofLife = 30 * time.Second
)

// Sender submits a task. [dispatch.Service] is one.
type Sender interface {
	// Replay returns the result of a call that was carried out before.
	Replay(ctx context.Context, callID, request string) (dispatch.SendResult, bool, error)
	Send(ctx context.Context, in dispatch.SendInput) (dispatch.SendResult, error)
}

// Config is what a Service needs. All fields but Log, Budget and Sender are required.
type Config struct {
	DB   *store.DB
	Desk keyboard.Desk
	// Sender is for [Service.IdentifyAndSend] alone.
	Sender Sender
	Clock  clock.Clock
	// Extended says that the extended tools are there; rows then name them.
	Extended bool
	// Budget bounds one operation; 0 is the constant.
	Budget time.Duration
	Log    *slog.Logger
}

// Service is the use cases. Its methods are safe for concurrent use.
type Service struct {
	Config
	models      *offer.Book[modelOffer]
	permissions *offer.Book[agent.Permissions]
	proofs      *offer.Book[Identity]

	mu   sync.Mutex
	busy map[string]string // terminal key → the operation that uses it
}

// New returns a Service.
func New(c Config) *Service {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Budget == 0 {
		c.Budget = Budget
	}
	return &Service{
		Config: c, busy: map[string]string{},
		models:      offer.New[modelOffer](c.Clock, offer.Life),
		permissions: offer.New[agent.Permissions](c.Clock, offer.Life),
		proofs:      offer.New[Identity](c.Clock, ProofLife),
	}
}

// claim takes the terminal's panels for one operation of this process. The lock of the
// pane keeps out other processes.
func (s *Service) claim(t discover.Terminal, operation string) (release func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if by, taken := s.busy[t.Key()]; taken {
		return nil, fault.New(CodeBusy, "panels."+operation, "%s is used by a call of %s", t.ID, by).WithHint("call again when that has answered")
	}
	s.busy[t.Key()] = operation
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.busy, t.Key())
	}, nil
}

// target is the key of offers: what was shown of one thread in one terminal.
func target(t discover.Terminal) string { return t.Key() + "|" + t.Native.ThreadID }
