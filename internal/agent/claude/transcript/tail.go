package transcript

import (
	"bytes"
	"io"
	"os"

	"github.com/agent-knock-knock/akk/internal/agent/claude/known"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/turn"
)

// The codes of a transcript that cannot be followed.
const (
	CodeReplaced  fault.Code = "log_replaced"
	CodeTruncated fault.Code = "log_truncated"
	CodeUntrusted fault.Code = "log_not_private"
	CodeLongLine  fault.Code = "record_too_long"
	CodeUnread    fault.Code = "log_unreadable"
)

// Tail reads the complete lines of one file from an offset on, once each.
type Tail struct {
	Mark    turn.LogMark // Offset is where the next unread record begins
	Known   bool         // Device and Inode are those of the file
	partial []byte       // the beginning of a record whose end is not written yet
	failed  bool
}

// Read passes every line that became complete to each, with the mark of its beginning,
// and reports whether the file grew. A file that does not exist (yet) is no error. After
// an error the tail reads nothing more.
func (t *Tail) Read(each func(line []byte, at turn.LogMark) bool) (grew bool, err error) {
	const op = "claude.tail"
	if t.failed {
		return false, nil
	}
	defer func() { t.failed = err != nil }()
	f, err := os.Open(t.Mark.Path)
	if os.IsNotExist(err) {
		if t.Known {
			return false, fault.New(CodeReplaced, op, "the transcript was removed")
		}
		return false, nil
	}
	if err != nil {
		return false, fault.Wrap(err, CodeUnread, op, "the transcript cannot be opened")
	}
	defer f.Close()
	size, err := t.check(f)
	if err != nil {
		return false, err
	}
	unread := size - t.Mark.Offset - int64(len(t.partial))
	if unread == 0 {
		return false, nil // nearly every look; it needs no buffer
	}
	buf := make([]byte, min(unread+1, known.ReadChunk)) // one more byte meets the end at once
	for {
		n, err := f.ReadAt(buf, t.Mark.Offset+int64(len(t.partial)))
		if n > 0 {
			grew = true
			if more, err := t.take(buf[:n], each); err != nil || !more {
				return grew, err
			}
		}
		if err == io.EOF || err == nil && n == 0 {
			return grew, nil
		}
		if err != nil {
			return grew, fault.Wrap(err, CodeUnread, op, "the transcript cannot be read")
		}
	}
}

// check proves that f is the file that was anchored and has not shrunk, and returns its
// size.
func (t *Tail) check(f *os.File) (size int64, err error) {
	const op = "claude.tail"
	fi, err := f.Stat()
	if err != nil {
		return 0, fault.Wrap(err, CodeUnread, op, "the transcript cannot be examined")
	}
	if why := untrusted(fi); why != "" {
		return 0, fault.New(CodeUntrusted, op, "%s", why)
	}
	dev, ino := identity(fi)
	if !t.Known {
		t.Mark.Device, t.Mark.Inode, t.Known = dev, ino, true
	}
	if dev != t.Mark.Device || ino != t.Mark.Inode {
		return 0, fault.New(CodeReplaced, op, "the transcript is another file now")
	}
	if fi.Size() < t.Mark.Offset+int64(len(t.partial)) {
		return 0, fault.New(CodeTruncated, op, "the transcript became shorter")
	}
	return fi.Size(), nil
}

// take splits b, which follows the partial line, into lines. It reports false when each
// wants no more.
func (t *Tail) take(b []byte, each func([]byte, turn.LogMark) bool) (bool, error) {
	for {
		i := bytes.IndexByte(b, '\n')
		if i < 0 {
			if len(t.partial)+len(b) > known.MaxLine {
				return false, fault.New(CodeLongLine, "claude.tail", "a record is longer than %d bytes", known.MaxLine)
			}
			t.partial = append(t.partial, b...)
			return true, nil
		}
		line := b[:i]
		if len(t.partial) > 0 {
			line = append(t.partial, line...)
		}
		at := t.Mark
		t.Mark.Offset += int64(len(line)) + 1
		t.partial = nil
		b = b[i+1:]
		if len(bytes.TrimSpace(line)) > 0 && !each(line, at) {
			return false, nil
		}
	}
}
