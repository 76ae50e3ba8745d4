package transcript

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/agent-knock-knock/akk/internal/agent/claude/known"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/turn"
)

// Mark returns the position after the last complete line of a file. A record that was
// being written at that moment begins at the mark.
func Mark(path string) (turn.LogMark, error) {
	const op = "claude.mark"
	f, err := os.Open(path)
	if os.IsNotExist(err) {
		return turn.LogMark{}, fault.Wrap(err, fault.NotFound, op, "the transcript does not exist")
	}
	if err != nil {
		return turn.LogMark{}, fault.Wrap(err, fault.Unavailable, op, "the transcript cannot be opened")
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return turn.LogMark{}, fault.Wrap(err, fault.Unavailable, op, "the transcript cannot be examined")
	}
	if why := untrusted(fi); why != "" {
		return turn.LogMark{}, fault.New(fault.Unavailable, op, "%s", why).
			WithHint("make %s writable by its owner only", filepath.Base(path))
	}
	dev, ino := identity(fi)
	end, err := lineEnd(f, fi.Size())
	if err != nil {
		return turn.LogMark{}, fault.Wrap(err, fault.Unavailable, op, "the transcript cannot be read")
	}
	return turn.LogMark{Path: path, Device: dev, Inode: ino, Offset: end}, nil
}

// lineEnd returns the offset after the last newline at or before size.
func lineEnd(r io.ReaderAt, size int64) (int64, error) {
	buf := make([]byte, known.ReadChunk)
	for end := size; end > 0 && size-end <= known.MaxLine; {
		n := min(end, int64(len(buf)))
		if _, err := r.ReadAt(buf[:n], end-n); err != nil && err != io.EOF {
			return 0, err
		}
		if i := bytes.LastIndexByte(buf[:n], '\n'); i >= 0 {
			return end - n + int64(i) + 1, nil
		}
		end -= n
	}
	return 0, nil
}

// untrusted says why the content of a file proves nothing, or "".
func untrusted(fi os.FileInfo) string {
	switch {
	case !fi.Mode().IsRegular():
		return "the transcript is not a regular file"
	case fi.Mode().Perm()&0o022 != 0:
		return "the transcript can be written by other users"
	}
	return ""
}

// identity returns the device and inode of a file; zeros where they are not known.
func identity(fi os.FileInfo) (device, inode uint64) {
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Dev), uint64(st.Ino)
	}
	return 0, 0
}
