package logkeeper

import (
	"errors"
	"io"

	"github.com/agent-knock-knock/akk/internal/redact"
)

// chunk is what is read at once from the server.
const chunk = 64 << 10

// masker masks a stream; redact.Stream is one.
type masker interface {
	Append(dst, p []byte) []byte
	Flush(dst []byte) []byte
}

func newMasker() masker { return &redact.Stream{} }

// dropped stands where a chunk could not be masked.
const dropped = "\n[a part of the output was dropped: it could not be masked]\n"

// pump copies from to out, masked, until from ends. A chunk that cannot be masked is
// dropped. It returns only the errors of out; what is still read after one is for the
// caller to discard.
func pump(out io.Writer, from io.Reader, fresh func() masker) error {
	in := make([]byte, chunk)
	var masked []byte
	m := fresh()
	for {
		n, readErr := from.Read(in)
		if n > 0 {
			masked, m = guarded(masked[:0], m, fresh, func(dst []byte) []byte { return m.Append(dst, in[:n]) })
			if err := write(out, masked); err != nil {
				return err
			}
		}
		if readErr != nil {
			masked, _ = guarded(masked[:0], m, fresh, m.Flush)
			err := write(out, masked)
			if err == nil && !errors.Is(readErr, io.EOF) {
				return nil // a pipe that breaks has ended
			}
			return err
		}
	}
}

// guarded runs one step of a masker. One that panics is replaced, and its step is lost.
func guarded(dst []byte, m masker, fresh func() masker, step func(dst []byte) []byte) (out []byte, next masker) {
	defer func() {
		if recover() != nil {
			out, next = append(dst[:0], dropped...), fresh()
		}
	}()
	return step(dst), m
}

func write(out io.Writer, p []byte) error {
	if len(p) == 0 {
		return nil
	}
	n, err := out.Write(p)
	if err == nil && n < len(p) {
		return io.ErrShortWrite
	}
	return err
}
