package wire

import (
	"bufio"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/agent-knock-knock/akk/internal/pattern"
)

const (
	maxHandshakeLine = 16 << 10 // the line holds a certificate of about 1 KiB
	maxBannerBytes   = 1 << 20  // what a worker may print before its handshake line
	maxBannerShown   = 200
)

// handshakeLine is core version | wire version | network | address | protocol | cert.
var handshakeLine = pattern.New(`^1\|(\d{1,6})\|unix\|[^|]+\|grpc(\||$)`)

// handshakeReader passes the handshake line of a worker on and drops everything else: a
// banner of a wrapper script before it, whatever a library prints after it. It reads to
// the end, so a worker never blocks on its stdout.
type handshakeReader struct {
	out *io.PipeWriter

	mu     sync.Mutex
	banner string // the first line that was not the handshake
	wire   int    // the worker's wire version, 0 while unknown
	said   string // the worker's release, "" while unknown
}

// releaseLine begins the line by which a worker says its release, before the handshake.
const releaseLine = "akk-release "

func newHandshakeReader(out *io.PipeWriter) *handshakeReader { return &handshakeReader{out: out} }

func (h *handshakeReader) run(r io.Reader) {
	defer h.out.Close()
	in := bufio.NewReaderSize(r, maxHandshakeLine)
	for seen := 0; seen < maxBannerBytes; {
		line, err := in.ReadSlice('\n')
		seen += len(line)
		if m := handshakeLine.FindSubmatch(line); m != nil && err == nil {
			h.mu.Lock()
			h.wire, _ = strconv.Atoi(string(m[1]))
			h.mu.Unlock()
			if _, err := h.out.Write(line); err == nil {
				h.out.Close()
			}
			break
		}
		if release, ok := strings.CutPrefix(string(line), releaseLine); ok && err == nil {
			h.mu.Lock()
			h.said = clip(strings.TrimSpace(release), maxBannerShown)
			h.mu.Unlock()
			continue
		}
		h.note(string(line))
		if err != nil && err != bufio.ErrBufferFull {
			return
		}
	}
	h.out.Close()
	io.Copy(io.Discard, in)
}

func (h *handshakeReader) note(line string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.banner == "" {
		h.banner = clip(strings.TrimSpace(line), maxBannerShown)
	}
}

// result returns the worker's wire version and its first other line.
func (h *handshakeReader) result() (wire int, banner string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.wire, h.banner
}

// release returns what the worker said of its release, "" when it said nothing.
func (h *handshakeReader) release() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.said
}
