// Package proc starts and ends child processes properly.
//
// It owns the traps: the kernel's parent-death signal belongs to the thread that forked
// (so one thread, kept for ever, does every start), a group is killed as a group and only
// before it was reaped, a lifeline pipe tells a child that its starter is gone, and a
// program that is not trusted to clean up runs under a runner process that kills and
// reaps every descendant, whatever session or group the descendant moved to.
//
// It must never know what a program is for: no gRPC, no callback rule, no agent, no Store.
package proc
