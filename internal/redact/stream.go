package redact

import "bytes"

const (
	// MaxHeld bounds what a Stream keeps back between two calls, in bytes.
	MaxHeld = 4096

	look     = MaxHeld // how far a decision may look ahead
	maxWord  = 256     // a longer word is no name
	maxBlank = 64      // blanks and quotes between a name and its value
	maxHost  = 2048    // the part of a URL before its path
	// maxPEM bounds what a private key without an end hides.
	maxPEM = 64 << 10
)

// Stream masks secrets in a stream of bytes: the output of a program. What comes out does
// not depend on how the stream was cut into calls, and everything that is no secret comes
// out byte for byte. It holds at most [MaxHeld] bytes, and never a whole line that has
// ended. A Stream is for one goroutine.
//
// The shapes are those of [String] and a few more; see streamrules.go. A value ends where a
// program would end it, at the latest with its line; only a private key spans lines.
type Stream struct {
	held []byte
	mode mode
	// of a quoted value
	quote  byte
	depth  int // backslashes before its quotes
	slash  int // backslashes just seen
	length int // bytes of a private key so far
	dashes int
}

// mode is what the next byte belongs to.
type mode uint8

const (
	plain     mode = iota
	inWord         // of a long word that is no secret
	inSecret       // of a secret word
	inJWT          // of a signed token of three parts
	inBearer       // of a credential behind its scheme
	inTight        // of NAME=value
	inLine         // of name: value
	inArray        // of name: [value
	inQuotes       // of name: "value
	inKey          // of a private key
	inKeyLast      // of its last line
)

// Append masks the next bytes and appends what is certain to dst.
func (s *Stream) Append(dst, p []byte) []byte {
	if len(s.held) == 0 {
		return s.run(dst, p, false)
	}
	s.held = append(s.held, p...)
	return s.run(dst, s.held, false)
}

// Flush appends what is left, masked. The Stream can then be used for another one.
func (s *Stream) Flush(dst []byte) []byte {
	dst = s.run(dst, s.held, true)
	*s = Stream{}
	return dst
}

// Bytes masks a whole text, as a Stream does.
func Bytes(p []byte) []byte {
	var s Stream
	dst := s.Append(make([]byte, 0, len(p)), p)
	return s.Flush(dst)
}

// run masks buf up to what cannot be decided yet, which it holds.
func (s *Stream) run(dst, buf []byte, final bool) []byte {
	safe := len(buf)
	if !final { // a decision needs the end of its line, or `look` bytes
		safe = max(bytes.LastIndexByte(buf, '\n')+1, len(buf)-look+1)
	}
	i := 0
	for i < safe {
		if s.mode == plain {
			dst, i = s.plain(dst, buf, i, safe)
		} else {
			dst, i = s.rest(dst, buf, i, safe)
		}
	}
	s.held = append(s.held[:0], buf[i:]...) // buf may be held itself: append copies forward
	return dst
}

// rest consumes bytes of what began before.
func (s *Stream) rest(dst, buf []byte, i, safe int) ([]byte, int) {
	switch s.mode {
	case inWord:
		n := i
		for n < safe && kind[buf[n]]&word != 0 {
			n++
		}
		if n < safe {
			s.mode = plain
		}
		return append(dst, buf[i:n]...), n
	case inSecret:
		return dst, s.skip(buf, i, safe, word)
	case inJWT:
		return dst, s.skip(buf, i, safe, word|dot)
	case inBearer:
		return dst, s.skip(buf, i, safe, bearer)
	case inTight:
		return dst, s.skipUntil(buf, i, safe, tightEnd)
	case inLine:
		return dst, s.skipUntil(buf, i, safe, lineEnd)
	case inArray:
		n := s.skipUntil(buf, i, safe, arrayEnd)
		if s.mode == plain && buf[n] == ']' {
			n++
		}
		return dst, n
	case inQuotes:
		return s.quoted(dst, buf, i, safe)
	case inKey:
		return dst, s.key(buf, i, safe)
	}
	return s.keyLast(dst, buf, i, safe)
}

func (s *Stream) skip(buf []byte, i, safe int, class uint8) int {
	for i < safe && kind[buf[i]]&class != 0 {
		i++
	}
	if i < safe {
		s.mode = plain
	}
	return i
}

func (s *Stream) skipUntil(buf []byte, i, safe int, class uint8) int {
	for i < safe && ends[buf[i]]&class == 0 {
		i++
	}
	if i < safe {
		s.mode = plain
	}
	return i
}

// quoted skips a value up to its closing quote, which it keeps, or the end of the line.
func (s *Stream) quoted(dst, buf []byte, i, safe int) ([]byte, int) {
	for ; i < safe; i++ {
		switch c := buf[i]; {
		case c == '\n':
			s.mode = plain
			return dst, i
		case c == '\\':
			s.slash++
			continue
		case c == s.quote && (s.slash < s.depth || s.depth == 0 && s.slash%2 == 0 || s.depth > 0 && s.slash == s.depth):
			for range s.slash {
				dst = append(dst, '\\')
			}
			s.mode = plain
			return append(dst, c), i + 1
		}
		s.slash = 0
	}
	return dst, i
}

var keyEnd = []byte("-----END")

func (s *Stream) key(buf []byte, i, safe int) int {
	for ; i < safe; i++ {
		if s.length++; s.length > maxPEM {
			s.mode = plain
			return i
		}
		if buf[i] == '-' && bytes.HasPrefix(buf[i:], keyEnd) {
			s.mode, s.dashes = inKeyLast, 0
			return i + len(keyEnd)
		}
	}
	return i
}

func (s *Stream) keyLast(dst, buf []byte, i, safe int) ([]byte, int) {
	for ; i < safe; i++ {
		switch buf[i] {
		case '\n':
			s.mode = plain
			return dst, i
		case '-':
			if s.dashes++; s.dashes == 5 {
				s.mode = plain
				return dst, i + 1
			}
		default:
			s.dashes = 0
		}
	}
	return dst, i
}

// span counts the bytes at the front of b that are of a word, or that are not.
func span(b []byte, want uint8) int {
	for i, c := range b {
		if kind[c]&word != want {
			return i
		}
	}
	return len(b)
}

// plain copies text up to the next secret, and masks that.
func (s *Stream) plain(dst, buf []byte, from, safe int) ([]byte, int) {
	i := from
	for i < safe {
		i += span(buf[i:safe], 0)
		if i == safe {
			break
		}
		end := i + span(buf[i:min(len(buf), i+maxWord)], word)
		if end-i < shortest && dull(buf, i, end) {
			i = end
			continue
		}
		hit := find(buf, i, end)
		if hit.next == 0 {
			if end-i == maxWord {
				s.mode = inWord
				return append(dst, buf[from:end]...), end
			}
			i = end
			continue
		}
		dst = append(dst, buf[from:hit.keep]...)
		dst = append(dst, Mask...)
		s.mode, s.quote, s.depth, s.slash, s.length = hit.mode, hit.quote, hit.depth, 0, 0
		return dst, hit.next
	}
	return append(dst, buf[from:i]...), i
}
