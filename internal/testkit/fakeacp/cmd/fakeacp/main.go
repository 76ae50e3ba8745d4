// Command fakeacp plays an ACP agent on stdin and stdout, see package fakeacp.
package main

import (
	"os"

	"github.com/agent-knock-knock/akk/internal/testkit/fakeacp"
)

func main() {
	os.Exit(fakeacp.Main(os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr))
}
