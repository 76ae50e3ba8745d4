// Package catalogue is the one table of the terminal tools: their names, in the order in
// which a Host sees them. The order is part of the contract; the number of tools is a
// consequence of the table.
//
// It owns names and order. What a tool does is its wing's.
package catalogue

// Prefix begins every tool's name.
const Prefix = "agent_knock_knock_"

// Names are the tools of every Host Bridge, in order, without the prefix.
var Names = []string{
	"list", "watch", "unwatch", "list_resumable_threads", "native_inspect", "model_options", "set_model", "new_thread",
	"reconcile_binding", "resume_thread", "status", "send", "respond", "respond_interaction", "approve", "renew",
	"retry_callback", "cancel", "close",
}

// Extended are the tools that an administrator adds with --tools extended; they follow
// the others.
var Extended = []string{
	"repair_model_control", "identify_foreground", "identify_and_send", "permission_options", "set_permissions",
}

// Order is every tool's whole name in its place.
func Order() []string {
	out := make([]string, 0, len(Names)+len(Extended))
	for _, n := range append(append([]string{}, Names...), Extended...) {
		out = append(out, Prefix+n)
	}
	return out
}
