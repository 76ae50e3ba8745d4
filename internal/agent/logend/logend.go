// Package logend reads the end of an agent's own record file, whatever its length.
//
// It owns bytes and lines. What a line means is its caller's.
package logend

import (
	"bytes"
	"io"
	"os"
)

// Lines returns the complete, not blank lines in the last window bytes of a file. A line
// that begins before the window, and one that has no end yet, are left out.
func Lines(path string, window int64) ([][]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	from := max(0, st.Size()-window)
	buf, err := io.ReadAll(io.NewSectionReader(f, from, st.Size()-from))
	if err != nil {
		return nil, err
	}
	lines := bytes.Split(buf, []byte("\n"))
	lines = lines[:len(lines)-1] // the last one has no end yet, or is empty
	if from > 0 && len(lines) > 0 {
		lines = lines[1:]
	}
	out := lines[:0]
	for _, l := range lines {
		if len(bytes.TrimSpace(l)) > 0 {
			out = append(out, l)
		}
	}
	return out, nil
}
