// Package version holds the build identity and the numbers that two of our processes,
// or a process and a file on disk, must agree on.
package version

// Version is the release, set by the linker (-X). "dev" marks a build without a release.
var Version = "dev"

const (
	// Wire is the go-plugin protocol version between the Bridge and its workers. A
	// half-updated install fails at the handshake because of it.
	Wire = 1
	// WriterProtocol fences writers: a Store whose stored number is higher than ours is
	// readable and never written.
	WriterProtocol = 1
)
