// Package coordination embeds the coordination ledger in a Go program: projects, work,
// assignments, evidence and handoffs in a file or in memory, and an MCP server over them
// for any transport.
//
// The ledger coordinates and runs nothing. Three kinds of methods change assignments:
//
//   - the leased ones ([Service.ClaimAssignmentWithLease] and those named WithClaim) are
//     what a portable worker may call; the claim id that a claim returns is the fence of
//     every later write;
//   - [Service.UpdateQueuedAssignment] and the handoff methods are compare-and-set edits
//     for operators;
//   - [Service.ClaimAssignment], [Service.PrepareAssignment], [Service.ReleaseAssignment],
//     [Service.UpdateAssignmentStatus] and [Service.CompleteAssignment] are the authority
//     of the embedding host. They know no fence: never make one a tool of an agent.
//
// Errors answer errors.Is with [ErrNotFound], [ErrInvalid], [ErrDuplicate] and
// [ErrConflict], and [ClassifyErrorCode] gives the code that a tool would answer.
//
// The contract is alpha: it may change between releases.
package coordination

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ledger"
	"github.com/agent-knock-knock/akk/internal/ledger/coord"
	"github.com/agent-knock-knock/akk/internal/ledger/ledgerserver"
	"github.com/agent-knock-knock/akk/internal/ledger/ledgersql"
	"github.com/agent-knock-knock/akk/internal/ledger/ledgertools"
	"github.com/agent-knock-knock/akk/internal/ledger/skillfind"
	"github.com/agent-knock-knock/akk/internal/store"
)

// The codes of a failure; see [ClassifyErrorCode].
const (
	ErrorCodeNotFound      = string(fault.NotFound)
	ErrorCodeInvalid       = string(fault.Invalid)
	ErrorCodeAlreadyExists = string(fault.AlreadyExists)
	ErrorCodeConflict      = string(fault.Conflict)
	ErrorCodeInternal      = string(fault.Internal)
)

// The classes of a refusal, for errors.Is.
var (
	ErrNotFound  error = &fault.Error{Code: fault.NotFound}
	ErrInvalid   error = &fault.Error{Code: fault.Invalid}
	ErrDuplicate error = &fault.Error{Code: fault.AlreadyExists}
	ErrConflict  error = &fault.Error{Code: fault.Conflict}
)

// ClassifyErrorCode returns the code of an error, "" for nil, and internal for everything
// that is not the caller's.
func ClassifyErrorCode(err error) string { return string(coord.Classify(err)) }

// Service is a ledger. Its methods are safe for concurrent use, also beside other
// processes on the same file.
type Service = coord.Service

// Option changes a Service.
type Option = coord.Option

// WithAssignmentClaimLeaseTTL sets the term of claims: rounded up to whole seconds, at
// least one; zero and less keep the default of five minutes.
func WithAssignmentClaimLeaseTTL(ttl time.Duration) Option {
	return coord.WithAssignmentClaimLeaseTTL(ttl)
}

// NewMemoryService returns a ledger that ends with the process.
func NewMemoryService(options ...Option) *Service {
	// Nothing of an empty ledger in memory waits, so that its constructor needs no context.
	db, err := store.OpenMemory(context.Background(), store.Options{Sets: []store.Set{ledgersql.Tables()}})
	if err != nil {
		panic(err) // an empty database in memory has nothing that can be wrong but this build
	}
	return coord.New(db, options...)
}

// NewSQLiteService opens the ledger of a file, made when it is missing, with durable
// commits. Its directory must exist. Close the service when it is not needed any more.
func NewSQLiteService(ctx context.Context, path string, options ...Option) (*Service, error) {
	db, err := store.OpenFile(ctx, path, store.Options{Sets: []store.Set{ledgersql.Tables()}})
	if err != nil {
		return nil, err
	}
	return coord.New(db, options...), nil
}

// MCPServer speaks MCP for a ledger.
type MCPServer struct{ server *ledgerserver.Server }

// NewMCPServer returns a server with all tools, resources and views. version is what
// clients are told.
func NewMCPServer(s *Service, version string) *MCPServer {
	return &MCPServer{ledgerserver.New(s, version)}
}

// Policy is what a host leaves of a server: the tools that change nothing, the tools of a
// list, with or without the view and the discovery of skills. The zero value leaves
// everything.
type Policy = ledgertools.Policy

// Restrict leaves what a policy leaves. Call it before the first message. What is switched off
// is not shown, and a call of it is answered as one of an unknown tool; resources stay
// readable. A list that names no tool is [ErrInvalid] and changes nothing. The policy is for
// clients: the methods of [Service] stay the host's.
func (m *MCPServer) Restrict(p Policy) error { return m.server.Restrict(p) }

// HandleMessage serves one JSON-RPC message and returns the encoded reply. ok is false
// when there is none, as for notifications. The caller keeps the order of a connection.
func (m *MCPServer) HandleMessage(ctx context.Context, msg []byte) (reply []byte, ok bool) {
	return m.server.HandleMessage(ctx, msg)
}

// Serve reads one message a line from in and writes the replies to out in the order of
// arrival, until in ends or ctx does.
func (m *MCPServer) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	return m.server.Serve(ctx, in, out)
}

// DeclareExtension advertises a protocol extension in initialize; a nil config is sent as
// an empty object.
func (m *MCPServer) DeclareExtension(id string, config any) { m.server.DeclareExtension(id, config) }

// NormalizeSkillID is the one spelling of a skill id, "" when nothing of it can be used.
func NormalizeSkillID(id string) string { return ledger.NormalSkill(id) }

// DiscoverSkills refreshes the skill metadata of a project from its active roots. It is
// the only function that reads a root.
func DiscoverSkills(ctx context.Context, s *Service, projectID string) ([]Skill, error) {
	return s.DiscoverSkills(ctx, projectID, skillfind.Finder{})
}

// DecodeSnapshot reads the JSON of a snapshot. A retired execution_ref, a bare string, is
// refused with [ErrInvalid].
func DecodeSnapshot(b []byte) (Snapshot, error) {
	var s Snapshot
	if err := json.Unmarshal(b, &s); err != nil {
		return s, fault.Wrap(err, fault.Invalid, "coordination.snapshot", "the snapshot cannot be decoded: rebuild it from the host's own data")
	}
	return s, nil
}
