package wire

import (
	"fmt"
	"io"

	"github.com/agent-knock-knock/akk/internal/version"
)

// PrintVersion answers "<worker> --version", so that doctor can tell a half-updated
// install before a Bridge meets it. It reports whether that was asked.
func PrintVersion(w io.Writer, name string, args []string) bool {
	if len(args) != 2 || args[1] != "--version" {
		return false
	}
	fmt.Fprintf(w, "%s %s\n", name, version.Version)
	return true
}
