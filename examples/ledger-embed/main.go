// Command ledger-embed is the smallest host of a coordination ledger: it queues one piece
// of work, serves the ledger as MCP on its own stdin and stdout, and tells on stderr what
// became of the work when the client is gone.
//
//	go run ./examples/ledger-embed ledger.db
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/agent-knock-knock/akk/bridge/coordination"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "ledger-embed:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	if len(os.Args) != 2 {
		return fmt.Errorf("usage: ledger-embed FILE")
	}
	service, err := coordination.NewSQLiteService(ctx, os.Args[1])
	if err != nil {
		return err
	}
	defer service.Close()
	work, err := queue(ctx, service)
	if err != nil {
		return err
	}
	if err := coordination.NewMCPServer(service, "1.0.0").Serve(ctx, os.Stdin, os.Stdout); err != nil {
		return err
	}
	after, err := service.GetAssignment(ctx, work.ProjectID, work.ID)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "%s is %s\n", after.ID, after.Status)
	return nil
}

// queue makes a project with one piece of work that any MCP client may pull.
func queue(ctx context.Context, s *coordination.Service) (coordination.Assignment, error) {
	p, err := s.CreateProject(ctx, coordination.Project{Name: "Demo"})
	if err != nil {
		return coordination.Assignment{}, err
	}
	r, err := s.CreateRole(ctx, coordination.Role{ProjectID: p.ID, Name: "Writer", Instructions: "Plain words, short sentences."})
	if err != nil {
		return coordination.Assignment{}, err
	}
	w, err := s.CreateWorkItem(ctx, coordination.WorkItem{ProjectID: p.ID, Title: "Write the release notes"})
	if err != nil {
		return coordination.Assignment{}, err
	}
	return s.CreateAssignment(ctx, coordination.Assignment{ProjectID: p.ID, WorkItemID: w.ID, RoleID: r.ID})
}
