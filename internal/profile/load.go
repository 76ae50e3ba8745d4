package profile

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/agent-knock-knock/akk/internal/fault"
)

// Where a loaded Profile came from.
const (
	SourceFile    = "file"
	SourceBuiltIn = "built_in"
)

const fileExtension = ".json"

// Loaded is a Profile with the proof of what was read.
type Loaded struct {
	Profile     Profile
	Document    []byte // the exact bytes that were read
	Selection   string // the real path of the file, or the built-in id
	Source      string // SourceFile or SourceBuiltIn
	Fingerprint string
}

// Load reads the Profile that selection names: a built-in id, which wins over a file of
// that name, or a path, resolved against the working directory and then through symbolic
// links. The file must be a regular file of at most [MaxFileBytes] whose real name ends
// in .json. Its codes are [CodeUnknown], [CodeUnreadable] and [CodeInvalid].
func Load(selection string) (*Loaded, error) { return builtins.load(selection) }

func (r registry) load(selection string) (*Loaded, error) {
	if b := r.find(selection); b != nil {
		return r.loadBuiltin(b)
	}
	if strings.HasPrefix(selection, builtinPrefix) {
		return nil, fault.New(CodeUnknown, "profile.load", "no built-in Profile has this id").
			WithHint("run `agent-knock-knock host-profile list` to see the built-in Profiles")
	}
	path, err := realPath(selection)
	if err != nil {
		return nil, err
	}
	data, err := readDocument(path)
	if err != nil {
		return nil, err
	}
	p, err := r.parse(data)
	if err != nil {
		return nil, err
	}
	return newLoaded(p, data, path, SourceFile)
}

func (r registry) loadBuiltin(b *builtin) (*Loaded, error) {
	p, err := decode([]byte(b.document))
	if err != nil {
		return nil, err
	}
	if p.ID != b.id {
		return nil, fault.New(fault.Internal, "profile.load", "a built-in Profile is registered under another id than its own")
	}
	return newLoaded(p, []byte(b.document), b.id, SourceBuiltIn)
}

func newLoaded(p Profile, data []byte, selection, source string) (*Loaded, error) {
	fingerprint, err := p.Fingerprint()
	if err != nil {
		return nil, err
	}
	return &Loaded{Profile: p, Document: data, Selection: selection, Source: source, Fingerprint: fingerprint}, nil
}

func unreadable(err error, format string, args ...any) *fault.Error {
	f := fault.New(CodeUnreadable, "profile.load", format, args...)
	f.Err = err
	return f.WithHint("pass the path of a readable .json file; a relative path starts at the working directory of this process")
}

// realPath resolves a selection to the file that would be opened.
func realPath(selection string) (string, error) {
	if selection == "" || strings.ContainsRune(selection, 0) {
		return "", unreadable(nil, "the Profile path is empty or holds a NUL")
	}
	absolute, err := filepath.Abs(selection)
	if err != nil {
		return "", unreadable(err, "the Profile path cannot be resolved against the working directory")
	}
	path, err := filepath.EvalSymlinks(absolute)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", unreadable(err, "the Profile file does not exist: %q", absolute)
	case errors.Is(err, fs.ErrPermission):
		return "", unreadable(err, "the Profile file may not be reached by this user: %q", absolute)
	case err != nil:
		return "", unreadable(err, "the Profile path cannot be resolved: %q", absolute)
	}
	if !strings.EqualFold(filepath.Ext(path), fileExtension) {
		return "", unreadable(nil, "the Profile file's name does not end in %s: %q", fileExtension, path)
	}
	return path, nil
}

// readDocument reads a regular file within the size limit. It opens without blocking, so
// that a FIFO in the file's place cannot hold the process.
func readDocument(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, unreadable(err, "the Profile file cannot be opened: %q", path)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, unreadable(err, "the Profile file cannot be examined: %q", path)
	}
	if !info.Mode().IsRegular() {
		return nil, unreadable(nil, "the Profile is not a regular file: %q", path)
	}
	data, err := io.ReadAll(io.LimitReader(f, MaxFileBytes+1))
	if err != nil {
		return nil, unreadable(err, "the Profile file cannot be read: %q", path)
	}
	if len(data) > MaxFileBytes {
		return nil, unreadable(nil, "the Profile file is larger than %d bytes: %q", MaxFileBytes, path)
	}
	return data, nil
}

// CheckDrift reads the selection again and returns [CodeDrift] unless it is still the same
// Profile from the same source. The fingerprint covers the compatibility and every other
// value; white space and key order may change. Callers run it before every effect.
func (l *Loaded) CheckDrift() error { return builtins.checkDrift(l) }

func (r registry) checkDrift(l *Loaded) error {
	const op = "profile.check_drift"
	const hint = "restart the Host Bridge to take the Profile as it is now, or restore the file"
	if r.untouched(l) {
		return nil
	}
	now, err := r.load(l.Selection)
	switch {
	case err != nil:
		// A model may read this: the cause, which names the file, is for the log.
		return fault.Wrap(err, CodeDrift, op, "the selected Host Profile cannot be read any more, or is not valid any more").WithHint(hint)
	case now.Source != l.Source:
		return fault.New(CodeDrift, op, "the selected Host Profile now has another source").WithHint(hint)
	case now.Fingerprint != l.Fingerprint:
		return fault.New(CodeDrift, op, "the selected Host Profile changed after the Bridge started").WithHint(hint)
	}
	return nil
}

// untouched reports that the file still holds the very bytes that were loaded, which need no
// decoding: a busy outbox asks before every attempt. Whatever else is true, it is false.
func (r registry) untouched(l *Loaded) bool {
	if l.Source != SourceFile || r.find(l.Selection) != nil {
		return false
	}
	path, err := realPath(l.Selection)
	if err != nil || path != l.Selection {
		return false
	}
	data, err := readDocument(path)
	return err == nil && bytes.Equal(data, l.Document)
}
