// Package fakehost plays a Host for tests: its callback program, its Host Profile and
// its MCP connection to a Bridge, and it counts what is left alive afterwards.
//
// The callback program is a real executable that notes every call before it answers, and
// answers as the test wants at that moment. Everything a test starts through this
// package carries CASE_ID=<id> in its environment, so that [Survivors] finds it later,
// also when it was handed to another parent. The package knows the product only by its
// command line, its tools and its Profile format.
package fakehost
