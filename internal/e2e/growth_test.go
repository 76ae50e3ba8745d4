//go:build e2e

package e2e

import (
	"fmt"
	"math"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A growth table holds figures at growing sizes of one thing. What is asserted are ratios
// of one run, never times: the rounds visit every size in turn, so that a loaded machine
// slows all of them alike.
type growth struct {
	t     *testing.T
	of    string // what grows
	sizes []int
	rows  []*figure
}

// A figure is one measured thing at every size.
type figure struct {
	what, unit string
	got        [][]float64 // samples by size
	// limit is the most that the largest may be of the smallest, 0 for no limit; floor is
	// what a figure must exceed at all before its growth counts.
	limit, floor float64
	// each divides the figures by their sizes before they are compared.
	each bool
}

func newGrowth(t *testing.T, of string, sizes ...int) *growth {
	return &growth{t: t, of: of, sizes: sizes}
}

// flat adds a figure that must not grow beyond limit times, once it is above floor.
func (g *growth) flat(what, unit string, limit, floor float64) *figure {
	f := &figure{what: what, unit: unit, got: make([][]float64, len(g.sizes)), limit: limit, floor: floor}
	g.rows = append(g.rows, f)
	return f
}

// linear adds a figure that may grow with the size, but not faster by limit times.
func (g *growth) linear(what, unit string, limit, floor float64) *figure {
	f := g.flat(what, unit, limit, floor)
	f.each = true
	return f
}

func (f *figure) add(size int, v ...float64) { f.got[size] = append(f.got[size], v...) }

// timed runs do and adds how many milliseconds it took.
func (f *figure) timed(size int, do func()) {
	start := time.Now()
	do()
	f.add(size, ms(start, time.Now()))
}

// median is NaN where nothing was measured.
func (f *figure) median(size int) float64 { return quantile(f.got[size], 0.5) }

func quantile(got []float64, q float64) float64 {
	if len(got) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(got))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// ratio is the figure at the largest size that was measured as a multiple of that at the
// smallest, per unit of size when the figure may grow with it. Neither counts as less than
// the floor.
func (f *figure) ratio(sizes []int) float64 {
	value := func(i int) float64 {
		v := max(f.median(i), f.floor)
		if f.each {
			v /= float64(sizes[i])
		}
		return v
	}
	first, last := -1, -1
	for i, s := range f.got {
		if len(s) > 0 && first < 0 {
			first = i
		}
		if len(s) > 0 {
			last = i
		}
	}
	if first < 0 {
		return math.NaN()
	}
	return value(last) / value(first)
}

// report prints the table, aligned, and fails the test for what grew.
func (g *growth) report() {
	g.t.Helper()
	cells := [][]string{{g.of, "runs"}, {"---", "---"}}
	for _, n := range g.sizes {
		cells[0], cells[1] = append(cells[0], thousands(n)), append(cells[1], "---")
	}
	cells[0], cells[1] = append(cells[0], "last/first", "limit"), append(cells[1], "---", "---")
	for _, f := range g.rows {
		runs := 0
		for _, s := range f.got {
			runs = max(runs, len(s))
		}
		row := []string{f.what, strconv.Itoa(runs)}
		for i := range g.sizes {
			if v := f.median(i); math.IsNaN(v) {
				row = append(row, "-")
			} else {
				row = append(row, number(v)+" "+f.unit)
			}
		}
		ratio, limit := f.ratio(g.sizes), "-"
		if f.limit > 0 {
			if limit = "≤ " + number(f.limit); f.each {
				limit += " each"
			}
		}
		cells = append(cells, append(row, number(ratio), limit))
		if f.limit > 0 && !(ratio <= f.limit) {
			g.t.Errorf("%s: from %s to %s it grew to %.2f times; the limit is %.2f", f.what, thousands(g.sizes[0]), thousands(g.sizes[len(g.sizes)-1]), ratio, f.limit)
		}
	}
	g.t.Logf("medians\n%s", aligned(cells))
}

func aligned(cells [][]string) string {
	width := make([]int, len(cells[0]))
	for _, row := range cells {
		for i, c := range row {
			width[i] = max(width[i], len([]rune(c)))
		}
	}
	var b strings.Builder
	for _, row := range cells {
		for i, c := range row {
			fill := " "
			if c == "---" {
				fill = "-"
			}
			fmt.Fprintf(&b, "| %s%s ", c, strings.Repeat(fill, width[i]-len([]rune(c))))
		}
		b.WriteString("|\n")
	}
	return b.String()
}

// number prints three digits that count.
func number(v float64) string {
	switch {
	case v >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case v >= 0.1:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	return strconv.FormatFloat(v, 'f', 3, 64)
}

func thousands(n int) string {
	if n < 1000 {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}

// rounds calls do n times for each size, one size after the other in each round.
func (g *growth) rounds(n int, do func(size int)) {
	for range n {
		for i := range g.sizes {
			do(i)
		}
	}
}

// command runs a program to its end and returns what it printed. A command that finds
// problems exits with 1, which is no failure here.
func command(t *testing.T, env []string, bin string, args ...string) string {
	t.Helper()
	cmd := exec.Command(bin, args...)
	cmd.Env = append(cmd.Environ(), env...)
	out, err := cmd.Output()
	if err != nil && (cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != 1) {
		t.Fatalf("%s %q: %v: %s", bin, args, err, out)
	}
	return string(out)
}
