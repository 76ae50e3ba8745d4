package term

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Raw switches fd to raw mode, throwing away what was typed before, and returns
// the way back.
func Raw(fd int) (restore func(), err error) {
	old, err := unix.IoctlGetTermios(fd, ioctlGet)
	if err != nil {
		return nil, fmt.Errorf("term: standard input is no terminal: %w", err)
	}
	raw := *old
	raw.Iflag &^= unix.BRKINT | unix.ICRNL | unix.INPCK | unix.ISTRIP | unix.IXON | unix.INLCR | unix.IGNCR
	raw.Oflag &^= unix.OPOST
	raw.Cflag |= unix.CS8
	raw.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.IEXTEN | unix.ISIG
	raw.Cc[unix.VMIN], raw.Cc[unix.VTIME] = 1, 0
	if err := unix.IoctlSetTermios(fd, ioctlSetFlush, &raw); err != nil {
		return nil, fmt.Errorf("term: raw mode: %w", err)
	}
	return func() { unix.IoctlSetTermios(fd, ioctlSet, old) }, nil
}

// Size returns columns and rows; 80x24 when they cannot be read.
func Size(fd int) (cols, rows int) {
	ws, err := unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ)
	if err != nil || ws.Col == 0 || ws.Row == 0 {
		return 80, 24
	}
	return int(ws.Col), int(ws.Row)
}
