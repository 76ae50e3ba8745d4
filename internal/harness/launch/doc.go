// Package launch starts the program of a headless agent and owns all that comes of it: its
// pipes, the end of its error output, and every process that it starts, wherever those
// went. Nothing of an agent is left after [Process.Close], nor after this process was
// killed.
//
// It must never know what is said on the pipes, nor what a session is. Today it starts
// programs on this machine. Containers and other hosts come behind the same
// [Process]; until then they are refused.
package launch
