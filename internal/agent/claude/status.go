package claude

import (
	"encoding/json"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/agent/claude/known"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/pattern"
	"github.com/agent-knock-knock/akk/internal/turn"
)

// sessionIDShape is a UUID; anything else would be used in a path and is refused.
var sessionIDShape = pattern.New(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

// status is what the agent says of itself in sessions/<pid>.json. It is an internal file
// of the agent: unknown fields are ignored, and each field may be missing.
type status struct {
	PID        int    `json:"pid"`
	SessionID  string `json:"sessionId"`
	Cwd        string `json:"cwd"`
	ProcStart  string `json:"procStart"`
	Version    string `json:"version"`
	Kind       string `json:"kind"`
	Status     string `json:"status"`
	WaitingFor string `json:"waitingFor"`
}

// readStatus reads the status file at path. A file that is missing has fault.NotFound, one
// that is torn (it is rewritten in place) or too large has fault.Unavailable.
func readStatus(path string) (status, error) {
	const op = "claude.status"
	f, err := os.Open(path)
	if err != nil {
		code := fault.Unavailable
		if os.IsNotExist(err) {
			code = fault.NotFound
		}
		return status{}, fault.Wrap(err, code, op, "there is no readable status file of the agent")
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, known.MaxStatusFile+1))
	if err != nil {
		return status{}, fault.Wrap(err, fault.Unavailable, op, "the status file cannot be read")
	}
	if len(b) > known.MaxStatusFile {
		return status{}, fault.New(fault.Unavailable, op, "the status file is larger than %d bytes", known.MaxStatusFile)
	}
	var s status
	if err := json.Unmarshal(b, &s); err != nil {
		return status{}, fault.Wrap(err, fault.Unavailable, op, "the status file is not whole")
	}
	return s, nil
}

// foreign says why s is not about the process, or "". A killed agent leaves its file
// behind, and pids are reused, so the start time must agree wherever both are known as
// clock ticks.
func (s status) foreign(p turn.Incarnation) string {
	if s.PID != p.PID {
		return "the status file names another process"
	}
	if s.Kind != "" && s.Kind != known.StatusKindInteractive {
		return "the status file is of a session that is not interactive"
	}
	ticks, _, _ := strings.Cut(p.Birth, "@")
	if !decimal(s.ProcStart) || !decimal(ticks) {
		return ""
	}
	if s.ProcStart != ticks {
		return "the status file is stale: its process started at another time"
	}
	return ""
}

func decimal(s string) bool {
	_, err := strconv.ParseUint(s, 10, 64)
	return err == nil
}

// activity translates the status. It is the agent's own word and knows nothing of the
// Rewind dialog, during which it says idle: the screen must agree before input.
func (s status) activity() agent.Activity {
	switch s.Status {
	case known.StatusIdle, known.StatusShell:
		return agent.ActivityIdle
	case known.StatusBusy:
		return agent.ActivityWorking
	case known.StatusWaiting:
		return agent.ActivityWaiting
	}
	return agent.ActivityUnknown
}
