package control

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
)

const (
	// maxSocket is the longest path of a socket that every one of our systems takes, in bytes.
	maxSocket = 103
	// newSuffix marks a socket that is not listened on yet.
	newSuffix = ".new"
	// anyID is as long as the id of a Bridge.
	anyID ids.BridgeID = "bridge-0123456789abcdef"
)

// shortPlace is where a Bridge listens whose own place is too long for a socket. Every
// doctor looks into it that was not told one place, and those whose place is too long.
func shortPlace() string { return fmt.Sprintf("/tmp/agent-knock-knock-%d/bridges", os.Getuid()) }

func tooLong(base string) bool { return len(socketPath(base, anyID)+newSuffix) > maxSocket }

// ownPlace is where a Bridge listens that is told the place.
func ownPlace(place string) string {
	if tooLong(place) {
		return shortPlace()
	}
	return place
}

// withShort adds the short place where a Bridge of one of the places would be in it.
func withShort(places []string) []string {
	short := shortPlace()
	if slices.ContainsFunc(places, tooLong) && !slices.Contains(places, short) {
		return append(slices.Clone(places), short)
	}
	return places
}

// socketPath is where a Bridge listens.
func socketPath(base string, id ids.BridgeID) string { return filepath.Join(base, string(id)+suffix) }

// dir makes sure that base and the folder that it is in are directories of this user that
// nobody else may enter: nobody asks in others.
func dir(base string) error {
	const op = "control.dir"
	for _, d := range []string{filepath.Dir(base), base} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return fault.Wrap(err, fault.Unavailable, op, "cannot make %s: %v", d, rootCause(err)).WithHint("set AKK_RUNTIME_DIR to a private directory")
		}
		if err := private(d); err != nil {
			return err
		}
	}
	return nil
}

// private refuses anything but a directory of this user that nobody else may enter; a link
// to one is refused too.
func private(base string) error {
	const op = "control.dir"
	info, err := os.Lstat(base)
	if err != nil {
		return fault.Wrap(err, fault.Unavailable, op, "cannot look at %s: %v", base, rootCause(err)).
			WithHint("run as the user whose folder it is, or set AKK_RUNTIME_DIR to a private directory")
	}
	if info.IsDir() && ours(info) && info.Mode().Perm() == 0o700 {
		return nil
	}
	refused := fault.New(fault.Unavailable, op, "%s is not a private directory of this user (%s)", base, info.Mode())
	if info.IsDir() && ours(info) {
		return refused.WithHint("chmod 700 %s", base) // sockets of Bridges that run may be in it
	}
	return refused.WithHint("remove it, or set AKK_RUNTIME_DIR to a private directory")
}

// blocked tells a place that no Bridge has made yet from one that none can make: a link
// that leads nowhere, or a link in place of our own folder, which nobody enters.
func blocked(base string) error {
	for d := filepath.Dir(base); d != filepath.Dir(d); d = filepath.Dir(d) {
		info, err := os.Lstat(d)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil || (d == filepath.Dir(base) && !info.IsDir()) {
			return private(d)
		}
		if _, err := os.Stat(d); err != nil {
			return fault.Wrap(err, fault.Unavailable, "control.dir", "%s is a link that leads nowhere, so no Bridge can be asked", d).
				WithHint("make what it names, or set AKK_RUNTIME_DIR to a private directory")
		}
		return nil
	}
	return nil
}
