// Package fakeacp plays an agent of the Agent Client Protocol on stdin and stdout, for
// tests. What it does in a turn is written in the prompt:
//
//	hello                 answers "echo:hello"
//	PERM; HOLD 2; SAY ok  one step after another, each a keyword and its arguments
//
// The steps (a prompt that begins with none of them is echoed):
//
//	SAY text            a message chunk                 ECHO text    "echo:text"
//	HOLD [seconds]      waits; without a number until cancelled
//	HANG                never answers unless cancelled  IGNORE-CANCEL  never answers at all
//	LATE                a chunk 50 ms after the answer  TWICE  answers twice
//	GARBAGE [text]      a line that is not JSON         OBJECT  the line 42
//	NOTIFY, VENDOR      an unknown, a vendor's notification
//	UNKNOWN-RESPONSE, NULL-ID-ERROR, UNKNOWN-UPDATE, UNKNOWN-CANCEL
//	BIG n               n MiB of text in 64 chunks      LINE n  one line of exactly n bytes
//	STREAM n rate       n chunks, rate a second         TOOLSTREAM n rate  the same with tool updates
//	PERM, PERM3, PERMS n   1, 3, n permission requests at once; PERM-NOREJECT, PERM-ALWAYS
//	INFO, ELICIT-FORM, ELICIT-URL, ELICIT-BAD-MODE, WITHDRAW
//	FSWRITE, FSREAD path, TERMINAL command, UNKNOWN-REQUEST
//	TOOLS, DIFF path, PLAN, THOUGHT text, GROUPS, USAGE, COST, OPTIONS, MODE id, TITLE text, COMMANDS
//	STOP reason, ERR code [message], EXIT code, CRASH, SPAWN, FORK n, STDERR text
//	CWD, ENV name, ARGS   what it was started with
//
// The answer of a question is said as text: "[allowed:id]", "[denied:id]", "[cancelled]",
// "[accept:{…}]", "[decline]", "[cancel]", "[error:code]".
//
// The package is written from the protocol alone and uses nothing of the product, so that
// it is an independent peer.
package fakeacp
