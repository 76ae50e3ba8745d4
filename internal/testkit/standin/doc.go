// Package standin is a scripted stand-in for the terminal programs of Codex and Claude
// Code, for tests and demonstrations without a model, an account or a network.
//
// It behaves like the real programs where a driver can tell: a raw terminal with
// bracketed paste, the composer, the working line and the approval dialog as the real
// screens show them, the pane title and the cursor flag, and the agent's own records
// (rollout and writer lock of Codex; status file and transcript of Claude Code) with the
// fields, the order and the open files of the real ones. The prompt drives it, with the
// directives of package script.
//
// It runs no command: "RUN:touch FILE" creates that file and "RUN:echo TEXT" prints,
// everything else only pretends. It never talks to a network and knows nothing of the
// product that drives it.
//
// Environment of the program:
//
//	STANDIN_RECORD  file that gets every byte of standard input as it came
//	STANDIN_EVENTS  file that gets one JSON line for everything it did, see [Event]
//	STANDIN_GATES   folder; GATE:name waits until the file name exists in it
//	STANDIN_MODE    comma-separated bad behaviours, see [ParseMode]
//	CODEX_HOME, CLAUDE_CONFIG_DIR, HOME  as the real programs read them
package standin
