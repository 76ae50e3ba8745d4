package agent

import "github.com/agent-knock-knock/akk/internal/turn"

// CodeMayAsk is the Code of an [turn.ObsActivity] after which the agent may ask its person
// something at any moment, such as the call of a tool: the screen is worth several looks at
// once. It is a hint between an adapter and its watch, and goes no further.
const CodeMayAsk = "may_ask"

// MayAsk reports whether o is worth a look at the screen at once.
func MayAsk(o turn.Observation) bool {
	return o.Kind == turn.ObsActivity && (o.Code == CodeMayAsk || o.Code == string(ActivityWaiting))
}
