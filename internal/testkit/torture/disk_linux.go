package torture

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// small is a disk of a few MiB below the Store.
type small struct{ filler string }

const smallSize = "size=12m,mode=700"

// mountSmall puts a small disk at dir. nil means that this user cannot mount one.
func mountSmall(tb testing.TB, dir string) *small {
	tb.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		tb.Fatal(err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, smallSize); err != nil {
		tb.Logf("no small disk can be mounted (%v); its errors are injected", err)
		return nil
	}
	tb.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			tb.Errorf("unmount %s: %v", dir, err)
		}
	})
	return &small{filler: filepath.Join(dir, "filler")}
}

// fill takes what is free.
func (s *small) fill(tb testing.TB) {
	tb.Helper()
	f, err := os.OpenFile(s.filler, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		if errors.Is(err, syscall.ENOSPC) {
			return
		}
		tb.Fatal(err)
	}
	defer f.Close()
	for block := make([]byte, 1<<16); len(block) > 0; {
		n, err := f.Write(block)
		switch {
		case errors.Is(err, syscall.ENOSPC):
			block = block[:len(block)/2]
		case err != nil:
			tb.Fatal(err)
		case n < len(block):
			block = block[:n/2]
		}
	}
}

func (s *small) free(tb testing.TB) {
	tb.Helper()
	if err := os.Remove(s.filler); err != nil && !os.IsNotExist(err) {
		tb.Fatal(err)
	}
}
