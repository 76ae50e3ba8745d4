// Package harness holds the rules of headless agents: sessions, messages, questions,
// authentication, launch templates and what a caller may ask for.
//
// Values go in, values come out; now is an argument. The package never starts a process,
// opens a file, speaks a protocol or reads a clock, and it knows neither HTTP nor SQL nor
// the Agent Client Protocol's frames.
package harness
