package wire

import (
	"bufio"
	"encoding/json"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"
	"unicode"
)

// The limits on what one worker may put into the Bridge's log.
const (
	maxLogLine    = 4 << 10
	logWindow     = 10 * time.Second
	logPerWindow  = 200
	maxTailShown  = 300
	logReadBuffer = 8 << 10
)

// lineLog turns a worker's stderr into log lines of the Bridge: JSON records of our own
// child logger keep their level and fields, other lines are DEBUG, a Go panic is ERROR.
// Long lines are cut, floods are counted and dropped, and everything is always read, so
// that a worker never blocks on its stderr.
type lineLog struct {
	log     *slog.Logger
	now     func() time.Time
	window  time.Time
	count   int
	dropped int
	panics  bool

	mu   sync.Mutex
	last string // the last line, for the error of a failed start
}

func newLineLog(log *slog.Logger) *lineLog { return &lineLog{log: log, now: time.Now} }

func (l *lineLog) run(r io.Reader) {
	in := bufio.NewReaderSize(r, logReadBuffer)
	for rest := false; ; {
		line, err := in.ReadSlice('\n')
		if len(line) > 0 && !rest {
			l.line(strings.TrimRight(string(line[:min(len(line), maxLogLine)]), "\r\n"))
		}
		rest = err == bufio.ErrBufferFull // the rest of a long line is dropped
		if err != nil && !rest {
			l.flush()
			return
		}
	}
}

func (l *lineLog) line(s string) {
	if s = clip(s, maxLogLine); s == "" {
		return
	}
	l.mu.Lock()
	l.last = s
	l.mu.Unlock()

	if now := l.now(); now.Sub(l.window) >= logWindow {
		l.flush()
		l.window, l.count = now, 0
	}
	if l.count++; l.count > logPerWindow {
		l.dropped++
		return
	}
	level, msg, attrs := l.parse(s)
	switch {
	case level >= slog.LevelError:
		l.log.Error(msg, attrs...)
	case level >= slog.LevelWarn:
		l.log.Warn(msg, attrs...)
	case level >= slog.LevelInfo:
		l.log.Info(msg, attrs...)
	default:
		l.log.Debug(msg, attrs...)
	}
}

func (l *lineLog) flush() {
	if l.dropped > 0 {
		l.log.Warn("worker wrote too many log lines", "dropped", l.dropped)
		l.dropped = 0
	}
}

// parse reads a record of slog's JSON handler; anything else is text.
func (l *lineLog) parse(s string) (slog.Level, string, []any) {
	var rec map[string]any
	if strings.HasPrefix(s, "{") && json.Unmarshal([]byte(s), &rec) == nil {
		msg, ok := rec[slog.MessageKey].(string)
		name, _ := rec[slog.LevelKey].(string)
		var level slog.Level
		if ok && level.UnmarshalText([]byte(name)) == nil {
			delete(rec, slog.MessageKey)
			delete(rec, slog.LevelKey)
			delete(rec, slog.TimeKey)
			var attrs []any
			for k, v := range rec {
				attrs = append(attrs, slog.Any(k, v))
			}
			return level, msg, attrs
		}
	}
	if strings.HasPrefix(s, "panic: ") || strings.HasPrefix(s, "fatal error: ") {
		l.panics = true
	}
	if l.panics {
		return slog.LevelError, s, nil
	}
	return slog.LevelDebug, s, nil
}

// tail returns the last line, short enough for an error.
func (l *lineLog) tail() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return clip(l.last, maxTailShown)
}

// clip makes foreign text fit for one line of ours: printable, valid, at most n bytes.
func clip(s string, n int) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	if len(s) <= n {
		return s
	}
	s = s[:n]
	for len(s) > 0 && s[len(s)-1]&0xC0 == 0x80 {
		s = s[:len(s)-1]
	}
	if len(s) > 0 && s[len(s)-1] >= 0xC0 {
		s = s[:len(s)-1]
	}
	return s + "..."
}
