// Command callback is the callback program of the stand-in Host, see package fakehost.
package main

import (
	"os"

	"github.com/agent-knock-knock/akk/internal/testkit/fakehost"
)

func main() {
	os.Exit(fakehost.RunCallback(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
