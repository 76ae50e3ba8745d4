package telemetry

import (
	"time"

	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/turn"
)

// StoryOf is what is told of a Turn: its journal as steps. Of an event only its kind, time
// and round are read. bridge is who tells it.
func StoryOf(t turn.Turn, journal []turn.Event, deliveries []Delivery, bridge ids.BridgeID) Turn {
	out := Turn{ID: string(t.ID), Agent: Code(t.Agent), Channel: Code(string(t.Channel)), Local: t.Origin == bridge, Deliveries: deliveries}
	for _, e := range journal {
		if s, ok := stepOf(e); ok {
			out.Steps = append(out.Steps, s)
		}
	}
	if len(out.Steps) == 0 || out.Steps[0].Kind != Began { // the journal was read from its middle
		began := Step{Kind: Began, At: t.CreatedAt}
		if t.Round > 0 {
			began.At, began.Round = t.RoundAt, t.Round
		}
		out.Steps = append([]Step{began}, dropBefore(out.Steps, began.At)...)
	}
	return out
}

func dropBefore(steps []Step, at time.Time) []Step {
	for i, s := range steps {
		if !s.At.Before(at) {
			return steps[i:]
		}
	}
	return nil
}

func stepOf(e turn.Event) (Step, bool) {
	s := Step{At: e.At}
	switch e.Kind {
	case turn.EvReserved, turn.EvRoundReserved:
		s.Kind = Began
		if e.Turn != nil {
			s.Round = e.Turn.Round
		}
	case turn.EvAborted:
		s.Kind, s.Code = Ended, "aborted"
	case turn.EvUncertain:
		s.Kind, s.Code = Refused, "uncertain"
	case turn.EvStalled:
		s.Kind, s.Code = Waits, "stalled"
	case turn.EvRenewed, turn.EvAnswerTaken:
		s.Kind = Resumed
	case turn.EvClosed:
		s.Kind, s.Code = Ended, "closed"
	case turn.EvObserved:
		return seenStep(s, e)
	default:
		return s, false
	}
	return s, true
}

func seenStep(s Step, e turn.Event) (Step, bool) {
	if e.Observation == nil {
		return s, false
	}
	switch o := e.Observation; {
	case o.Kind == turn.ObsAccepted:
		s.Kind = Accepted
	case o.Kind == turn.ObsNotAccepted:
		s.Kind, s.Code = Refused, "not_accepted"
	case o.Kind == turn.ObsPrompt:
		s.Kind, s.Code = Waits, "question"
	case o.Kind == turn.ObsPromptCleared:
		s.Kind = Resumed
	case o.Kind == turn.ObsGone:
		s.Kind, s.Code = Waits, "gone"
	case o.Kind == turn.ObsCompleted:
		s.Kind, s.Code = Ended, "completed"
	case o.Kind == turn.ObsFailed:
		s.Kind, s.Code = Ended, "failed"
	case o.Kind == turn.ObsInterrupted:
		s.Kind, s.Code = Ended, "interrupted"
	case o.Kind == turn.ObsTrouble && e.Message != "": // only an end is told to the Host
		s.Kind, s.Code = Ended, "cancelled"
	default:
		return s, false
	}
	return s, true
}

// Tells reports whether a plan holds a step that is told.
func Tells(p turn.Plan) bool {
	for _, e := range p.Events {
		if _, ok := stepOf(e); ok || e.Kind == turn.EvAdopted {
			return true
		}
	}
	return false
}
