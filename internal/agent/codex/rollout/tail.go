package rollout

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/agent/codex/known"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/turn"
)

const (
	// maxLine is the longest record that is read, in bytes; memory is bounded by it.
	maxLine = 64 << 20
	// readChunk is how much is read at once.
	readChunk = 64 << 10
	// keepBuffer is the largest buffer that is kept for the next long record.
	keepBuffer = 1 << 20
	// maxMetaLine bounds the first line; it holds the agent's instructions.
	maxMetaLine = 4 << 20
	// tailStart and tailLimit bound the search for the last turn from the end.
	tailStart, tailLimit = 64 << 10, 16 << 20
)

// Tail reads complete lines of one rollout from a byte offset on. It keeps the file open,
// so that a replaced file is noticed and never mixed in.
type Tail struct {
	Mark    turn.LogMark // path, identity, and where the next record begins
	f       *os.File
	pos     int64  // next byte to read
	pending []byte // read since mark.Offset, no line end yet
	chunk   []byte
	skip    bool // the anchor was taken in the middle of a line
}

// OpenTail opens the file of m at m.Offset and checks that it is the same file, ours, and
// writable by nobody else.
func OpenTail(m turn.LogMark) (*Tail, error) {
	const op = "codex.open_rollout"
	f, err := os.Open(m.Path)
	if err != nil {
		return nil, fault.Wrap(err, CodeUnreadable, op, "the rollout %s cannot be opened", filepath.Base(m.Path))
	}
	t := &Tail{Mark: m, f: f, pos: m.Offset}
	if err := t.admit(); err != nil {
		f.Close()
		return nil, err
	}
	if m.Offset > 0 {
		var b [1]byte
		if _, err := f.ReadAt(b[:], m.Offset-1); err == nil && b[0] != '\n' {
			t.skip = true
		}
	}
	return t, nil
}

func (t *Tail) admit() error {
	const op = "codex.open_rollout"
	st, err := t.f.Stat()
	if err != nil {
		return fault.Wrap(err, CodeUnreadable, op, "the rollout cannot be examined")
	}
	dev, ino, uid := identityOf(st)
	name := filepath.Base(t.Mark.Path)
	switch {
	case !st.Mode().IsRegular():
		return fault.New(CodeInsecure, op, "the rollout %s is no regular file", name)
	case uid >= 0 && uid != os.Geteuid() || st.Mode().Perm()&0o002 != 0:
		return fault.New(CodeInsecure, op, "the rollout %s can be written by others", name)
	case t.Mark.Inode != 0 && (t.Mark.Device != dev || t.Mark.Inode != ino):
		return fault.New(CodeReplaced, op, "the rollout %s is another file than before", name)
	case st.Size() < t.Mark.Offset:
		return fault.New(CodeReplaced, op, "the rollout %s is shorter than before", name)
	}
	t.Mark.Device, t.Mark.Inode = dev, ino
	return nil
}

// Same reports trouble when the path does not lead to the open file any more, or the file
// lost bytes that were read.
func (t *Tail) Same() error {
	const op = "codex.check_rollout"
	st, err := os.Stat(t.Mark.Path)
	if err != nil {
		return fault.Wrap(err, CodeReplaced, op, "the rollout was moved or removed")
	}
	dev, ino, _ := identityOf(st)
	if dev != t.Mark.Device || ino != t.Mark.Inode || st.Size() < t.pos {
		return fault.New(CodeReplaced, op, "the rollout was replaced or cut")
	}
	return nil
}

// Drain reads to the end of the file and hands each complete line to each. A partial last
// line stays pending. stop is asked between chunks.
func (t *Tail) Drain(stop func() bool, each func(line []byte, at turn.LogMark) bool) error {
	if t.chunk == nil {
		t.chunk = make([]byte, readChunk)
	}
	for !stop() {
		n, err := t.f.ReadAt(t.chunk, t.pos)
		data := t.chunk[:n]
		t.pos += int64(n)
		for {
			i := bytes.IndexByte(data, '\n')
			if i < 0 {
				break
			}
			line := data[:i]
			if len(t.pending) > 0 {
				t.pending = append(t.pending, line...)
				line = t.pending
			}
			size := int64(len(line)) + 1
			if t.skip {
				t.skip = false
			} else if len(bytes.TrimSpace(line)) > 0 && !each(line, t.Mark) {
				return nil
			}
			t.Mark.Offset += size
			t.reset()
			data = data[i+1:]
		}
		if len(t.pending)+len(data) > maxLine {
			return fault.New(CodeTooLong, "codex.read_rollout", "a record is longer than %d MiB", maxLine>>20)
		}
		t.pending = append(t.pending, data...)
		if err == io.EOF || n == 0 {
			return nil
		}
		if err != nil {
			return fault.Wrap(err, CodeUnreadable, "codex.read_rollout", "the rollout cannot be read")
		}
	}
	return nil
}

func (t *Tail) reset() {
	if cap(t.pending) > keepBuffer {
		t.pending = nil
	}
	t.pending = t.pending[:0]
}

func (t *Tail) Close() { _ = t.f.Close() }

func identityOf(st os.FileInfo) (dev, ino uint64, uid int) {
	if s, ok := st.Sys().(*syscall.Stat_t); ok {
		return uint64(s.Dev), uint64(s.Ino), int(s.Uid)
	}
	return 0, 0, -1
}

// MarkNow returns where the file stands now, nil when there is none.
func MarkNow(path string) (*turn.LogMark, error) {
	st, err := os.Stat(path)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "codex.anchor", "the rollout cannot be examined")
	}
	dev, ino, _ := identityOf(st)
	return &turn.LogMark{Path: path, Device: dev, Inode: ino, Offset: st.Size()}, nil
}

func ReadHead(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit))
}

// ReadMeta reads the first line of a rollout; the zero Meta when there is none yet.
func ReadMeta(path string) Meta { m, _ := ReadFirst(path); return m }

// ReadFirst returns also when the first line was written.
func ReadFirst(path string) (Meta, time.Time) {
	f, err := os.Open(path)
	if err != nil {
		return Meta{}, time.Time{}
	}
	defer f.Close()
	line, err := bufio.NewReaderSize(io.LimitReader(f, maxMetaLine), readChunk).ReadBytes('\n')
	if err != nil {
		return Meta{}, time.Time{}
	}
	r, err := Parse(line)
	if err != nil || r.Kind != Session {
		return Meta{}, time.Time{}
	}
	return r.Meta, r.At
}

// Find looks for a thread's rollout in the day folders of its creation: the id is
// a UUIDv7, the folder is the local day. It returns "" when there is none.
func Find(home, thread string) string {
	for _, dir := range DayDirs(home, thread) {
		if hits, _ := filepath.Glob(filepath.Join(dir, known.RolloutGlob+thread+".jsonl")); len(hits) == 1 {
			return hits[0]
		}
	}
	return ""
}

// DayDirs lists the folders in which the thread's rollout may be. Clocks and zones may
// differ by a day.
func DayDirs(home, thread string) []string {
	born, ok := threadTime(thread)
	if !ok {
		return nil
	}
	var out []string
	for _, d := range []int{0, -1, 1} {
		out = append(out, filepath.Join(home, known.SessionsDir, born.Local().AddDate(0, 0, d).Format("2006/01/02")))
	}
	return out
}

// threadTime reads the creation time out of a UUIDv7.
func threadTime(thread string) (time.Time, bool) {
	hex := strings.ReplaceAll(thread, "-", "")
	if len(hex) < 13 || hex[12] != '7' {
		return time.Time{}, false
	}
	ms, err := strconv.ParseInt(hex[:12], 16, 64)
	return time.UnixMilli(ms), err == nil
}

// LastTurn is what the last turn record of a rollout says.
type LastTurn struct {
	Activity agent.Activity
	OpenAt   int64 // where the open turn's first record begins; valid when working
}

// LastActivity searches the end of a rollout for the last turn record. A turn that began
// before the process did belongs to a process that was killed: nothing closes it in the
// file, and it is not running (seen after a kill and resume).
func LastActivity(path string, born time.Time) LastTurn {
	unknown := LastTurn{Activity: agent.ActivityUnknown}
	f, err := os.Open(path)
	if err != nil {
		return unknown
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return unknown
	}
	for window := int64(tailStart); ; window *= 4 {
		from := max(0, st.Size()-window)
		buf := make([]byte, st.Size()-from)
		if _, err := f.ReadAt(buf, from); err != nil && err != io.EOF {
			return unknown
		}
		if i := bytes.LastIndexByte(buf, '\n'); i >= 0 {
			if last, ok := lastTurnIn(buf[:i], from, born); ok {
				return last
			}
		}
		if from == 0 || window >= tailLimit {
			return unknown
		}
	}
}

func lastTurnIn(buf []byte, from int64, born time.Time) (LastTurn, bool) {
	for len(buf) > 0 {
		i := bytes.LastIndexByte(buf, '\n')
		line := buf[i+1:]
		if i < 0 && from > 0 {
			return LastTurn{}, false // its beginning is not in the window
		}
		buf = buf[:max(i, 0)]
		if !bytes.Contains(line, []byte(known.RecEvent)) {
			continue
		}
		r, err := Parse(line)
		switch {
		case err != nil:
		case r.Kind == Complete, r.Kind == Aborted:
			return LastTurn{Activity: agent.ActivityIdle}, true
		case r.Kind == Started && !born.IsZero() && !r.At.IsZero() && r.At.Before(born):
			return LastTurn{Activity: agent.ActivityIdle}, true
		case r.Kind == Started:
			return LastTurn{Activity: agent.ActivityWorking, OpenAt: from + int64(i) + 1}, true
		}
	}
	return LastTurn{Activity: agent.ActivityUnknown}, from == 0
}
