// Package transcript reads the JSONL transcripts of Claude Code: complete lines from a
// byte offset on, and what their records prove of one turn.
//
// Membership in a turn is a matter of parentUuid, never of position or time: the agent
// writes batches in which records of several turns stand in any order. The package waits
// for nothing, watches nothing and emits nothing; observations are values.
package transcript
