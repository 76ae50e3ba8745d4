// Package crashpoint names the boundaries of a submission and of a delivery at which tests
// stop a process, kill it, or make its disk fail.
//
// A build without the tag "crashpoint" holds none of it: every function is empty and is
// compiled away together with its arguments. With the tag, the folder "crash" beside the
// program says what happens; the names of its files are in [Folder]. The package knows no
// Turn and no Store, and no product code may depend on what it does.
package crashpoint

// The points, in the order of a task.
const (
	SendReserve    = "send.reserve"    // proved idle; nothing is stored
	SendReserved   = "send.reserved"   // Turn and route are stored; no monitor
	SendArmed      = "send.armed"      // the monitor follows the agent's records
	SendProved     = "send.proved"     // proved once more under the lock of the pane
	SendInjecting  = "send.injecting"  // text_injected is stored; nothing is typed
	SendPasted     = "send.pasted"     // the text is in the composer
	SendDrafted    = "send.drafted"    // the composer shows it; Enter is next
	SendEntered    = "send.entered"    // Enter was pressed; that is not stored
	SendSent       = "send.sent"       // enter_dispatched is stored
	MonitorSaw     = "monitor.saw"     // the monitor has read it; the Bridge has not heard; of a kind
	Observed       = "observe.arrived" // the Bridge has heard it; it is not stored; of a kind
	ObserveStored  = "observe.stored"  // state, event and callback are stored; of a kind
	ObserveAcked   = "observe.acked"   // the monitor knows that; of a kind
	OutboxClaimed  = "outbox.claimed"  // the attempt is stored as started; the worker knows nothing
	WorkerStart    = "worker.start"    // the worker has the job; no program runs
	WorkerEnded    = "worker.ended"    // the program has answered; the Bridge has not heard
	OutboxAnswer   = "outbox.answer"   // the Bridge has the outcome; it is not stored
	OutboxSettled  = "outbox.settled"  // the outcome is stored
	StoreCommit    = "store.commit"    // inside the write transaction, with its lock, before the commit
	StoreCommitted = "store.committed" // after it
	StoreMigrate   = "store.migrate"   // inside the transaction of a migration, before its commit
)

// Folder is the name of the folder beside the program. A file "hold.<point>" makes the
// next process that comes to the point rename it to "held.<point>.<pid>" and wait until
// that is gone; a number in it is how often the point is passed before. A file
// "fail.<point>" makes [Err] return the error that it names: ENOSPC, EIO or EROFS.
const Folder = "crash"
