package transcript

import (
	"bytes"
	"context"
	"io"
	"os"

	"github.com/agent-knock-knock/akk/internal/agent/claude/known"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/turn"
)

// Task is a person's prompt whose turn has no end in the transcript.
type Task struct {
	Prompt string       // uuid of the prompt's record
	Mark   turn.LogMark // where to begin to read: some records may stand before their prompt
	Hash   string       // of the prompt's text
}

const (
	taskWindow = 256 << 10 // how much of the end is searched first, then four times as much
	taskLimit  = 64 << 20  // the most that is searched
	taskMargin = 64 << 10  // how far before the prompt a record of its turn may stand
)

// OpenTask finds the last prompt of a person in the transcript at path, if its turn is
// still open. ok is false when there is none, and when it cannot be told.
func OpenTask(ctx context.Context, path, thread string) (t Task, ok bool, err error) {
	end, err := Mark(path)
	if fault.Is(err, fault.NotFound) {
		return Task{}, false, nil
	}
	if err != nil {
		return Task{}, false, err
	}
	f, err := os.Open(path)
	if err != nil {
		return Task{}, false, fault.Wrap(err, CodeUnread, "claude.task", "the transcript cannot be opened")
	}
	defer f.Close()
	for window := int64(taskWindow); ctx.Err() == nil; window *= 4 {
		from := max(0, end.Offset-window)
		buf, err := span(f, from, end.Offset)
		if err != nil {
			return Task{}, false, fault.Wrap(err, CodeUnread, "claude.task", "the transcript cannot be read")
		}
		at, r, text := lastPrompt(buf, from > 0, thread)
		switch {
		case at >= 0:
			t = Task{Prompt: r.UUID, Mark: end, Hash: ids.TextHash(text)}
			if t.Mark.Offset, err = lineAt(f, max(0, from+int64(at)-taskMargin)); err != nil {
				return Task{}, false, fault.Wrap(err, CodeUnread, "claude.task", "the transcript cannot be read")
			}
			return t, t.runs(thread), nil
		case from == 0 || window >= taskLimit:
			return Task{}, false, nil
		}
	}
	return Task{}, false, fault.Wrap(ctx.Err(), fault.Timeout, "claude.task", "the transcript could not be read in time")
}

func span(f *os.File, from, to int64) ([]byte, error) {
	buf := make([]byte, to-from)
	_, err := f.ReadAt(buf, from)
	if err == io.EOF {
		err = nil
	}
	return buf, err
}

// lastPrompt returns where the last prompt of the thread begins in buf, -1 for none. The
// first line of a cut buffer may be the rest of one.
func lastPrompt(buf []byte, cut bool, thread string) (at int, r Record, text string) {
	for end := len(bytes.TrimRight(buf, "\n")); end > 0; {
		begin := bytes.LastIndexByte(buf[:end], '\n') + 1
		if begin == 0 && cut {
			break
		}
		line := buf[begin:end]
		if end = begin - 1; !bytes.Contains(line, []byte(`"`+known.RecUser+`"`)) {
			continue
		}
		r, err := ParseRecord(line)
		if err != nil || r.UUID == "" || thread != "" && r.SessionID != "" && r.SessionID != thread {
			continue
		}
		if text, ok := r.humanPrompt(); ok {
			return begin, r, text
		}
	}
	return -1, Record{}, ""
}

// lineAt returns the beginning of the first line at or after offset.
func lineAt(f *os.File, offset int64) (int64, error) {
	if offset == 0 {
		return 0, nil
	}
	buf := make([]byte, taskMargin+1)
	n, err := f.ReadAt(buf, offset-1)
	if err != nil && err != io.EOF {
		return 0, err
	}
	return offset + int64(bytes.IndexByte(buf[:n], '\n')), nil // a prompt follows within the margin
}

// runs reports whether the records up to the end of the file leave the task open.
func (t Task) runs(thread string) bool {
	chain := New(Wanted{Thread: thread, Prompt: t.Prompt})
	tail := Tail{Mark: t.Mark, Known: true}
	_, err := tail.Read(func(line []byte, at turn.LogMark) bool {
		r, err := ParseRecord(line)
		if err != nil {
			chain.Poison(at, CodeBroken, "")
			return false
		}
		chain.Feed(r, at)
		return chain.Open()
	})
	return err == nil && chain.Open() && chain.Accepted() && !chain.Superseded()
}
