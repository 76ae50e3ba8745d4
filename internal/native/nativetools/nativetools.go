// Package nativetools is the model's side of what belongs to the agents themselves: their
// threads, and their own panels. One file a tool, each with its description, its effect
// and a handler that only translates. No rule lives here, and nothing that carries
// authority (tokens, fingerprints, paths of ours) passes through in either direction.
package nativetools

// prefix begins every tool's name.
const prefix = "agent_knock_knock_"
