package mcpserver

import "golang.org/x/sys/unix"

// writeChunk is what a pipe or socket that polls as writable takes without blocking.
const writeChunk = 4096

// redirect makes descriptor to mean what from means.
func redirect(from, to int) error { return unix.Dup3(from, to, 0) }
