package proc

import (
	"errors"
	"io"
	"os"
)

// A program's input is a file that holds all of it before the program starts, never a
// pipe: the death of whoever writes a pipe looks like its end, and the program would take
// half a text, or none, for the whole.

// fill writes b to f, from where a program is to read it.
func fill(f *os.File, b []byte) (*os.File, error) {
	_, err := f.Write(b)
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// unlinked is an input file without a name.
func unlinked(b []byte) (*os.File, error) {
	f, err := os.CreateTemp("", "akk-input-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return fill(f, b)
}
