package coordination_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/agent-knock-knock/akk/bridge/coordination"
)

// queued makes a project with one queued assignment.
func queued(ctx context.Context, s *coordination.Service) coordination.Assignment {
	p, _ := s.CreateProject(ctx, coordination.Project{Name: "Demo"})
	r, _ := s.CreateRole(ctx, coordination.Role{ProjectID: p.ID, Name: "Writer"})
	w, _ := s.CreateWorkItem(ctx, coordination.WorkItem{ProjectID: p.ID, Title: "Write the notes"})
	a, _ := s.CreateAssignment(ctx, coordination.Assignment{ProjectID: p.ID, WorkItemID: w.ID, RoleID: r.ID})
	return a
}

// A worker holds work by the claim id, and a second worker learns who was first.
func ExampleService_claimAssignmentWithLease() {
	ctx := context.Background()
	s := coordination.NewMemoryService(coordination.WithAssignmentClaimLeaseTTL(90 * time.Second))
	defer s.Close()
	a := queued(ctx, s)

	a, _ = s.ClaimAssignmentWithLease(ctx, a.ProjectID, a.ID, "worker-1")
	fmt.Println(a.Status, a.Claim.ExpiresAt.Sub(a.Claim.AcquiredAt))

	_, err := s.ClaimAssignmentWithLease(ctx, a.ProjectID, a.ID, "worker-2")
	fmt.Println(errors.Is(err, coordination.ErrConflict), coordination.ClassifyErrorCode(err))

	a, _ = s.CompleteAssignmentWithClaim(ctx, a.ProjectID, a.ID, a.Claim.ID, coordination.StatusCompleted, nil)
	fmt.Println(a.Status)
	// Output:
	// claimed 1m30s
	// true conflict
	// completed
}

// An operator edits queued work only as it was read.
func ExampleService_updateQueuedAssignment() {
	ctx := context.Background()
	s := coordination.NewMemoryService()
	defer s.Close()
	a := queued(ctx, s)

	replacement := a.Coordination()
	replacement.DesiredAgent.Kind = "human"
	edit := coordination.QueuedAssignmentUpdate{Expected: a.Coordination(), ExpectedUpdatedAt: a.UpdatedAt, Replacement: replacement}
	updated, err := s.UpdateQueuedAssignment(ctx, a.ProjectID, a.ID, edit)
	fmt.Println(updated.DesiredAgent.Kind, err)

	_, err = s.UpdateQueuedAssignment(ctx, a.ProjectID, a.ID, edit) // of what is no more
	fmt.Println(errors.Is(err, coordination.ErrConflict))
	// Output:
	// human <nil>
	// true
}

// A host lets agents look at the work and record evidence, and nothing else.
func ExampleMCPServer_Restrict() {
	ctx := context.Background()
	s := coordination.NewMemoryService()
	defer s.Close()
	server := coordination.NewMCPServer(s, "1.0.0")

	err := server.Restrict(coordination.Policy{Only: []string{"assignment.next"}})
	fmt.Println(errors.Is(err, coordination.ErrInvalid), err)
	err = server.Restrict(coordination.Policy{Only: []string{"assignments.next", "evidence.*"}, NoView: true})
	fmt.Println(err)

	call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"assignments.claim","arguments":{}}}`
	reply, _ := server.HandleMessage(ctx, []byte(call))
	fmt.Println(string(reply))
	// Output:
	// true ledger: no tool is named "assignment.next" (name one as in tools/list, or a family such as assignments.*)
	// <nil>
	// {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"the host has switched off assignments.claim"}}
}

// A host mounts the tools on its own transport, one message at a time.
func ExampleMCPServer_HandleMessage() {
	ctx := context.Background()
	s := coordination.NewMemoryService()
	defer s.Close()
	server := coordination.NewMCPServer(s, "1.0.0")

	reply, ok := server.HandleMessage(ctx, []byte(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
	fmt.Println(string(reply), ok)
	_, ok = server.HandleMessage(ctx, []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`))
	fmt.Println(ok)
	// Output:
	// {"jsonrpc":"2.0","id":1,"result":{}} true
	// false
}
