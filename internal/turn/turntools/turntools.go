// Package turntools is the model's side of Turns: one file a tool, each a row of the
// catalogue with its description, its effect and a handler that only translates. No rule
// lives here, and nothing that carries authority (routes, anchors, fingerprints, paths of
// ours) passes through in either direction.
package turntools

import (
	"github.com/agent-knock-knock/akk/internal/toolkit"
	"github.com/agent-knock-knock/akk/internal/turn/dispatch"
)

// prefix begins every tool's name.
const prefix = "agent_knock_knock_"

// Register adds the tools in the catalogue's order, which is part of the contract.
func Register(r *toolkit.Registry, s *dispatch.Service) {
	registerList(r, s)
	registerStatus(r, s)
	registerSend(r, s)
	registerRespond(r, s)
	registerRespondInteraction(r, s)
	registerApprove(r, s)
	registerRenew(r, s)
	registerRetry(r, s)
	registerCancel(r, s)
	registerClose(r, s)
}
