package mcpserver

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

const (
	// MaxFrame is the longest line that is accepted, in bytes without its newline.
	MaxFrame = 4 << 20
	// headBytes is how much of a longer line is kept to look for its id.
	headBytes  = 4 << 10
	readBuffer = 64 << 10
)

// errLongFrame says that a line was above the limit. The frame returned with it is the
// head of the line; the rest was skipped.
var errLongFrame = errors.New("the line is longer than the limit")

var byteOrderMark = []byte("\xef\xbb\xbf")

// frameReader splits a stream into lines. It holds at most limit bytes of one line.
type frameReader struct {
	r     *bufio.Reader
	limit int
	line  int // number of the last line, from 1
}

func newFrameReader(r io.Reader, limit int) *frameReader {
	return &frameReader{r: bufio.NewReaderSize(r, readBuffer), limit: limit}
}

// next returns the next line that is not blank, without its end of line and without a
// byte order mark. The last line needs no newline. The slice is the caller's to keep. The
// error is errLongFrame or what the stream returned.
func (f *frameReader) next() ([]byte, error) {
	for {
		frame, err := f.readLine()
		if err != nil && !errors.Is(err, errLongFrame) && len(frame) == 0 {
			return nil, err
		}
		f.line++
		frame = bytes.TrimPrefix(frame, byteOrderMark)
		frame = bytes.Trim(frame, " \t\r")
		if errors.Is(err, errLongFrame) {
			return frame, err
		}
		if len(frame) > 0 {
			return frame, nil // an error of the stream comes again with the next line
		}
	}
}

// readLine reads up to and without the next newline.
func (f *frameReader) readLine() ([]byte, error) {
	var line []byte
	for {
		part, err := f.r.ReadSlice('\n')
		whole := err == nil
		if whole {
			part = part[:len(part)-1]
		}
		if len(line)+len(part) > f.limit {
			head := append(line, part...)
			head = bytes.Clone(head[:min(len(head), headBytes)])
			if !whole && !errors.Is(err, bufio.ErrBufferFull) {
				return head, errLongFrame
			}
			if !whole {
				f.skip()
			}
			return head, errLongFrame
		}
		line = append(line, part...)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		return line, err
	}
}

// skip reads to the end of the line. An error of the stream comes again with the next read.
func (f *frameReader) skip() {
	for {
		if _, err := f.r.ReadSlice('\n'); !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}
