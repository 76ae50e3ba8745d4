package watch

// meaning is what trouble with the evidence means for a Watch.
type meaning int

const (
	unseen   meaning = iota // nothing can be seen now; the Watch stays
	given                   // the same, and the monitor reads no further: it must start anew
	anchor                  // what was anchored cannot be proved any more
	identity                // the terminal shows something else
	screen                  // the terminal cannot be read now
)

// troubles are the codes of the adapters and of the monitor. An unknown code is no proof
// of anything: the Watch stays active and says that it cannot see.
var troubles = map[string]meaning{
	"screen_unreadable": screen,
	"thread_changed":    identity,

	// Codex
	"rollout_unreadable":       given,
	"invalid_rollout_record":   anchor,
	"rollout_record_too_long":  anchor,
	"rollout_replaced":         anchor,
	"rollout_insecure":         anchor,
	"multiple_request_matches": anchor,
	"duplicate_completion":     anchor,
	"turn_left_open":           anchor,
	"server_lost":              unseen,
	"turn_lost":                unseen,

	// Claude Code
	"log_unreadable":                     given,
	"log_replaced":                       anchor,
	"log_truncated":                      anchor,
	"log_not_private":                    anchor,
	"record_too_long":                    anchor,
	"broken_record":                      anchor,
	"multiple_exact_request_acceptances": anchor,
	"end_without_answer":                 anchor,
	"turn_too_long":                      anchor,
	"idle_without_record":                unseen,
	"idle_without_end":                   unseen,
}

// codeSuperseded is the code of an interruption of which only is known that another task
// follows.
const codeSuperseded = "superseded"

// Understood reports whether the code of an observation's trouble is one that the rules
// know. Tests of the adapters ask it for each of theirs.
func Understood(code string) bool { _, ok := troubles[code]; return ok }
