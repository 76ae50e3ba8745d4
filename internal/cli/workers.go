package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/agent-knock-knock/akk/internal/doctor"
	"github.com/agent-knock-knock/akk/internal/redact"
)

func newWorkers(deps Deps) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "workers",
		Short: "List the worker processes of every running Bridge",
		Long: "List each akk-monitor and akk-callback of every running Bridge of this user: what it serves, the fingerprint of its Profile, its process,\n" +
			"age, memory, last sign of life and restarts. On a narrow terminal ids are shown by their ends.",
		Example: "  agent-knock-knock workers\n" +
			"  agent-knock-knock workers --json",
		Args: argCount(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			bridges, err := deps.Bridges(cmd.Context())
			if err != nil {
				return err
			}
			if err := interrupted(cmd); err != nil {
				return err
			}
			out := outputFor(cmd, asJSON, deps)
			if out.JSON {
				return writeJSON(cmd.OutOrStdout(), map[string]any{"bridges": bridges})
			}
			if len(bridges) == 0 {
				return writeAll(cmd.OutOrStdout(), []byte("No Bridge runs now. A Host starts one when it needs it.\n"))
			}
			return writeWorkers(cmd.OutOrStdout(), bridges, out, time.Now())
		},
	}
	addJSONFlag(cmd, &asJSON)
	return cmd
}

// The widths of a fingerprint, and of an id on a narrow terminal, in characters.
const (
	wholePrint  = 12
	narrowPrint = 8
	narrowID    = 12
)

// writeWorkers writes a row for each Bridge and, below it, one for each of its workers.
// Where the terminal has no room for whole ids their ends stand for them, as in top, and
// problems follow the table.
func writeWorkers(w io.Writer, bridges []doctor.BridgeState, out Output, now time.Time) error {
	table := workersTable(bridges, now, false)
	if n := columns(w); n == 0 || table.width() <= n {
		return table.Write(w, out)
	}
	if err := workersTable(bridges, now, true).Write(w, out); err != nil {
		return err
	}
	for _, b := range bridges {
		if err := writeProblem(w, b.BridgeID, b.Problem); err != nil {
			return err
		}
		for _, k := range b.Workers {
			if err := writeProblem(w, k.Name+" for "+k.Serves, problemOf(k)); err != nil {
				return err
			}
		}
	}
	return nil
}

func workersTable(bridges []doctor.BridgeState, now time.Time, narrow bool) *Table {
	heading := []string{"PROCESS", "SERVES", "PROFILE", "STATE", "PID", "AGE", "MEMORY", "HEARD", "RESTARTS", "PROBLEM"}
	id, prints := func(s string) string { return s }, wholePrint
	if narrow {
		heading = append(heading[:8], "N")
		id, prints = end, narrowPrint
	}
	table := NewTable(heading...)
	row := func(problem string, cells ...Cell) {
		table.Row(append(cells, Red(problem))[:len(heading)]...)
	}
	for _, b := range bridges {
		row(b.Problem, Plain(id(b.BridgeID)), Plain(id(b.Host)), fingerprint(b.Fingerprint, prints), stateOf("serving", "problem", b.Problem), number(b.PID),
			Plain(span(now.Sub(b.StartedAt), b.StartedAt)), memory(b.Memory), Plain(""), Plain(""))
		for _, k := range b.Workers {
			row(problemOf(k), Plain(k.Name), Plain(id(k.Serves)), fingerprint(k.Fingerprint, prints), stateOf(k.State, k.State, k.Problem), number(k.PID),
				Plain(short(time.Duration(k.AgeSeconds)*time.Second)), memory(k.Memory), Plain(span(now.Sub(k.LastHeartbeat), k.LastHeartbeat)), Plain(fmt.Sprint(k.Restarts)))
		}
	}
	return table
}

// problemOf is what is wrong with a worker, else what was the last thing wrong with it.
func problemOf(k doctor.WorkerState) string {
	if k.Problem != "" {
		return k.Problem
	}
	return k.LastError
}

func stateOf(well, sick, problem string) Cell {
	if problem != "" {
		return Red(sick)
	}
	return Green(well)
}

func writeProblem(w io.Writer, of, problem string) error {
	if problem == "" {
		return nil
	}
	return writeAll(w, []byte(redact.Line("-> "+of+": "+problem, maxCell)+"\n"))
}

// fingerprint is the beginning of one, without the name of its hash.
func fingerprint(s string, n int) Cell {
	s = strings.TrimPrefix(s, "sha256:")
	if s == "" {
		return Dim("-")
	}
	return Plain(s[:min(len(s), n)])
}

// end is the end of an id, where ids differ.
func end(id string) string {
	r := []rune(id)
	if len(r) <= narrowID {
		return id
	}
	return "…" + string(r[len(r)-narrowID+1:])
}

// columns is how wide the terminal is, 0 for anything else.
func columns(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok {
		return 0
	}
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	return int(size.Col)
}

// width is that of the table without the last column, which may wrap, but with its heading.
func (t *Table) width() (n int) {
	last := len(t.rows[0]) - 1
	for i := range last {
		widest := 0
		for _, row := range t.rows {
			widest = max(widest, utf8.RuneCountInString(row[i].text))
		}
		n += widest + len(columnGap)
	}
	return n + utf8.RuneCountInString(t.rows[0][last].text)
}

func number(n int) Cell {
	if n == 0 {
		return Dim("-")
	}
	return Plain(fmt.Sprint(n))
}

func memory(n uint64) Cell {
	if n == 0 {
		return Dim("-")
	}
	return Plain(fmt.Sprintf("%.1fM", float64(n)/(1<<20)))
}

// span is how long ago something was; a moment that never was is "-".
func span(d time.Duration, at time.Time) string {
	if at.IsZero() {
		return "-"
	}
	return short(d)
}

// short is a duration in one unit, such as 42s, 7m, 3h, 9d.
func short(d time.Duration) string {
	switch {
	case d < time.Second:
		return "0s"
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", d/time.Hour)
	}
	return fmt.Sprintf("%dd", d/(24*time.Hour))
}
