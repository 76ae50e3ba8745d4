package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/redact"
)

// Output says for whom a command writes.
type Output struct {
	JSON  bool // one JSON document; else a table for people
	Color bool // ANSI colours are welcome; never with JSON
}

func addJSONFlag(cmd *cobra.Command, value *bool) {
	cmd.Flags().BoolVar(value, "json", false, "print one JSON document even on a terminal")
}

// outputFor: people sit at terminals, programs read everything else. NO_COLOR
// (https://no-color.org) and TERM=dumb turn colours off.
func outputFor(cmd *cobra.Command, asJSON bool, deps Deps) Output {
	if asJSON || !deps.IsTerminal(cmd.OutOrStdout()) {
		return Output{JSON: true}
	}
	noColor, _ := deps.LookupEnv("NO_COLOR")
	term, _ := deps.LookupEnv("TERM")
	return Output{Color: noColor == "" && term != "dumb"}
}

func writeAll(w io.Writer, data []byte) error {
	if _, err := w.Write(data); err != nil {
		return fault.Wrap(err, fault.Unavailable, "cli.write", "stdout cannot be written").WithHint("check where the output goes")
	}
	return nil
}

func writeJSON(w io.Writer, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return fault.Wrap(err, fault.Internal, "cli.write", "a result cannot be encoded")
	}
	return writeAll(w, b.Bytes())
}

// Cell is one text of a table in one colour.
type Cell struct{ text, color string }

const (
	colorReset = "\x1b[0m"
	colorRed   = "\x1b[31m"
	colorGreen = "\x1b[32m"
	colorDim   = "\x1b[2m"
	colorBold  = "\x1b[1m"
	maxCell    = 1024 // bytes
	columnGap  = "  "
)

// Plain, Red, Green and Dim make cells. A cell is made one safe line: control characters
// of a title or a path cannot steer the terminal.
func Plain(text string) Cell { return Cell{text: redact.Line(text, maxCell)} }

// Red marks what failed.
func Red(text string) Cell { return Cell{redact.Line(text, maxCell), colorRed} }

// Green marks what is well.
func Green(text string) Cell { return Cell{redact.Line(text, maxCell), colorGreen} }

// Dim marks what may be skipped.
func Dim(text string) Cell { return Cell{redact.Line(text, maxCell), colorDim} }

// Table is aligned text for people.
type Table struct{ rows [][]Cell }

// NewTable returns a table with a heading.
func NewTable(heading ...string) *Table {
	row := make([]Cell, len(heading))
	for i, text := range heading {
		row[i] = Cell{text, colorBold}
	}
	return &Table{rows: [][]Cell{row}}
}

// Row adds a row of as many cells as the heading has.
func (t *Table) Row(cells ...Cell) { t.rows = append(t.rows, cells) }

// Write writes the table; the last column is not padded. Widths count characters, so
// double-width scripts may stand out of line.
func (t *Table) Write(w io.Writer, out Output) error {
	widths := make([]int, len(t.rows[0]))
	for _, row := range t.rows {
		for i, c := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(c.text))
		}
	}
	var b strings.Builder
	for _, row := range t.rows {
		var line strings.Builder
		for i, c := range row {
			text := c.text
			pad := widths[i] - utf8.RuneCountInString(text)
			if out.Color && c.color != "" && text != "" {
				text = c.color + text + colorReset
			}
			line.WriteString(text)
			if i < len(row)-1 {
				line.WriteString(strings.Repeat(" ", pad) + columnGap)
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return writeAll(w, []byte(b.String()))
}
