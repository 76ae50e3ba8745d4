package term

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// Kind is what came from the terminal.
type Kind int

// The kinds of a [Key].
const (
	Text      Kind = iota // typed characters
	Paste                 // one bracketed paste, markers removed
	Enter                 // CR outside a paste
	Newline               // LF or Alt-Enter: a newline in the draft
	Esc                   // a lone Escape
	Backspace             // Backspace
	Tab                   //
	Up                    //
	Down                  //
	CtrlC                 //
	CtrlU                 //
	CtrlD                 //
	Other                 // understood as a key, without meaning here
)

// Key is one key, or text, or a paste.
type Key struct {
	Kind Kind
	Text string
}

// The marks around a bracketed paste.
const (
	PasteStart = "\x1b[200~"
	PasteEnd   = "\x1b[201~"
)

// Decoder turns bytes into keys. It keeps what is incomplete; a lone Escape stays in it
// until Flush says that nothing followed.
type Decoder struct {
	buf     []byte
	inPaste bool
	paste   []byte
}

// Feed returns the keys that b completes.
func (d *Decoder) Feed(b []byte) []Key {
	d.buf = append(d.buf, b...)
	var out []Key
	for len(d.buf) > 0 {
		k, n := d.next()
		if n == 0 {
			break
		}
		d.buf = d.buf[n:]
		if k != nil {
			out = Join(out, *k)
		}
	}
	return out
}

// Pending reports whether a lone Escape waits for what may follow it.
func (d *Decoder) Pending() bool { return !d.inPaste && len(d.buf) == 1 && d.buf[0] == 0x1b }

// Flush returns the Escape that was waiting.
func (d *Decoder) Flush() []Key {
	if !d.Pending() {
		return nil
	}
	d.buf = nil
	return []Key{{Kind: Esc}}
}

// Join joins neighbouring text keys.
func Join(keys []Key, k Key) []Key {
	if n := len(keys); k.Kind == Text && n > 0 && keys[n-1].Kind == Text {
		keys[n-1].Text += k.Text
		return keys
	}
	return append(keys, k)
}

// next returns one key (nil: nothing to report) and how many bytes it took; 0 bytes means
// that more input is needed.
func (d *Decoder) next() (*Key, int) {
	if d.inPaste {
		return d.nextPasted()
	}
	switch c := d.buf[0]; {
	case c == 0x1b:
		return d.nextEscape()
	case c == '\r':
		return &Key{Kind: Enter}, 1
	case c == '\n':
		return &Key{Kind: Newline}, 1
	case c == '\t':
		return &Key{Kind: Tab}, 1
	case c == 0x7f, c == 0x08:
		return &Key{Kind: Backspace}, 1
	case c == 0x03:
		return &Key{Kind: CtrlC}, 1
	case c == 0x04:
		return &Key{Kind: CtrlD}, 1
	case c == 0x15:
		return &Key{Kind: CtrlU}, 1
	case c < 0x20:
		return &Key{Kind: Other}, 1
	}
	if !utf8.FullRune(d.buf) {
		return nil, 0
	}
	_, n := utf8.DecodeRune(d.buf)
	return &Key{Kind: Text, Text: string(d.buf[:n])}, n
}

func (d *Decoder) nextPasted() (*Key, int) {
	i := bytes.Index(d.buf, []byte(PasteEnd))
	if i < 0 {
		keep := len(PasteEnd) - 1 // the end marker may be cut
		n := max(0, len(d.buf)-keep)
		d.paste = append(d.paste, d.buf[:n]...)
		return nil, n
	}
	text := string(append(d.paste, d.buf[:i]...))
	d.inPaste, d.paste = false, nil
	return &Key{Kind: Paste, Text: text}, i + len(PasteEnd)
}

func (d *Decoder) nextEscape() (*Key, int) {
	s := string(d.buf)
	switch {
	case strings.HasPrefix(s, PasteStart):
		d.inPaste = true
		return nil, len(PasteStart)
	case len(s) == 1:
		return nil, 0
	case s[1] == '\r':
		return &Key{Kind: Newline}, 2
	case s[1] == 0x1b:
		return &Key{Kind: Esc}, 1
	case s[1] == '[' || s[1] == 'O':
		for i := 2; i < len(s); i++ {
			if s[i] < 0x40 || s[i] > 0x7e {
				continue
			}
			switch s[i] {
			case 'A':
				return &Key{Kind: Up}, i + 1
			case 'B':
				return &Key{Kind: Down}, i + 1
			}
			return &Key{Kind: Other}, i + 1
		}
		return nil, 0
	}
	return &Key{Kind: Other}, 2 // Alt and a character
}
