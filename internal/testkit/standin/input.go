package standin

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// keyKind is what came from the terminal.
type keyKind int

const (
	keyText  keyKind = iota // typed characters
	keyPaste                // one bracketed paste, markers removed
	keyEnter                // CR outside a paste
	keyLine                 // LF or Alt-Enter: a newline in the draft
	keyEsc                  // a lone Escape
	keyBack                 // Backspace
	keyTab                  //
	keyUp                   //
	keyDown                 //
	keyCtrlC                //
	keyCtrlU                //
	keyCtrlD                //
	keyOther                // understood as a key, without meaning here
)

type key struct {
	kind keyKind
	text string
}

const (
	pasteStart = "\x1b[200~"
	pasteEnd   = "\x1b[201~"
)

// decoder turns bytes into keys. It keeps what is incomplete; a lone Escape stays in it
// until flush says that nothing followed.
type decoder struct {
	buf     []byte
	inPaste bool
	paste   []byte
}

// feed returns the keys that b completes.
func (d *decoder) feed(b []byte) []key {
	d.buf = append(d.buf, b...)
	var out []key
	for len(d.buf) > 0 {
		k, n := d.next()
		if n == 0 {
			break
		}
		d.buf = d.buf[n:]
		if k != nil {
			out = appendKey(out, *k)
		}
	}
	return out
}

// pendingEsc reports whether a lone Escape waits for what may follow it.
func (d *decoder) pendingEsc() bool { return !d.inPaste && len(d.buf) == 1 && d.buf[0] == 0x1b }

// flush returns the Escape that was waiting.
func (d *decoder) flush() []key {
	if !d.pendingEsc() {
		return nil
	}
	d.buf = nil
	return []key{{kind: keyEsc}}
}

// appendKey joins neighbouring text keys.
func appendKey(keys []key, k key) []key {
	if n := len(keys); k.kind == keyText && n > 0 && keys[n-1].kind == keyText {
		keys[n-1].text += k.text
		return keys
	}
	return append(keys, k)
}

// next returns one key (nil: nothing to report) and how many bytes it took; 0 bytes means
// that more input is needed.
func (d *decoder) next() (*key, int) {
	if d.inPaste {
		return d.nextPasted()
	}
	switch c := d.buf[0]; {
	case c == 0x1b:
		return d.nextEscape()
	case c == '\r':
		return &key{kind: keyEnter}, 1
	case c == '\n':
		return &key{kind: keyLine}, 1
	case c == '\t':
		return &key{kind: keyTab}, 1
	case c == 0x7f, c == 0x08:
		return &key{kind: keyBack}, 1
	case c == 0x03:
		return &key{kind: keyCtrlC}, 1
	case c == 0x04:
		return &key{kind: keyCtrlD}, 1
	case c == 0x15:
		return &key{kind: keyCtrlU}, 1
	case c < 0x20:
		return &key{kind: keyOther}, 1
	}
	if !utf8.FullRune(d.buf) {
		return nil, 0
	}
	_, n := utf8.DecodeRune(d.buf)
	return &key{kind: keyText, text: string(d.buf[:n])}, n
}

func (d *decoder) nextPasted() (*key, int) {
	i := bytes.Index(d.buf, []byte(pasteEnd))
	if i < 0 {
		keep := len(pasteEnd) - 1 // the end marker may be cut
		n := max(0, len(d.buf)-keep)
		d.paste = append(d.paste, d.buf[:n]...)
		return nil, n
	}
	text := string(append(d.paste, d.buf[:i]...))
	d.inPaste, d.paste = false, nil
	return &key{kind: keyPaste, text: text}, i + len(pasteEnd)
}

func (d *decoder) nextEscape() (*key, int) {
	s := string(d.buf)
	switch {
	case strings.HasPrefix(s, pasteStart):
		d.inPaste = true
		return nil, len(pasteStart)
	case len(s) == 1:
		return nil, 0
	case s[1] == '\r':
		return &key{kind: keyLine}, 2
	case s[1] == 0x1b:
		return &key{kind: keyEsc}, 1
	case s[1] == '[' || s[1] == 'O':
		for i := 2; i < len(s); i++ {
			if s[i] < 0x40 || s[i] > 0x7e {
				continue
			}
			switch s[i] {
			case 'A':
				return &key{kind: keyUp}, i + 1
			case 'B':
				return &key{kind: keyDown}, i + 1
			}
			return &key{kind: keyOther}, i + 1
		}
		return nil, 0
	}
	return &key{kind: keyOther}, 2 // Alt and a character
}
