package claude

import (
	"path/filepath"

	"github.com/fsnotify/fsnotify"
)

// fileWatch turns changes in a few directories into events. Directories are watched, not
// files, so that a file that does not exist yet is seen when it comes. Without inotify it
// is silent, and the safety tick does its work.
type fileWatch struct {
	w      *fsnotify.Watcher
	wanted []string
	stop   string // no ancestor above it is watched
	active map[string]bool
}

func newFileWatch(stop string, wanted ...string) *fileWatch {
	f := &fileWatch{wanted: wanted, stop: stop, active: map[string]bool{}}
	if w, err := fsnotify.NewWatcher(); err == nil {
		f.w = w
	}
	f.extend()
	return f
}

// extend watches every wanted directory that exists by now, and the nearest existing
// ancestor of every other one.
func (f *fileWatch) extend() {
	if f.w == nil {
		return
	}
	for _, dir := range f.wanted {
		for d := dir; (d == dir || len(d) >= len(f.stop)) && d != "/" && d != "."; d = filepath.Dir(d) {
			if f.active[d] {
				break
			}
			if f.w.Add(d) == nil {
				f.active[d] = true
				break
			}
		}
	}
}

// complete reports whether every wanted directory itself is watched.
func (f *fileWatch) complete() bool {
	if f.w == nil {
		return false
	}
	for _, dir := range f.wanted {
		if !f.active[dir] {
			return false
		}
	}
	return true
}

// forget drops a directory that was removed, so that it is watched again when it is back.
func (f *fileWatch) forget(path string) { delete(f.active, path) }

func (f *fileWatch) events() <-chan fsnotify.Event {
	if f.w == nil {
		return nil
	}
	return f.w.Events
}

func (f *fileWatch) errors() <-chan error {
	if f.w == nil {
		return nil
	}
	return f.w.Errors
}

func (f *fileWatch) close() {
	if f.w != nil {
		f.w.Close()
	}
}
