// Package overview judges what the records of the ledger add up to: the activity, brief,
// setup and health of a project, and whether a work item can be closed.
//
// Its functions take counters and the few records that are shown, and now. They change
// nothing and refuse nothing; what a record is and may become belongs to ledger.
package overview
