// Package claude is the adapter for Claude Code in a tmux pane.
//
// It owns everything that is known of Claude Code: how its processes look, where its
// status file and transcripts are and what their records mean, how its screens read, and
// which text it takes as a command. All names, glyphs and limits that a release may change
// are data in package known; captures are read by package screen, transcripts by package
// transcript, and this package joins them with processes and file events.
//
// Claude Code has no machine channel in an interactive pane, so the package has no
// Submitter: it proves a composer and reads records; who types is decided elsewhere. It
// must never know a rule of a Turn, a Store, a Host or tmux commands, and it writes none
// of the agent's files.
package claude
