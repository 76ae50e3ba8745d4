package harness

import (
	"encoding/json"
	"time"
)

// EventKind names an entry of a session's log.
type EventKind string

// The kinds of events. What an agent sends maps to exactly one; what has no kind is
// [EventOther].
const (
	EventSessionState EventKind = "session_state"
	EventTurnStarted  EventKind = "turn_started"
	EventText         EventKind = "text"
	EventThought      EventKind = "thought"
	EventTool         EventKind = "tool"
	EventPlan         EventKind = "plan"
	EventUsage        EventKind = "usage"
	EventOptions      EventKind = "options_changed"
	EventMode         EventKind = "mode_changed"
	EventCommands     EventKind = "commands_changed"
	EventAsked        EventKind = "question_opened"
	EventAnswered     EventKind = "question_answered"
	EventWithdrawn    EventKind = "question_withdrawn"
	EventNotice       EventKind = "notice"
	EventStray        EventKind = "stray_output"
	EventLate         EventKind = "late_update"
	EventSettled      EventKind = "turn_settled"
	EventAuth         EventKind = "authentication"
	EventExited       EventKind = "agent_exited"
	EventRestarted    EventKind = "agent_restarted"
	EventOther        EventKind = "other"
)

// Event is one entry of a session's ordered log. Seq counts from 1 without gaps and is the
// cursor of a reader.
type Event struct {
	Seq       int64           `json:"seq"`
	Kind      EventKind       `json:"kind"`
	MessageID string          `json:"message_id,omitempty"`
	At        time.Time       `json:"at"`
	Data      json.RawMessage `json:"data,omitempty"`
}
