package procinfo

import "sort"

// Table is the process table at one moment. It is immutable and safe for concurrent use.
type Table struct {
	procs    map[int]Process
	children map[int][]int // sorted
}

// newTable indexes rows. A pid that occurs twice keeps its last row: a listing that spans
// an exit and a reuse of the pid reports the newer process last.
func newTable(rows []Process) *Table {
	t := &Table{procs: make(map[int]Process, len(rows)), children: make(map[int][]int, len(rows)/2)}
	for _, p := range rows {
		t.procs[p.PID] = p
	}
	for pid, p := range t.procs {
		t.children[p.PPID] = append(t.children[p.PPID], pid)
	}
	for _, c := range t.children {
		sort.Ints(c)
	}
	return t
}

// Len is the number of processes.
func (t *Table) Len() int { return len(t.procs) }

// Get returns the process with this pid. false says that no readable row had the pid, not
// that a process is dead: ask [Alive] for that.
func (t *Table) Get(pid int) (Process, bool) {
	p, ok := t.procs[pid]
	return p, ok
}

// All returns every process in the order of pids.
func (t *Table) All() []Process {
	out := make([]Process, 0, len(t.procs))
	for _, p := range t.procs {
		out = append(out, p)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].PID < out[j].PID })
	return out
}

// Children returns the direct children in the order of pids.
func (t *Table) Children(pid int) []Process {
	ids := t.children[pid]
	out := make([]Process, 0, len(ids))
	for _, id := range ids {
		if id != pid {
			out = append(out, t.procs[id])
		}
	}
	return out
}

// Descends reports whether pid is ancestor itself or below it.
func (t *Table) Descends(pid, ancestor int) bool {
	// The walk is bounded by the table's size, so a loop in a torn listing ends.
	for range len(t.procs) + 1 {
		if pid == ancestor {
			_, ok := t.procs[pid]
			return ok
		}
		p, ok := t.procs[pid]
		if !ok || p.PPID == 0 || p.PPID == pid {
			return false
		}
		pid = p.PPID
	}
	return false
}

// Descendants returns everything below pid, without pid itself, each parent before its
// children (depth first, children in the order of pids).
func (t *Table) Descendants(pid int) []Process {
	var out []Process
	seen := map[int]bool{pid: true}
	var walk func(int)
	walk = func(p int) {
		for _, c := range t.children[p] {
			if seen[c] {
				continue
			}
			seen[c] = true
			out = append(out, t.procs[c])
			walk(c)
		}
	}
	walk(pid)
	return out
}
